//! What a host kernel gives KVM: clocks and waiting.
//!
//! Everything above gets the time of the machine it really runs on from here, and only in real time.
#![forbid(unsafe_code)]

mod clock;
mod kicker;

pub use clock::{HostOscillator, wall_clock_ns};
pub use kicker::{Kicker, Wait};
