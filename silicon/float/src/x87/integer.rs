//! FILD, FIST, FISTTP and FRNDINT.

use crate::exact::Finite;
use crate::flags::{Flags, Rounding};
use crate::round::{Integer, to_integer};
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, propagate_one};
use crate::x87::outcome::Outcome;

/// FILD m16: exact.
pub fn from_i16(a: i16) -> F80 {
    from_i64(i64::from(a))
}

/// FILD m32: exact.
pub fn from_i32(a: i32) -> F80 {
    from_i64(i64::from(a))
}

/// FILD m64: exact.
pub fn from_i64(a: i64) -> F80 {
    from_magnitude(a < 0, a.unsigned_abs())
}

/// A whole number with a sign of its own, which a zero keeps.
pub(crate) fn from_magnitude(negative: bool, magnitude: u64) -> F80 {
    if magnitude == 0 {
        return F80::zero(negative);
    }
    let x = Finite::normalized(negative, 63, magnitude);
    F80::packed(negative, x.exponent, x.significand)
}

/// FIST m16, with the rounding of the control word.
pub fn to_i16(a: F80, control: ControlWord) -> Outcome<i16> {
    store(a, control.rounding(), i16::MIN)
}

/// FIST m32, with the rounding of the control word.
pub fn to_i32(a: F80, control: ControlWord) -> Outcome<i32> {
    store(a, control.rounding(), i32::MIN)
}

/// FISTP m64, with the rounding of the control word.
pub fn to_i64(a: F80, control: ControlWord) -> Outcome<i64> {
    store(a, control.rounding(), i64::MIN)
}

/// FISTTP m16: towards zero.
pub fn to_i16_truncated(a: F80) -> Outcome<i16> {
    store(a, Rounding::Zero, i16::MIN)
}

/// FISTTP m32: towards zero.
pub fn to_i32_truncated(a: F80) -> Outcome<i32> {
    store(a, Rounding::Zero, i32::MIN)
}

/// FISTTP m64: towards zero.
pub fn to_i64_truncated(a: F80) -> Outcome<i64> {
    store(a, Rounding::Zero, i64::MIN)
}

/// The integer with its sign, or "integer indefinite" and IE for what does not fit.
fn store<T: TryFrom<i128>>(a: F80, rounding: Rounding, indefinite: T) -> Outcome<T> {
    let a = Operand::new(a);
    let whole = match a.value {
        Value::Zero => Some(Integer { magnitude: 0, inexact: false, up: false }),
        Value::Finite(x) => to_integer(x, rounding),
        _ => None,
    };
    let fitting = whole.and_then(|whole| {
        let magnitude = i128::from(whole.magnitude);
        let value = T::try_from(if a.negative { -magnitude } else { magnitude }).ok()?;
        Some(Outcome { value, flags: Flags::PE.when(whole.inexact), c1: whole.up })
    });
    fitting.unwrap_or(Outcome::with(indefinite, Flags::IE))
}

/// FRNDINT: to an integral number, with the rounding of the control word.
pub fn round_to_int(a: F80, control: ControlWord) -> Outcome<F80> {
    let a = Operand::new(a);
    if let Some(outcome) = propagate_one(&a) {
        return outcome;
    }
    let before = a.denormal_flag();
    match a.value {
        Value::Finite(x) if x.exponent < 63 && !control.stops(before) => {
            let Some(whole) = to_integer(x, control.rounding()) else {
                return Outcome::exact(a.pattern);
            };
            Outcome {
                value: from_magnitude(a.negative, whole.magnitude),
                flags: before | Flags::PE.when(whole.inexact),
                c1: whole.up,
            }
        }
        _ => Outcome::with(a.pattern, before),
    }
}
