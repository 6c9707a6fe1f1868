//! Execution of instructions, one file a family.

pub mod far;
pub mod io;
pub mod segment;
pub mod system;
