//! FSCALE and FXTRACT.

use crate::exact::Finite;
use crate::flags::{Flags, Rounding};
use crate::round::to_integer;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, invalid, propagate, propagate_one};
use crate::x87::integer::from_i32;
use crate::x87::outcome::{Outcome, deliver};

/// More than any exponent can make up for.
const FAR: i32 = 1 << 20;

/// FSCALE: `a` times two to the power of `b`, of which the fraction is dropped.
///
/// Source: Intel SDM volume 2, "FSCALE—Scale".
pub fn scale(a: F80, b: F80, control: ControlWord) -> Outcome<F80> {
    let (a, b) = (Operand::new(a), Operand::new(b));
    if let Some(outcome) = propagate(&a, &b) {
        return outcome;
    }
    let before = a.denormal_flag() | b.denormal_flag();
    match (a.value, b.value) {
        (Value::Infinity, Value::Infinity) if b.negative => return invalid(),
        (Value::Zero, Value::Infinity) if !b.negative => return invalid(),
        _ if control.stops(before) => return Outcome::with(a.pattern, before),
        _ => {}
    }
    match (a.value, b.value) {
        (Value::Finite(_), Value::Infinity) => {
            let value = if b.negative { F80::zero(a.negative) } else { F80::infinity(a.negative) };
            Outcome::with(value, before)
        }
        (Value::Finite(x), _) => {
            let shift = match b.value {
                Value::Finite(y) => power(y),
                _ => 0,
            };
            deliver(Finite { exponent: x.exponent + shift, ..x }.widen(), before, 64, control)
        }
        _ => Outcome::with(a.pattern, before),
    }
}

fn power(y: Finite) -> i32 {
    let magnitude = to_integer(y, Rounding::Zero)
        .map_or(FAR, |whole| i32::try_from(whole.magnitude).map_or(FAR, |whole| whole.min(FAR)));
    if y.negative { -magnitude } else { magnitude }
}

/// What FXTRACT takes a number apart into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The unbiased exponent as a number; replaces the operand.
    pub exponent: F80,
    /// The significand with its sign, from one up to two; is pushed.
    pub significand: F80,
}

/// FXTRACT. A zero raises ZE and has the exponent minus infinity.
pub fn extract(a: F80, control: ControlWord) -> Outcome<Parts> {
    let a = Operand::new(a);
    if let Some(nan) = propagate_one(&a) {
        return Outcome::with(Parts { exponent: nan.value, significand: nan.value }, nan.flags);
    }
    let both = |exponent, significand| Parts { exponent, significand };
    match a.value {
        Value::Zero => Outcome::with(both(F80::infinity(true), a.pattern), Flags::ZE),
        Value::Finite(x) => {
            let before = a.denormal_flag();
            if control.stops(before) {
                return Outcome::with(both(a.pattern, a.pattern), before);
            }
            Outcome::with(both(from_i32(x.exponent), F80::packed(a.negative, 0, x.significand)), before)
        }
        _ => Outcome::exact(both(F80::infinity(false), a.pattern)),
    }
}
