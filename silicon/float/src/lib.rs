//! The floating-point arithmetic of an x86-64 processor, as pure functions over bit patterns.
//!
//! * [`sse`]: scalar operations on `f32` and `f64` patterns under an [`Mxcsr`]; the vector instructions call them once
//!   per lane.
//!
//! Results and exception flags are those of hardware, bit by bit, on every host: the slow path is integer arithmetic
//! ([`exact`] then [`round`]), and the fast path uses the host's own operation only where IEEE 754 leaves no choice.
#![forbid(unsafe_code)]
pub mod x87 {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct F80 { pub significand: u64, pub sign_exponent: u16 }
    impl F80 { pub const ZERO: Self = Self { significand: 0, sign_exponent: 0 }; }
}

mod exact;
mod flags;
mod mxcsr;
mod round;
pub mod sse;

pub use flags::{Flags, Rounding};
pub use mxcsr::{Mxcsr, SimdException};
pub use sse::{F32, F64, Float, Ordering4, RoundImm, Signalling};
