//! Scalar operations of SSE, SSE2, SSE4.1, FMA and F16C on bit patterns, one lane at a time.
//!
//! Each function takes the operands in the order of the instruction (destination, source), raises flags in MXCSR and
//! returns the masked response. Where the exception is not masked the result means nothing: see
//! [`crate::Mxcsr::instruction`].

mod arithmetic;
mod compare;
mod convert;
mod estimate;
pub(crate) mod format;
mod fused;
mod half;
mod integer;
mod minmax;
mod native;

pub use arithmetic::{add, div, mul, sqrt, sub};
pub use compare::{Ordering4, Signalling, cmp, comi};
pub use convert::{RoundImm, f32_to_f64, f64_to_f32, round_to_int};
pub use estimate::{rcp, rsqrt};
pub use format::{F32, F64, Float};
pub use fused::{fma, negate};
pub use half::{HalfImm, f16_to_f32, f32_to_f16};
pub use integer::{from_i32, from_i64, to_i32, to_i32_truncated, to_i64, to_i64_truncated};
pub use minmax::{max, min};
