//! The floating-point arithmetic of an x86-64 processor, as pure functions over bit patterns.
//!
//! * [`sse`]: scalar operations on `f32` and `f64` patterns under an [`Mxcsr`]; the vector instructions call them once
//!   per lane.
//! * [`x87`]: the operations of the x87 unit on [`F80`] patterns under a [`ControlWord`].
//!
//! Results and exception flags are those of hardware, bit by bit, on every host: the slow path is integer arithmetic
//! (`exact`, then `round`), and the fast path uses the host's own operation only where IEEE 754 leaves no choice.
#![forbid(unsafe_code)]

mod exact;
mod flags;
mod mxcsr;
mod round;
pub mod sse;
pub mod x87;

pub use flags::{Flags, Rounding};
pub use mxcsr::{Mxcsr, SimdException};
pub use sse::{F32, F64, Float, HalfImm, Ordering4, RoundImm, Signalling};
pub use x87::{ControlWord, F80, Outcome};
