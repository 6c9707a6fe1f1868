//! FPREM and FPREM1.
//!
//! Source: Intel SDM volume 2, "FPREM—Partial Remainder" and "FPREM1—Partial Remainder".

use crate::exact::Finite;
use crate::flags::Flags;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, invalid, propagate};
use crate::x87::outcome::{Outcome, deliver};

/// The result of a step, with the condition codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// The remainder, or the partial one.
    pub value: F80,
    /// C2: the reduction is not complete, and the instruction is to be repeated.
    pub partial: bool,
    /// The low three bits of the quotient: bit 2 goes to C0, bit 1 to C3, bit 0 to C1.
    pub quotient: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotient {
    Truncated,
    Nearest,
}

/// FPREM: the remainder of `a / b` with a quotient rounded towards zero.
pub fn fprem(a: F80, b: F80, control: ControlWord) -> Outcome<Remainder> {
    remainder(a, b, Quotient::Truncated, control)
}

/// FPREM1: the remainder of `a / b` with a quotient rounded to nearest, as IEEE 754 defines it.
pub fn fprem1(a: F80, b: F80, control: ControlWord) -> Outcome<Remainder> {
    remainder(a, b, Quotient::Nearest, control)
}

fn complete(value: F80, quotient: u8) -> Remainder {
    Remainder { value, partial: false, quotient }
}

fn remainder(a: F80, b: F80, quotient: Quotient, control: ControlWord) -> Outcome<Remainder> {
    let (a, b) = (Operand::new(a), Operand::new(b));
    let special = propagate(&a, &b).or_else(|| (a.is_infinity() || b.is_zero()).then(invalid));
    if let Some(outcome) = special {
        return Outcome::with(complete(outcome.value, 0), outcome.flags);
    }
    let before = a.denormal_flag() | b.denormal_flag();
    if control.stops(before) {
        return Outcome::with(complete(a.pattern, 0), before);
    }
    match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => step(x, y, quotient, before, control),
        (Value::Finite(x), _) => {
            let outcome = deliver(x.widen(), before, 64, control);
            Outcome::with(complete(outcome.value, 0), outcome.flags)
        }
        _ => Outcome::with(complete(a.pattern, 0), before),
    }
}

/// Reduces by 32 to 63 bits if the exponents are 64 or more apart, else all the way.
fn step(x: Finite, y: Finite, rounding: Quotient, before: Flags, control: ControlWord) -> Outcome<Remainder> {
    let distance = x.exponent - y.exponent;
    let partial = distance >= 64;
    let shift = if partial { distance & 31 | 32 } else { distance.max(0) };
    // Both in units of the divisor's last bit; or of half of it, if the dividend is that much smaller.
    let low = distance.clamp(-2, 0);
    let dividend = u128::from(x.significand) << shift;
    let divisor = u128::from(y.significand) << low.unsigned_abs();
    let exponent = x.exponent - shift;
    let tiny = distance < -2;

    let (mut quotient, mut rest, mut negative) =
        if tiny { (0, dividend, x.negative) } else { (dividend / divisor, dividend % divisor, x.negative) };
    if rounding == Quotient::Nearest && !partial && !tiny {
        let twice = rest << 1;
        if twice > divisor || (twice == divisor && quotient & 1 != 0) {
            quotient += 1;
            rest = divisor - rest;
            negative = !negative;
        }
    }
    let bits = if partial { 0 } else { (quotient & 7) as u8 };
    // The remainder is smaller than a divisor of 64 bits, or is the dividend.
    let Ok(rest) = u64::try_from(rest) else {
        return Outcome::with(Remainder { value: F80::INDEFINITE, partial, quotient: bits }, before);
    };
    if rest == 0 {
        return Outcome::with(Remainder { value: F80::zero(x.negative), partial, quotient: bits }, before);
    }
    let outcome = deliver(Finite::normalized(negative, exponent, rest).widen(), before, 64, control);
    Outcome::with(Remainder { value: outcome.value, partial, quotient: bits }, outcome.flags)
}
