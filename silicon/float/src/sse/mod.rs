//! Scalar operations of SSE, SSE2 and SSE4.1 on bit patterns, one lane at a time.
//!
//! Each function takes the operands in the order of the instruction (destination, source), raises flags in MXCSR and
//! returns the masked response. Where the exception is not masked the result means nothing: see
//! [`crate::Mxcsr::instruction`].

mod arithmetic;
mod compare;
mod convert;
mod estimate;
pub(crate) mod format;
mod integer;
mod minmax;
mod native;

pub use arithmetic::{add, div, fma, mul, sqrt, sub};
pub use compare::{Ordering4, Signalling, cmp, comi};
pub use convert::{RoundImm, f32_to_f64, f64_to_f32, round_to_int};
pub use estimate::{rcp, rsqrt};
pub use format::{F32, F64, Float};
pub use integer::{from_i32, from_i64, to_i32, to_i32_truncated, to_i64, to_i64_truncated};
pub use minmax::{max, min};
