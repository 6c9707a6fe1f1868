//! Segment registers and descriptor tables.

pub mod base;
pub mod descriptor;
pub mod load;
pub mod moves;
pub mod query;
pub mod stack;
pub mod tables;
