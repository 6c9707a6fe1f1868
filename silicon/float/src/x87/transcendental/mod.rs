//! The transcendental instructions.
//!
//! Hardware promises an error below one unit in the last place of 64 bits and differs between models within that. Here
//! a result is computed with about 120 bits and rounded once, by the rounding mode: its error is below half a unit (one
//! unit in the directed modes), and it is the same on every host. Precision control does not apply. Inexact is raised
//! exactly when the result is inexact, and C1 says whether it was rounded up.
//!
//! Source: Intel SDM volume 1, "Transcendental Instruction Accuracy".

mod arctangent;
mod exponential;
mod logarithm;
mod trigonometry;
mod wide;

pub use arctangent::fpatan;
pub use exponential::f2xm1;
pub use logarithm::{fyl2x, fyl2xp1};
pub use trigonometry::{Pair, fcos, fptan, fsin, fsincos};
