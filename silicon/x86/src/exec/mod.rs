//! Execution of instructions, one file a family.

pub mod mmx;
pub mod sse;
