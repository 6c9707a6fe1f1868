//! FADD, FSUB, FMUL, FDIV and FSQRT, with their reversed and popping forms.

use crate::exact;
use crate::flags::{Flags, Rounding};
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, invalid, propagate, propagate_one};
use crate::x87::outcome::{Outcome, deliver};
use crate::x87::source::Source;

/// FADD: `a + b`, to the precision of the control word.
pub fn add(a: impl Into<Source>, b: impl Into<Source>, control: ControlWord) -> Outcome<F80> {
    add_operands(a.into().into(), b.into().into(), control)
}

fn add_operands(a: Operand, b: Operand, control: ControlWord) -> Outcome<F80> {
    propagate(&a, &b).unwrap_or_else(|| sum(a, b, control))
}

/// FSUB: `a - b`, to the precision of the control word.
pub fn sub(a: impl Into<Source>, b: impl Into<Source>, control: ControlWord) -> Outcome<F80> {
    sub_operands(a.into().into(), b.into().into(), control)
}

fn sub_operands(a: Operand, b: Operand, control: ControlWord) -> Outcome<F80> {
    propagate(&a, &b).unwrap_or_else(|| sum(a, b.negate(), control))
}

fn sum(a: Operand, b: Operand, control: ControlWord) -> Outcome<F80> {
    if a.is_infinity() && b.is_infinity() && a.negative != b.negative {
        return invalid();
    }
    let before = a.denormal_flag() | b.denormal_flag();
    if control.stops(before) {
        return Outcome::with(a.pattern, before);
    }
    let precision = control.precision();
    let cancelled = Outcome::with(F80::zero(control.rounding() == Rounding::Down), before);
    match (a.value, b.value) {
        (Value::Infinity, _) => Outcome::with(a.pattern, before),
        (_, Value::Infinity) => Outcome::with(b.pattern, before),
        (Value::Zero, Value::Zero) if a.negative == b.negative => Outcome::with(a.pattern, before),
        (Value::Finite(x), Value::Finite(y)) => match exact::add(x.widen(), y.widen()) {
            Some(sum) => deliver(sum, before, precision, control),
            None => cancelled,
        },
        (Value::Finite(x), _) | (_, Value::Finite(x)) => deliver(x.widen(), before, precision, control),
        _ => cancelled,
    }
}

/// FMUL: `a * b`, to the precision of the control word.
pub fn mul(a: impl Into<Source>, b: impl Into<Source>, control: ControlWord) -> Outcome<F80> {
    mul_operands(a.into().into(), b.into().into(), control)
}

fn mul_operands(a: Operand, b: Operand, control: ControlWord) -> Outcome<F80> {
    if let Some(outcome) = propagate(&a, &b) {
        return outcome;
    }
    if (a.is_infinity() && b.is_zero()) || (a.is_zero() && b.is_infinity()) {
        return invalid();
    }
    let before = a.denormal_flag() | b.denormal_flag();
    let negative = a.negative != b.negative;
    if control.stops(before) {
        return Outcome::with(a.pattern, before);
    }
    match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => deliver(exact::multiply(x, y), before, control.precision(), control),
        (Value::Infinity, _) | (_, Value::Infinity) => Outcome::with(F80::infinity(negative), before),
        _ => Outcome::with(F80::zero(negative), before),
    }
}

/// FDIV: `a / b`, to the precision of the control word.
pub fn div(a: impl Into<Source>, b: impl Into<Source>, control: ControlWord) -> Outcome<F80> {
    div_operands(a.into().into(), b.into().into(), control)
}

fn div_operands(a: Operand, b: Operand, control: ControlWord) -> Outcome<F80> {
    if let Some(outcome) = propagate(&a, &b) {
        return outcome;
    }
    let negative = a.negative != b.negative;
    let before = a.denormal_flag() | b.denormal_flag();
    match (a.value, b.value) {
        (Value::Infinity, Value::Infinity) | (Value::Zero, Value::Zero) => return invalid(),
        (Value::Finite(_), Value::Zero) => return Outcome::with(F80::infinity(negative), Flags::ZE),
        _ if control.stops(before) => return Outcome::with(a.pattern, before),
        _ => {}
    }
    match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => deliver(exact::divide(x, y), before, control.precision(), control),
        (Value::Infinity, _) => Outcome::with(F80::infinity(negative), before),
        _ => Outcome::with(F80::zero(negative), before),
    }
}

/// FSQRT, to the precision of the control word.
pub fn sqrt(a: F80, control: ControlWord) -> Outcome<F80> {
    let a = Operand::new(a);
    if let Some(outcome) = propagate_one(&a) {
        return outcome;
    }
    match a.value {
        Value::Zero => Outcome::exact(a.pattern),
        _ if a.negative => invalid(),
        Value::Finite(x) => {
            let before = a.denormal_flag();
            if control.stops(before) {
                return Outcome::with(a.pattern, before);
            }
            deliver(exact::square_root(x), before, control.precision(), control)
        }
        _ => Outcome::exact(a.pattern),
    }
}
