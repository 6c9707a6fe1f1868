//! Arithmetic on finite non-zero numbers, exact up to a sticky bit.
//!
//! Every result carries at least 126 bits of which the lowest stands for "and something more", so that rounding it
//! once to 64 bits or fewer gives the correctly rounded result.

/// A finite non-zero number: `significand * 2^(exponent - 63)`, with bit 63 of the significand set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finite {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u64,
}

/// A number before rounding: `significand * 2^(exponent - 127)`, with bit 127 of the significand set. Bit 0 is sticky.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrounded {
    pub negative: bool,
    pub exponent: i32,
    pub significand: u128,
}

impl Finite {
    /// From a significand whose top bit may be clear. It must not be zero.
    pub fn normalized(negative: bool, exponent: i32, significand: u64) -> Finite {
        let shift = significand.leading_zeros();
        Finite { negative, exponent: exponent - shift as i32, significand: significand << shift }
    }

    pub fn negate(self) -> Finite {
        Finite { negative: !self.negative, ..self }
    }

    pub fn widen(self) -> Unrounded {
        Unrounded { negative: self.negative, exponent: self.exponent, significand: u128::from(self.significand) << 64 }
    }
}

impl Unrounded {
    /// From a significand whose top bits may be clear. It must not be zero.
    pub fn normalized(negative: bool, exponent: i32, significand: u128) -> Unrounded {
        let shift = significand.leading_zeros();
        Unrounded { negative, exponent: exponent - shift as i32, significand: significand << shift }
    }
}

/// `value >> count`, where what falls off is kept as a one in bit 0.
pub(crate) fn shift_right_sticky(value: u128, count: u32) -> u128 {
    match count {
        0 => value,
        1..=127 => value >> count | u128::from(value << (128 - count) != 0),
        _ => u128::from(value != 0),
    }
}

/// `a + b`; none if it is exactly zero.
///
/// Both must have their lowest bit clear, as exact operands of 64 bits and exact products of two `f64` have.
pub(crate) fn add(a: Unrounded, b: Unrounded) -> Option<Unrounded> {
    let (large, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
    let distance = u32::try_from(large.exponent - small.exponent).unwrap_or(u32::MAX);
    // One bit of headroom for the carry.
    let one = large.significand >> 1;
    let other = shift_right_sticky(small.significand >> 1, distance);
    let sum = if a.negative == b.negative { one + other } else { one - other };
    if sum == 0 {
        return None;
    }
    Some(Unrounded::normalized(large.negative, large.exponent + 1, sum))
}

pub(crate) fn multiply(a: Finite, b: Finite) -> Unrounded {
    let product = u128::from(a.significand) * u128::from(b.significand);
    Unrounded::normalized(a.negative != b.negative, a.exponent + b.exponent + 1, product)
}

pub(crate) fn divide(a: Finite, b: Finite) -> Unrounded {
    let divisor = u128::from(b.significand);
    let dividend = u128::from(a.significand) << 63;
    let high = dividend / divisor;
    let rest = (dividend % divisor) << 63;
    let low = rest / divisor;
    let sticky = u128::from(rest % divisor != 0);
    let quotient = (high << 63 | low) << 1 | sticky;
    Unrounded::normalized(a.negative != b.negative, a.exponent - b.exponent, quotient)
}

/// The root of a positive number.
pub(crate) fn square_root(a: Finite) -> Unrounded {
    let odd = a.exponent & 1 != 0;
    let radicand = u128::from(a.significand) << if odd { 64 } else { 63 };
    let root = radicand.isqrt();
    let rest = radicand - root * root;
    // The root exceeds root + 1/2 exactly if rest > root, since rest is an integer; it is never half-way.
    let significand = root << 64 | u128::from(rest > root) << 63 | u128::from(rest != 0);
    Unrounded { negative: false, exponent: a.exponent >> 1, significand }
}
