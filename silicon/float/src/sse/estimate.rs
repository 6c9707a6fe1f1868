//! RCPSS and RSQRTSS: estimates.
//!
//! The manual bounds the relative error by 1.5 * 2^-12 and leaves the bits to the model of processor. Ours returns the
//! exact value rounded to twelve significant bits, to nearest, which is off by 2^-12 at most. Denormal operands count
//! as zeros and tiny results are flushed to zero, whatever MXCSR says; there are no exceptions.
//! Source: Intel SDM volume 2, "RCPPS" and "RSQRTPS".

use crate::sse::format::{F32, Layout};

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;

/// Rounds to twelve significant bits.
fn estimate(value: f64) -> u32 {
    if value.abs() < f64::from(f32::MIN_POSITIVE) {
        return (value as f32).to_bits() & SIGN;
    }
    (f64::from_bits((value.to_bits() + (1 << 40)) & !((1 << 41) - 1)) as f32).to_bits()
}

/// RCPSS: about `1 / a`.
pub fn rcp(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    if magnitude > INFINITY {
        return a | F32::QUIET as u32;
    }
    if magnitude < 1 << F32::FRACTION_BITS {
        return a & SIGN | INFINITY;
    }
    if magnitude == INFINITY {
        return a & SIGN;
    }
    estimate(1.0 / f64::from(f32::from_bits(a)))
}

/// RSQRTSS: about `1 / sqrt(a)`.
pub fn rsqrt(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    if magnitude > INFINITY {
        return a | F32::QUIET as u32;
    }
    if magnitude < 1 << F32::FRACTION_BITS {
        return a & SIGN | INFINITY;
    }
    if a & SIGN != 0 {
        return F32::DEFAULT_NAN as u32;
    }
    if magnitude == INFINITY {
        return 0;
    }
    estimate(1.0 / f64::from(f32::from_bits(a)).sqrt())
}
