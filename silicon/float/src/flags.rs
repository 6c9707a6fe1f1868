//! Exception flags and rounding modes, in the positions that MXCSR and the x87 status word share.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of floating-point exceptions, in the bit order of MXCSR and of the x87 status word.
///
/// Source: Intel SDM volume 1, "MXCSR Control and Status Register" and "x87 FPU Status Register".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No exception.
    pub const NONE: Flags = Flags(0);
    /// Invalid operation.
    pub const IE: Flags = Flags(1 << 0);
    /// Denormal operand.
    pub const DE: Flags = Flags(1 << 1);
    /// Division of a finite number by zero.
    pub const ZE: Flags = Flags(1 << 2);
    /// Overflow.
    pub const OE: Flags = Flags(1 << 3);
    /// Underflow.
    pub const UE: Flags = Flags(1 << 4);
    /// Inexact result (precision).
    pub const PE: Flags = Flags(1 << 5);
    /// Every exception.
    pub const ALL: Flags = Flags(0x3f);
    /// The exceptions that are found before the operation is done.
    pub const BEFORE: Flags = Flags(0x07);

    /// Whether every flag of `other` is set.
    #[inline]
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no flag is set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// `self` where `condition` holds, else nothing.
    #[inline]
    pub(crate) fn when(self, condition: bool) -> Flags {
        if condition { self } else { Flags::NONE }
    }
}

impl BitOr for Flags {
    type Output = Flags;
    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    #[inline]
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

impl Not for Flags {
    type Output = Flags;
    #[inline]
    fn not(self) -> Flags {
        Flags(!self.0 & Flags::ALL.0)
    }
}

/// How an inexact result is rounded: the encoding of the RC fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the nearest, ties to even.
    Nearest = 0,
    /// Towards minus infinity.
    Down = 1,
    /// Towards plus infinity.
    Up = 2,
    /// Towards zero.
    Zero = 3,
}

impl Rounding {
    /// The mode that the low two bits of `rc` select.
    #[inline]
    pub fn from_rc(rc: u32) -> Rounding {
        match rc & 3 {
            0 => Rounding::Nearest,
            1 => Rounding::Down,
            2 => Rounding::Up,
            _ => Rounding::Zero,
        }
    }
}
