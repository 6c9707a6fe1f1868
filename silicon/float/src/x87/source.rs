//! Operands that an arithmetic instruction reads: a register, or single or double precision in memory.

use crate::sse::format::Layout;
use crate::sse::{F32, F64, Float};
use crate::x87::format::{F80, Operand};

/// An operand. One in memory is widened without an exception of its own: a signalling NaN or a denormal counts in the
/// operation, by its rules and priorities. Integers are exact: use [`crate::x87::from_i16`] or
/// [`crate::x87::from_i32`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A register.
    Register(F80),
    /// The bits of a single precision number, as of FADD m32.
    Single(u32),
    /// The bits of a double precision number, as of FADD m64.
    Double(u64),
}

impl From<F80> for Source {
    fn from(register: F80) -> Source {
        Source::Register(register)
    }
}

impl From<Source> for Operand {
    fn from(source: Source) -> Operand {
        let (pattern, denormal) = match source {
            Source::Register(register) => return Operand::new(register),
            Source::Single(bits) => widen::<F32>(u64::from(bits)),
            Source::Double(bits) => widen::<F64>(bits),
        };
        Operand { denormal, ..Operand::new(pattern) }
    }
}

/// The same number or NaN in the double extended format, and whether it was a denormal.
pub(crate) fn widen<F: Float>(bits: u64) -> (F80, bool) {
    let negative = bits & F::SIGN != 0;
    let field = bits >> F::FRACTION_BITS & F::EXPONENT_FIELD;
    let significand = (bits & F::FRACTION) << (63 - F::FRACTION_BITS);
    if field == F::EXPONENT_FIELD {
        let infinity = F80::infinity(negative);
        return (F80 { significand: infinity.significand | significand, ..infinity }, false);
    }
    if field != 0 {
        return (F80::packed(negative, field as i32 - F::MAX_EXPONENT, 1 << 63 | significand), false);
    }
    if significand == 0 {
        return (F80::zero(negative), false);
    }
    let shift = significand.leading_zeros();
    (F80::packed(negative, F::MIN_EXPONENT - shift as i32, significand << shift), true)
}
