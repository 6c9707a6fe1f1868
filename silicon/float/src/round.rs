//! Rounding to a format, with overflow, underflow and inexactness as an x86 processor finds them.

use crate::exact::{Finite, Unrounded, shift_right_sticky};
use crate::flags::{Flags, Rounding};

/// What to do with a result that is too small: tiny after rounding with an unbounded exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Underflow {
    /// Masked: a denormal; underflow is flagged if it is inexact.
    Denormalize,
    /// Masked, with FTZ: a zero, always flagged.
    Flush,
    /// Unmasked: flagged even if exact; the exponent goes up by this much. If that is not enough, a zero.
    Wrap(i32),
    /// Unmasked, and there is no result to deliver: flagged even if exact, alone.
    Stop,
}

/// What to do with a result that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Masked: infinity or the largest number, as the rounding mode says.
    Saturate,
    /// Unmasked: the exponent goes down by this much. If that is not enough, an infinity.
    Wrap(i32),
    /// Unmasked, and there is no result to deliver: flagged alone.
    Stop,
}

/// A format and the ways to get into it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Significand bits with the leading one: 24, 53 or 64.
    pub precision: u32,
    /// The exponent of the smallest normal number.
    pub min_exponent: i32,
    /// The exponent of the largest number.
    pub max_exponent: i32,
    pub rounding: Rounding,
    pub underflow: Underflow,
    pub overflow: Overflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Magnitude {
    Zero,
    /// `significand * 2^(exponent - 63)`. Bit 63 is clear for a denormal, whose exponent is the smallest.
    Finite {
        exponent: i32,
        significand: u64,
    },
    Infinity,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded {
    pub negative: bool,
    pub magnitude: Magnitude,
    pub flags: Flags,
    /// Whether the magnitude was rounded up: C1 of the x87 status word.
    pub up: bool,
}

struct Cut {
    significand: u128,
    carry: bool,
    inexact: bool,
    up: bool,
}

/// Whether cutting `low` off, of which `half` is the middle, has to add one above it.
#[inline]
pub(crate) fn rounds_up(rounding: Rounding, negative: bool, odd: bool, low: u128, half: u128) -> bool {
    match rounding {
        Rounding::Nearest => low > half || (low == half && odd),
        Rounding::Down => negative && low != 0,
        Rounding::Up => !negative && low != 0,
        Rounding::Zero => false,
    }
}

/// Rounds to the top `precision` bits.
fn cut(significand: u128, negative: bool, rules: &Rules) -> Cut {
    let ulp = 1u128 << (128 - rules.precision);
    let low = significand & (ulp - 1);
    let up = rounds_up(rules.rounding, negative, significand & ulp != 0, low, ulp >> 1);
    let kept = significand - low;
    let (sum, carry) = if up { kept.overflowing_add(ulp) } else { (kept, false) };
    Cut { significand: if carry { 1 << 127 } else { sum }, carry, inexact: low != 0, up }
}

pub(crate) fn round(x: Unrounded, rules: &Rules) -> Rounded {
    let negative = x.negative;
    let first = cut(x.significand, negative, rules);
    let exponent = x.exponent + i32::from(first.carry);
    let inexact = Flags::PE.when(first.inexact);
    let finite = |exponent, significand: u128| Magnitude::Finite { exponent, significand: (significand >> 64) as u64 };

    if exponent > rules.max_exponent {
        return match rules.overflow {
            Overflow::Wrap(bias) if exponent - bias > rules.max_exponent => {
                Rounded { negative, magnitude: Magnitude::Infinity, flags: Flags::OE | Flags::PE, up: true }
            }
            Overflow::Stop => Rounded { negative, magnitude: Magnitude::Infinity, flags: Flags::OE, up: false },
            Overflow::Saturate => {
                let up = match rules.rounding {
                    Rounding::Nearest => true,
                    Rounding::Down => negative,
                    Rounding::Up => !negative,
                    Rounding::Zero => false,
                };
                let largest = u128::MAX << (128 - rules.precision);
                let magnitude = if up { Magnitude::Infinity } else { finite(rules.max_exponent, largest) };
                Rounded { negative, magnitude, flags: Flags::OE | Flags::PE, up }
            }
            Overflow::Wrap(bias) => Rounded {
                negative,
                magnitude: finite(exponent - bias, first.significand),
                flags: Flags::OE | inexact,
                up: first.up,
            },
        };
    }
    if exponent >= rules.min_exponent {
        return Rounded { negative, magnitude: finite(exponent, first.significand), flags: inexact, up: first.up };
    }
    match rules.underflow {
        Underflow::Stop => Rounded { negative, magnitude: Magnitude::Zero, flags: Flags::UE, up: false },
        Underflow::Wrap(bias) if exponent + bias >= rules.min_exponent => Rounded {
            negative,
            magnitude: finite(exponent + bias, first.significand),
            flags: Flags::UE | inexact,
            up: first.up,
        },
        Underflow::Denormalize => {
            let distance = rules.min_exponent.abs_diff(x.exponent);
            let second = cut(shift_right_sticky(x.significand, distance), negative, rules);
            let flags = (Flags::UE | Flags::PE).when(second.inexact);
            let magnitude =
                if second.significand == 0 { Magnitude::Zero } else { finite(rules.min_exponent, second.significand) };
            Rounded { negative, magnitude, flags, up: second.up }
        }
        Underflow::Flush | Underflow::Wrap(_) => {
            Rounded { negative, magnitude: Magnitude::Zero, flags: Flags::UE | Flags::PE, up: false }
        }
    }
}

/// A number rounded to an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer {
    pub magnitude: u64,
    pub inexact: bool,
    /// Whether the magnitude was rounded up.
    pub up: bool,
}

/// The integer that a number rounds to. None if it does not fit 64 bits without a sign.
pub(crate) fn to_integer(x: Finite, rounding: Rounding) -> Option<Integer> {
    if x.exponent > 63 {
        return None;
    }
    // Sixty-four bits of integer above sixty-four of fraction.
    let fixed = shift_right_sticky(u128::from(x.significand) << 64, x.exponent.abs_diff(63));
    let (whole, low) = ((fixed >> 64) as u64, fixed & u128::from(u64::MAX));
    let up = rounds_up(rounding, x.negative, whole & 1 != 0, low, 1 << 63);
    Some(Integer { magnitude: whole.checked_add(u64::from(up))?, inexact: low != 0, up })
}
