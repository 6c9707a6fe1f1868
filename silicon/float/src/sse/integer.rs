//! Conversions to and from signed integers.
//!
//! To an integer, a denormal operand is not an exception, and what does not fit is the "integer indefinite", the
//! smallest integer. Source: Intel SDM volume 2, "CVTSD2SI", "CVTTSD2SI", "CVTSI2SD".

use crate::exact::Finite;
use crate::flags::{Flags, Rounding};
use crate::mxcsr::Mxcsr;
use crate::round::to_integer;
use crate::sse::format::{Float, Operand, Value, deliver, zero};
use crate::sse::native::is_plain;

/// CVTSS2SI, CVTSD2SI to 32 bits, with the rounding of MXCSR.
#[inline]
pub fn to_i32<F: Float>(a: F::Bits, mxcsr: &mut Mxcsr) -> i32 {
    to_i32_rounded::<F>(a, mxcsr.rounding(), mxcsr)
}

/// CVTTSS2SI, CVTTSD2SI to 32 bits: towards zero.
#[inline]
pub fn to_i32_truncated<F: Float>(a: F::Bits, mxcsr: &mut Mxcsr) -> i32 {
    to_i32_rounded::<F>(a, Rounding::Zero, mxcsr)
}

/// CVTSS2SI, CVTSD2SI to 64 bits, with the rounding of MXCSR.
#[inline]
pub fn to_i64<F: Float>(a: F::Bits, mxcsr: &mut Mxcsr) -> i64 {
    to_i64_rounded::<F>(a, mxcsr.rounding(), mxcsr)
}

/// CVTTSS2SI, CVTTSD2SI to 64 bits: towards zero.
#[inline]
pub fn to_i64_truncated<F: Float>(a: F::Bits, mxcsr: &mut Mxcsr) -> i64 {
    to_i64_rounded::<F>(a, Rounding::Zero, mxcsr)
}

#[inline]
fn to_i32_rounded<F: Float>(a: F::Bits, rounding: Rounding, mxcsr: &mut Mxcsr) -> i32 {
    match rounded::<F>(a, rounding, *mxcsr) {
        Some((whole, flags)) if let Ok(whole) = i32::try_from(whole) => {
            mxcsr.raise(flags);
            whole
        }
        _ => {
            mxcsr.raise(Flags::IE);
            i32::MIN
        }
    }
}

#[inline]
fn to_i64_rounded<F: Float>(a: F::Bits, rounding: Rounding, mxcsr: &mut Mxcsr) -> i64 {
    match rounded::<F>(a, rounding, *mxcsr) {
        Some((whole, flags)) => {
            mxcsr.raise(flags);
            whole
        }
        None => {
            mxcsr.raise(Flags::IE);
            i64::MIN
        }
    }
}

/// The integer and whether it is inexact; none if it does not fit 64 bits.
#[inline]
fn rounded<F: Float>(a: F::Bits, rounding: Rounding, mxcsr: Mxcsr) -> Option<(i64, Flags)> {
    if is_plain::<F>(a) && matches!(rounding, Rounding::Zero | Rounding::Nearest) {
        let number = F::to_f64(a);
        let whole = if rounding == Rounding::Zero { number } else { number.round_ties_even() };
        if whole.abs() < 9.2e18 {
            let whole = whole as i64;
            return Some((whole, Flags::PE.when(whole as f64 != number)));
        }
    }
    rounded_slow::<F>(a, rounding, mxcsr)
}

#[cold]
fn rounded_slow<F: Float>(a: F::Bits, rounding: Rounding, mxcsr: Mxcsr) -> Option<(i64, Flags)> {
    match Operand::new::<F>(a, mxcsr).value {
        Value::Zero => Some((0, Flags::NONE)),
        Value::Infinity | Value::Nan => None,
        Value::Finite(x) => signed(x, rounding),
    }
}

/// A finite number as a signed integer, and whether that is inexact; none if it does not fit 64 bits.
fn signed(x: Finite, rounding: Rounding) -> Option<(i64, Flags)> {
    let whole = to_integer(x, rounding)?;
    let signed = if x.negative { -i128::from(whole.magnitude) } else { i128::from(whole.magnitude) };
    Some((i64::try_from(signed).ok()?, Flags::PE.when(whole.inexact)))
}

/// CVTSI2SS, CVTSI2SD from 32 bits.
#[inline]
pub fn from_i32<F: Float>(a: i32, mxcsr: &mut Mxcsr) -> F::Bits {
    from_i64::<F>(i64::from(a), mxcsr)
}

/// CVTSI2SS, CVTSI2SD from 64 bits.
#[inline]
pub fn from_i64<F: Float>(a: i64, mxcsr: &mut Mxcsr) -> F::Bits {
    if a.unsigned_abs() < 1 << F::PRECISION {
        return F::native_from_i64(a);
    }
    from_i64_slow::<F>(a, mxcsr)
}

#[cold]
fn from_i64_slow<F: Float>(a: i64, mxcsr: &mut Mxcsr) -> F::Bits {
    if a == 0 {
        return zero::<F>(false);
    }
    deliver::<F>(Finite::normalized(a < 0, 63, a.unsigned_abs()).widen(), mxcsr)
}
