//! FYL2X and FYL2XP1.

use crate::exact::{self, Finite, Unrounded};
use crate::flags::Flags;
use crate::x87::constants::LOG2_OF_E;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, invalid, propagate};
use crate::x87::outcome::{Outcome, deliver};
use crate::x87::transcendental::wide::{
    ONE, add, deliver_inexact, div, from_integer, mul, negate, odd_series, shifted,
};

/// The square root of two, as the top of a significand.
const ROOT_OF_2: u128 = 0xb504_f333_f9de_6484_597d_89b3_754a_be9f;

/// Enough for `z^2n < 2^-130` with `z <= (sqrt 2 - 1) / (sqrt 2 + 1)`.
const TERMS: u32 = 27;

/// The binary logarithm of a positive number other than one.
fn log2(x: Unrounded) -> Option<Unrounded> {
    let halve = i32::from(x.significand > ROOT_OF_2);
    let whole = from_integer(x.exponent + halve);
    let m = Unrounded { exponent: -halve, ..x };
    let fraction = exact::add(m, negate(ONE)).map(|difference| log2_near_one(div(difference, add(m, ONE))));
    match (whole, fraction) {
        (Some(whole), Some(fraction)) => Some(add(whole, fraction)),
        (whole, fraction) => whole.or(fraction),
    }
}

/// The binary logarithm of `(1 + z) / (1 - z)`: twice the hyperbolic area tangent of `z`, times the logarithm of e.
fn log2_near_one(z: Unrounded) -> Unrounded {
    shifted(mul(odd_series(z, TERMS, false), LOG2_OF_E), 1)
}

/// FYL2X: `y` times the binary logarithm of `x`, where `x` is ST0 and `y` ST1.
///
/// Source: Intel SDM volume 2, "FYL2X—Compute y ∗ log2x".
pub fn fyl2x(x: F80, y: F80, control: ControlWord) -> Outcome<F80> {
    let (x, y) = (Operand::new(x), Operand::new(y));
    if let Some(outcome) = propagate(&y, &x) {
        return outcome;
    }
    let before = x.denormal_flag() | y.denormal_flag();
    // The sign of the logarithm, and whether it is zero.
    let (negative, vanishes) = match x.value {
        Value::Zero => (true, false),
        _ if x.negative => return invalid(),
        Value::Finite(v) => (v.exponent < 0, v.exponent == 0 && v.significand == 1 << 63),
        _ => (false, false),
    };
    let infinite = x.is_zero() || x.is_infinity();
    if (infinite && y.is_zero()) || (vanishes && y.is_infinity()) {
        return invalid();
    }
    let sign = negative != y.negative;
    if x.is_zero() && !y.is_infinity() {
        return Outcome::with(F80::infinity(sign), Flags::ZE);
    }
    if control.stops(before) {
        return Outcome::with(y.pattern, before);
    }
    if infinite || y.is_infinity() {
        return Outcome::with(F80::infinity(sign), before);
    }
    match (x.value, y.value) {
        (Value::Finite(x), Value::Finite(y)) => logarithm(x, y, before, control),
        _ => Outcome::with(F80::zero(sign), before),
    }
}

fn logarithm(x: Finite, y: Finite, before: Flags, control: ControlWord) -> Outcome<F80> {
    // The logarithm of a power of two is a whole number. Hardware finds even an exact product inexact.
    if x.significand == 1 << 63 {
        let exponent = Finite::normalized(x.exponent < 0, 63, u64::from(x.exponent.unsigned_abs()).max(1));
        return if x.exponent == 0 {
            Outcome::with(F80::zero(y.negative), before)
        } else {
            let outcome = deliver(exact::multiply(exponent, y), before | Flags::PE, 64, control);
            let tiny = Operand::new(outcome.value).denormal;
            Outcome { flags: outcome.flags | Flags::UE.when(tiny), ..outcome }
        };
    }
    match log2(x.widen()) {
        Some(logarithm) => deliver_inexact(mul(logarithm, y.widen()), before, control),
        None => Outcome::with(F80::zero(y.negative), before),
    }
}

/// FYL2XP1: `y` times the binary logarithm of `x + 1`, where `x` is ST0 and `y` ST1.
///
/// The manual defines it for `x` between -(1 - sqrt(1/2)) and sqrt(2) - 1. Beyond, this goes on as far as there is a
/// logarithm.
///
/// Source: Intel SDM volume 2, "FYL2XP1—Compute y ∗ log2(x +1)".
pub fn fyl2xp1(x: F80, y: F80, control: ControlWord) -> Outcome<F80> {
    let (x, y) = (Operand::new(x), Operand::new(y));
    if let Some(outcome) = propagate(&y, &x) {
        return outcome;
    }
    let before = x.denormal_flag() | y.denormal_flag();
    let sign = x.negative != y.negative;
    let impossible = match x.value {
        Value::Zero => y.is_infinity(),
        Value::Infinity => x.negative || y.is_zero(),
        Value::Finite(v) => v.negative && v.exponent >= 0,
        _ => false,
    };
    if impossible {
        return invalid();
    }
    if control.stops(before) {
        return Outcome::with(y.pattern, before);
    }
    match (x.value, y.value) {
        (Value::Infinity, _) | (_, Value::Infinity) => Outcome::with(F80::infinity(sign), before),
        (Value::Finite(x), Value::Finite(y)) => {
            let x = x.widen();
            let logarithm = if x.exponent < -1 {
                Some(log2_near_one(div(x, add(x, shifted(ONE, 1)))))
            } else {
                exact::add(x, ONE).and_then(log2)
            };
            match logarithm {
                Some(logarithm) => deliver_inexact(mul(logarithm, y.widen()), before, control),
                None => Outcome::with(F80::zero(sign), before),
            }
        }
        _ => Outcome::with(F80::zero(sign), before),
    }
}
