//! FSIN, FCOS, FSINCOS and FPTAN.
//!
//! Arguments are reduced as hardware reduces them: the nearest multiple of half of pi, with pi rounded to 66 bits, is
//! taken off, and the rest counts from the same multiple of the true value. So for large arguments, and near multiples
//! of pi, results are those of the processor and not those of mathematics.
//! Source: Intel SDM volume 1, "Approximation of Pi".

use crate::exact::{Finite, Unrounded};
use crate::flags::Flags;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, invalid, propagate_one};
use crate::x87::outcome::Outcome;
use crate::x87::transcendental::wide::{ONE, add, deliver_inexact, div, div_small, mul, negate, signed};

/// Half of pi, to 66 bits, times two to the power of 65.
const HALF_PI: u128 = 0x3_243f_6a88_85a3_08d3;

/// Arguments from two to this power on are out of range.
const RANGE: i32 = 63;

/// Enough for `(pi / 4)^2n / (2n)! < 2^-130`.
const TERMS: u32 = 17;

/// Two results: one replaces the operand, the other is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Replaces the operand: the sine of FSINCOS, the tangent of FPTAN.
    pub replaced: F80,
    /// Is pushed: the cosine of FSINCOS, the one of FPTAN.
    pub pushed: F80,
}

/// Sine and cosine of a finite argument.
struct Circle {
    sine: Unrounded,
    cosine: Unrounded,
}

fn circle(x: Finite) -> Circle {
    let (r, quadrant) = reduce(x);
    let square = signed(mul(r, r), true);
    let (mut sine, mut cosine) = (ONE, ONE);
    for k in (1..=TERMS).rev() {
        // Both are near one and below it.
        sine = add(ONE, mul(div_small(square, 2 * k * (2 * k + 1)), sine));
        cosine = add(ONE, mul(div_small(square, (2 * k - 1) * 2 * k), cosine));
    }
    let sine = mul(r, sine);
    match quadrant {
        0 => Circle { sine, cosine },
        1 => Circle { sine: cosine, cosine: negate(sine) },
        2 => Circle { sine: negate(sine), cosine: negate(cosine) },
        _ => Circle { sine: negate(cosine), cosine: sine },
    }
}

/// The rest of an argument below 2^63 after the nearest multiple of half of pi, and that multiple's low two bits.
fn reduce(x: Finite) -> (Unrounded, u8) {
    if x.exponent < -1 {
        return (x.widen(), 0);
    }
    // In units of 2^-65. At most 64 + 64 bits, and no multiple of HALF_PI, which is odd and has 66.
    let fixed = u128::from(x.significand) << (x.exponent + 2);
    let (mut multiple, mut rest) = (fixed / HALF_PI, fixed % HALF_PI);
    let mut negative = x.negative;
    if rest << 1 > HALF_PI {
        multiple += 1;
        rest = HALF_PI - rest;
        negative = !negative;
    }
    let quadrant = (multiple & 3) as u8;
    let quadrant = if x.negative { quadrant.wrapping_neg() & 3 } else { quadrant };
    (Unrounded::normalized(negative, 62, rest), quadrant)
}

/// What an argument leads to.
enum Argument {
    Done(Outcome<F80>),
    Zero(F80),
    Stopped(Outcome<F80>),
    Angle(Circle, Flags),
}

/// None if the argument is out of range.
fn classify(a: F80, control: ControlWord) -> Option<Argument> {
    let a = Operand::new(a);
    if let Some(outcome) = propagate_one(&a) {
        return Some(Argument::Done(outcome));
    }
    match a.value {
        Value::Finite(x) if x.exponent >= RANGE => None,
        Value::Finite(_) if control.stops(a.denormal_flag()) => {
            Some(Argument::Stopped(Outcome::with(a.pattern, a.denormal_flag())))
        }
        Value::Finite(x) => Some(Argument::Angle(circle(x), a.denormal_flag())),
        Value::Zero => Some(Argument::Zero(a.pattern)),
        _ => Some(Argument::Done(invalid())),
    }
}

/// FSIN. None if the argument is 2^63 or more in magnitude: then C2 is set and nothing else happens.
pub fn fsin(a: F80, control: ControlWord) -> Option<Outcome<F80>> {
    Some(match classify(a, control)? {
        Argument::Done(outcome) | Argument::Stopped(outcome) => outcome,
        Argument::Zero(zero) => Outcome::exact(zero),
        Argument::Angle(circle, before) => deliver_inexact(circle.sine, before, control),
    })
}

/// FCOS. None if the argument is 2^63 or more in magnitude: then C2 is set and nothing else happens.
pub fn fcos(a: F80, control: ControlWord) -> Option<Outcome<F80>> {
    Some(match classify(a, control)? {
        Argument::Done(outcome) | Argument::Stopped(outcome) => outcome,
        Argument::Zero(_) => Outcome::exact(F80::ONE),
        Argument::Angle(circle, before) => deliver_inexact(circle.cosine, before, control),
    })
}

fn twice(outcome: Outcome<F80>) -> Outcome<Pair> {
    Outcome { value: Pair { replaced: outcome.value, pushed: outcome.value }, flags: outcome.flags, c1: outcome.c1 }
}

/// FSINCOS. None if the argument is 2^63 or more in magnitude: then C2 is set and nothing else happens.
pub fn fsincos(a: F80, control: ControlWord) -> Option<Outcome<Pair>> {
    Some(match classify(a, control)? {
        Argument::Done(outcome) | Argument::Stopped(outcome) => twice(outcome),
        Argument::Zero(zero) => Outcome::exact(Pair { replaced: zero, pushed: F80::ONE }),
        Argument::Angle(circle, before) => {
            let sine = deliver_inexact(circle.sine, before, control);
            let cosine = deliver_inexact(circle.cosine, before, control);
            Outcome {
                value: Pair { replaced: sine.value, pushed: cosine.value },
                flags: sine.flags | cosine.flags,
                c1: cosine.c1,
            }
        }
    })
}

/// FPTAN. None if the argument is 2^63 or more in magnitude: then C2 is set and nothing else happens.
pub fn fptan(a: F80, control: ControlWord) -> Option<Outcome<Pair>> {
    Some(match classify(a, control)? {
        Argument::Done(outcome) | Argument::Stopped(outcome) => twice(outcome),
        Argument::Zero(zero) => Outcome::exact(Pair { replaced: zero, pushed: F80::ONE }),
        Argument::Angle(circle, before) => {
            let tangent = deliver_inexact(div(circle.sine, circle.cosine), before, control);
            Outcome { value: Pair { replaced: tangent.value, pushed: F80::ONE }, flags: tangent.flags, c1: tangent.c1 }
        }
    })
}
