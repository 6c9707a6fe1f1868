//! IN, OUT, INS, OUTS.

mod permission;
pub mod port;
pub mod string;
