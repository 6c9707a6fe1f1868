//! FCOM, FUCOM, FCOMI, FTST and FXAM.

use crate::flags::Flags;
use crate::sse::{Ordering4, Signalling};
use crate::x87::format::{F80, Operand, Value};
use crate::x87::outcome::Outcome;
use crate::x87::source::Source;

/// FCOM, FCOMI, FTST (signalling), FUCOM, FUCOMI (quiet): compares `a` with `b`.
pub fn compare(a: F80, b: impl Into<Source>, signalling: Signalling) -> Outcome<Ordering4> {
    compare_operands(Operand::new(a), b.into().into(), signalling)
}

fn compare_operands(a: Operand, b: Operand, signalling: Signalling) -> Outcome<Ordering4> {
    let unsupported = a.is_unsupported() || b.is_unsupported();
    if unsupported || a.is_nan() || b.is_nan() {
        let invalid = unsupported || signalling == Signalling::Signalling || a.is_signalling() || b.is_signalling();
        return Outcome::with(Ordering4::Unordered, Flags::IE.when(invalid));
    }
    Outcome::with(key(&a).cmp(&key(&b)).into(), a.denormal_flag() | b.denormal_flag())
}

/// Sorts as the numbers do. Zeros are equal.
fn key(a: &Operand) -> (i8, i64, i128) {
    let sign = if a.negative { -1 } else { 1 };
    match a.value {
        Value::Finite(x) => {
            let direction = i64::from(sign);
            (sign, direction * i64::from(x.exponent), i128::from(direction) * i128::from(x.significand))
        }
        Value::Infinity => (sign, i64::from(sign) * i64::from(i32::MAX), 0),
        _ => (0, 0, 0),
    }
}

/// What FXAM finds in a register that is not empty. C1 is the sign bit, for every class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// An encoding that the processor does not support.
    Unsupported,
    /// A NaN.
    Nan,
    /// A normal finite number.
    Normal,
    /// An infinity.
    Infinity,
    /// A zero.
    Zero,
    /// A denormal or pseudo-denormal.
    Denormal,
}

/// FXAM.
pub fn examine(a: F80) -> Class {
    let a = Operand::new(a);
    match a.value {
        Value::Unsupported => Class::Unsupported,
        Value::Nan => Class::Nan,
        Value::Infinity => Class::Infinity,
        Value::Zero => Class::Zero,
        Value::Finite(_) if a.denormal => Class::Denormal,
        Value::Finite(_) => Class::Normal,
    }
}
