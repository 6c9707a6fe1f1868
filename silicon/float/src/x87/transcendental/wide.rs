//! Approximate arithmetic with 128 bits of significand and an exponent that does not overflow.

use crate::exact::{self, Unrounded};
use crate::flags::Flags;
use crate::x87::control::ControlWord;
use crate::x87::format::F80;
use crate::x87::outcome::{Outcome, deliver};

/// One.
pub(crate) const ONE: Unrounded = Unrounded { negative: false, exponent: 0, significand: 1 << 127 };

/// The 256-bit product.
fn full_product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 64);
    let other = a0 * b1 + (middle & LOW);
    (a1 * b1 + (middle >> 64) + (other >> 64), other << 64 | low & LOW)
}

pub(crate) fn mul(a: Unrounded, b: Unrounded) -> Unrounded {
    let (high, low) = full_product(a.significand, b.significand);
    let negative = a.negative != b.negative;
    let exponent = a.exponent + b.exponent;
    if high >> 127 != 0 {
        Unrounded { negative, exponent: exponent + 1, significand: high }
    } else {
        Unrounded { negative, exponent, significand: high << 1 | low >> 127 }
    }
}

/// Long division, one bit a step.
pub(crate) fn div(a: Unrounded, b: Unrounded) -> Unrounded {
    let (mut rest, divisor) = (a.significand, b.significand);
    let mut exponent = a.exponent - b.exponent;
    let mut carry = false;
    if rest < divisor {
        exponent -= 1;
        carry = true;
        rest <<= 1;
    }
    let mut quotient = 0u128;
    for _ in 0..128 {
        quotient <<= 1;
        if carry || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
        carry = rest >> 127 != 0;
        rest <<= 1;
    }
    Unrounded { negative: a.negative != b.negative, exponent, significand: quotient }
}

pub(crate) fn div_small(a: Unrounded, divisor: u32) -> Unrounded {
    let divisor = u128::from(divisor.max(1));
    let (quotient, rest) = (a.significand / divisor, a.significand % divisor);
    let shift = quotient.leading_zeros();
    let significand = (quotient << shift) | ((rest << shift) / divisor);
    Unrounded { significand, exponent: a.exponent - shift as i32, ..a }
}

/// `a + b`, where the caller knows that it is not zero, or that zero is as good as its last bit.
pub(crate) fn add(a: Unrounded, b: Unrounded) -> Unrounded {
    exact::add(a, b).unwrap_or(Unrounded { exponent: a.exponent - 128, ..a })
}

pub(crate) fn negate(a: Unrounded) -> Unrounded {
    Unrounded { negative: !a.negative, ..a }
}

/// `a` times two to the power of `shift`.
pub(crate) fn shifted(a: Unrounded, shift: i32) -> Unrounded {
    Unrounded { exponent: a.exponent + shift, ..a }
}

/// The magnitude of `a` with a given sign.
pub(crate) fn signed(a: Unrounded, negative: bool) -> Unrounded {
    Unrounded { negative, ..a }
}

pub(crate) fn from_integer(a: i32) -> Option<Unrounded> {
    (a != 0).then(|| Unrounded::normalized(a < 0, 127, u128::from(a.unsigned_abs())))
}

/// `z + s z^3 / 3 + z^5 / 5 + s z^7 / 7 ...` with the sign `s` alternating or not: arc tangent and its hyperbolic kin.
pub(crate) fn odd_series(z: Unrounded, terms: u32, alternating: bool) -> Unrounded {
    let square = signed(mul(z, z), alternating);
    let mut sum = div_small(ONE, 2 * terms + 1);
    for k in (0..terms).rev() {
        sum = add(div_small(ONE, 2 * k + 1), mul(square, sum));
    }
    mul(z, sum)
}

/// Rounds a result that is known not to be exact.
pub(crate) fn deliver_inexact(x: Unrounded, before: Flags, control: ControlWord) -> Outcome<F80> {
    deliver(Unrounded { significand: x.significand | 1, ..x }, before, 64, control)
}
