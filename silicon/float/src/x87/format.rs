//! The double extended format, with the encodings that only the x87 unit knows.

use crate::exact::Finite;
use crate::flags::Flags;
use crate::x87::control::{MAX_EXPONENT, MIN_EXPONENT};
use crate::x87::outcome::Outcome;

/// A register: any 80-bit pattern, as FXSAVE and FSTP m80 store it.
///
/// Source: Intel SDM volume 1, "x87 FPU Data Types" and "Unsupported Double Extended-Precision Floating-Point
/// Encodings and Pseudo-Denormals".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct F80 {
    /// The significand with its explicit integer bit, bit 63.
    pub significand: u64,
    /// The sign, bit 15, and the biased exponent.
    pub sign_exponent: u16,
}

const SIGN: u16 = 0x8000;
const EXPONENT: u16 = 0x7fff;
const INTEGER_BIT: u64 = 1 << 63;
const QUIET_BIT: u64 = 1 << 62;

impl F80 {
    /// Plus zero.
    pub const ZERO: F80 = F80 { significand: 0, sign_exponent: 0 };
    /// One.
    pub const ONE: F80 = F80 { significand: INTEGER_BIT, sign_exponent: 0x3fff };
    /// "QNaN floating-point indefinite", the response to an invalid operation.
    pub const INDEFINITE: F80 = F80 { significand: INTEGER_BIT | QUIET_BIT, sign_exponent: 0xffff };

    /// From the ten bytes in memory.
    pub fn from_bytes(bytes: [u8; 10]) -> F80 {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        F80 { significand: u64::from_le_bytes([a, b, c, d, e, f, g, h]), sign_exponent: u16::from_le_bytes([i, j]) }
    }

    /// The ten bytes in memory.
    pub fn to_bytes(self) -> [u8; 10] {
        let [a, b, c, d, e, f, g, h] = self.significand.to_le_bytes();
        let [i, j] = self.sign_exponent.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }

    /// Whether the sign bit is set.
    pub fn is_negative(self) -> bool {
        self.sign_exponent & SIGN != 0
    }

    /// FCHS: flips the sign bit of any pattern.
    pub fn chs(self) -> F80 {
        F80 { sign_exponent: self.sign_exponent ^ SIGN, ..self }
    }

    /// FABS: clears the sign bit of any pattern.
    pub fn abs(self) -> F80 {
        F80 { sign_exponent: self.sign_exponent & EXPONENT, ..self }
    }

    pub(crate) fn zero(negative: bool) -> F80 {
        F80 { significand: 0, sign_exponent: sign(negative) }
    }

    pub(crate) fn infinity(negative: bool) -> F80 {
        F80 { significand: INTEGER_BIT, sign_exponent: sign(negative) | EXPONENT }
    }

    /// From the parts of a rounded number. An exponent that even the adjustment of an unmasked overflow or underflow
    /// did not bring into range gives an infinity or a zero.
    pub(crate) fn packed(negative: bool, exponent: i32, significand: u64) -> F80 {
        if exponent > MAX_EXPONENT {
            return F80::infinity(negative);
        }
        if exponent < MIN_EXPONENT {
            return F80::zero(negative);
        }
        let normal = significand & INTEGER_BIT != 0;
        let field = if normal { (exponent + MAX_EXPONENT) as u16 } else { 0 };
        F80 { significand, sign_exponent: sign(negative) | field }
    }

    fn quieted(self) -> F80 {
        F80 { significand: self.significand | QUIET_BIT, ..self }
    }

    fn is_signalling(self) -> bool {
        self.significand & QUIET_BIT == 0
    }
}

fn sign(negative: bool) -> u16 {
    if negative { SIGN } else { 0 }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Zero,
    Finite(Finite),
    Infinity,
    Nan,
    /// Pseudo-NaN, pseudo-infinity or unnormal: an invalid operand.
    Unsupported,
}

/// A pattern, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub pattern: F80,
    pub negative: bool,
    pub value: Value,
    /// A denormal or pseudo-denormal.
    pub denormal: bool,
}

impl Operand {
    pub fn new(pattern: F80) -> Operand {
        let negative = pattern.is_negative();
        let field = pattern.sign_exponent & EXPONENT;
        let significand = pattern.significand;
        let denormal = field == 0 && significand != 0;
        let value = if field == 0 {
            if denormal { Value::Finite(Finite::normalized(negative, MIN_EXPONENT, significand)) } else { Value::Zero }
        } else if significand & INTEGER_BIT == 0 {
            Value::Unsupported
        } else if field == EXPONENT {
            if significand == INTEGER_BIT { Value::Infinity } else { Value::Nan }
        } else {
            Value::Finite(Finite { negative, exponent: i32::from(field) - MAX_EXPONENT, significand })
        };
        Operand { pattern, negative, value, denormal }
    }

    pub fn negate(self) -> Operand {
        Operand { denormal: self.denormal, ..Operand::new(self.pattern.chs()) }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self.value, Value::Zero)
    }

    pub fn is_infinity(&self) -> bool {
        matches!(self.value, Value::Infinity)
    }

    pub fn is_nan(&self) -> bool {
        matches!(self.value, Value::Nan)
    }

    pub fn is_unsupported(&self) -> bool {
        matches!(self.value, Value::Unsupported)
    }

    pub fn is_signalling(&self) -> bool {
        self.is_nan() && self.pattern.is_signalling()
    }

    pub fn denormal_flag(&self) -> Flags {
        Flags::DE.when(self.denormal)
    }
}

/// The response to an invalid operation.
pub(crate) fn invalid() -> Outcome<F80> {
    Outcome::with(F80::INDEFINITE, Flags::IE)
}

/// The outcome if an operand is unsupported or a NaN.
///
/// Source: Intel SDM volume 1, "Rules for handling NaNs".
pub(crate) fn propagate_one(a: &Operand) -> Option<Outcome<F80>> {
    match a.value {
        Value::Unsupported => Some(invalid()),
        Value::Nan => Some(Outcome::with(a.pattern.quieted(), Flags::IE.when(a.is_signalling()))),
        _ => None,
    }
}

/// The outcome if one of two operands is unsupported or a NaN: of two NaNs the quiet one, else the one with the larger
/// significand, else the positive one.
pub(crate) fn propagate(a: &Operand, b: &Operand) -> Option<Outcome<F80>> {
    if a.is_unsupported() || b.is_unsupported() {
        return Some(invalid());
    }
    if !b.is_nan() {
        return propagate_one(a);
    }
    if !a.is_nan() {
        return propagate_one(b);
    }
    let flags = Flags::IE.when(a.is_signalling() || b.is_signalling());
    let rank = |x: &Operand| (!x.is_signalling(), x.pattern.significand, !x.negative);
    let chosen = if rank(a) >= rank(b) { a } else { b };
    Some(Outcome::with(chosen.pattern.quieted(), flags))
}
