//! The control word.

use crate::flags::{Flags, Rounding};
use crate::round::{Overflow, Rules, Underflow};

/// The x87 control word. Source: Intel SDM volume 1, "x87 FPU Control Word".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlWord(pub u16);

/// What the exponent of a result is adjusted by when overflow or underflow is not masked.
const BIAS_ADJUST: i32 = 24576;

pub(crate) const MIN_EXPONENT: i32 = -16382;
pub(crate) const MAX_EXPONENT: i32 = 16383;

impl Default for ControlWord {
    fn default() -> ControlWord {
        ControlWord(ControlWord::INIT)
    }
}

impl ControlWord {
    /// The value after FNINIT: all exceptions masked, 64 bits of precision, round to nearest.
    pub const INIT: u16 = 0x037f;

    /// The exceptions that are masked.
    pub fn masked(self) -> Flags {
        Flags((self.0 & 0x3f) as u8)
    }

    /// RC.
    pub fn rounding(self) -> Rounding {
        Rounding::from_rc(u32::from(self.0 >> 10))
    }

    /// The bits of significand that PC leaves to add, subtract, multiply, divide and square root. The reserved
    /// encoding counts as 64.
    pub fn precision(self) -> u32 {
        match self.0 >> 8 & 3 {
            0 => 24,
            2 => 53,
            _ => 64,
        }
    }

    /// Whether an exception found before the operation is not masked.
    pub(crate) fn stops(self, flags: Flags) -> bool {
        !(flags & Flags::BEFORE & !self.masked()).is_empty()
    }

    /// Rounding into a register.
    pub(crate) fn rules(self, precision: u32) -> Rules {
        let masked = self.masked();
        Rules {
            precision,
            min_exponent: MIN_EXPONENT,
            max_exponent: MAX_EXPONENT,
            rounding: self.rounding(),
            underflow: if masked.contains(Flags::UE) { Underflow::Denormalize } else { Underflow::Wrap(BIAS_ADJUST) },
            overflow: if masked.contains(Flags::OE) { Overflow::Saturate } else { Overflow::Wrap(BIAS_ADJUST) },
        }
    }
}
