//! CMPSS, CMPSD with their thirty-two predicates, and COMISS, UCOMISS and their kin.

use std::cmp::Ordering;

use crate::flags::Flags;
use crate::mxcsr::Mxcsr;
use crate::sse::format::{Float, Operand};
use crate::sse::native::is_plain;

/// How two operands compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering4 {
    /// One is a NaN.
    Unordered,
    /// The first is less.
    Less,
    /// They are equal; so are zeros of either sign.
    Equal,
    /// The first is greater.
    Greater,
}

/// Which NaNs make a comparison invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signalling {
    /// Signalling NaNs only: UCOMISS.
    Quiet,
    /// Every NaN: COMISS.
    Signalling,
}

impl From<Ordering> for Ordering4 {
    #[inline]
    fn from(ordering: Ordering) -> Ordering4 {
        match ordering {
            Ordering::Less => Ordering4::Less,
            Ordering::Equal => Ordering4::Equal,
            Ordering::Greater => Ordering4::Greater,
        }
    }
}

/// COMISS, COMISD (signalling), UCOMISS, UCOMISD (quiet): compares `a` with `b`.
#[inline]
pub fn comi<F: Float>(a: F::Bits, b: F::Bits, signalling: Signalling, mxcsr: &mut Mxcsr) -> Ordering4 {
    if is_plain::<F>(a)
        && is_plain::<F>(b)
        && let Some(ordering) = F::native_compare(a, b)
    {
        return ordering.into();
    }
    comi_slow::<F>(a, b, signalling, mxcsr)
}

#[cold]
fn comi_slow<F: Float>(a: F::Bits, b: F::Bits, signalling: Signalling, mxcsr: &mut Mxcsr) -> Ordering4 {
    let (a, b) = (Operand::new::<F>(a, *mxcsr), Operand::new::<F>(b, *mxcsr));
    if a.is_nan() || b.is_nan() {
        let invalid = signalling == Signalling::Signalling || a.is_signalling::<F>() || b.is_signalling::<F>();
        mxcsr.raise(Flags::IE.when(invalid));
        return Ordering4::Unordered;
    }
    mxcsr.raise(a.denormal_flag() | b.denormal_flag());
    F::native_compare(F::from_u64(a.bits), F::from_u64(b.bits)).map_or(Ordering4::Unordered, Ordering4::from)
}

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// The relations that make each of the first sixteen predicates true.
const TRUE_WHEN: [u8; 16] = [
    EQUAL,                              // EQ_OQ
    LESS,                               // LT_OS
    LESS | EQUAL,                       // LE_OS
    UNORDERED,                          // UNORD_Q
    LESS | GREATER | UNORDERED,         // NEQ_UQ
    EQUAL | GREATER | UNORDERED,        // NLT_US
    GREATER | UNORDERED,                // NLE_US
    LESS | EQUAL | GREATER,             // ORD_Q
    EQUAL | UNORDERED,                  // EQ_UQ
    LESS | UNORDERED,                   // NGE_US
    LESS | EQUAL | UNORDERED,           // NGT_US
    0,                                  // FALSE_OQ
    LESS | GREATER,                     // NEQ_OQ
    EQUAL | GREATER,                    // GE_OS
    GREATER,                            // GT_OS
    LESS | EQUAL | GREATER | UNORDERED, // TRUE_UQ
];

/// Which of the first sixteen predicates signal on a quiet NaN. The second sixteen are the same with this reversed.
const SIGNALS: u16 = 0b0110_0110_0110_0110;

/// CMPSS, CMPSD, VCMPSS, VCMPSD: whether `predicate` (its low five bits) holds for `a` and `b`.
///
/// Source: Intel SDM volume 2, "CMPPD—Compare Packed Double Precision Floating-Point Values", comparison predicates.
#[inline]
pub fn cmp<F: Float>(a: F::Bits, b: F::Bits, predicate: u8, mxcsr: &mut Mxcsr) -> bool {
    let row = usize::from(predicate & 15);
    let signals = (SIGNALS >> row & 1 != 0) != (predicate & 16 != 0);
    let signalling = if signals { Signalling::Signalling } else { Signalling::Quiet };
    let relation = match comi::<F>(a, b, signalling, mxcsr) {
        Ordering4::Less => LESS,
        Ordering4::Equal => EQUAL,
        Ordering4::Greater => GREATER,
        Ordering4::Unordered => UNORDERED,
    };
    TRUE_WHEN[row] & relation != 0
}
