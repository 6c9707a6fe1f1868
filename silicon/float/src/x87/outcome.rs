//! What an instruction leaves behind.

use crate::exact::Unrounded;
use crate::flags::Flags;
use crate::round::{Magnitude, round};
use crate::x87::control::ControlWord;
use crate::x87::format::F80;

/// Where a result goes, which decides what an unmasked overflow or underflow does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A register: it gets the result with an adjusted exponent.
    Register,
    /// A register that FLD pushes: the load happens even after a denormal operand.
    Push,
    /// Memory: it is left alone.
    Memory,
}

/// A result with the exceptions it raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// The result; the masked response if there were exceptions.
    pub value: T,
    /// The exceptions, to be merged into the status word.
    pub flags: Flags,
    /// C1: the result was rounded up.
    pub c1: bool,
}

impl<T> Outcome<T> {
    pub(crate) fn exact(value: T) -> Outcome<T> {
        Outcome { value, flags: Flags::NONE, c1: false }
    }

    pub(crate) fn with(value: T, flags: Flags) -> Outcome<T> {
        Outcome { value, flags, c1: false }
    }

    /// Whether the value is stored, and the stack pushed or popped.
    ///
    /// Source: Intel SDM volume 1, "x87 FPU Floating-Point Exception Conditions".
    pub fn reaches(&self, destination: Destination, control: ControlWord) -> bool {
        let unmasked = self.flags & !control.masked();
        let stopping = match destination {
            Destination::Register => Flags::BEFORE,
            Destination::Push => Flags::IE,
            Destination::Memory => Flags::BEFORE | Flags::OE | Flags::UE,
        };
        (unmasked & stopping).is_empty()
    }
}

/// Rounds to a register with `precision` bits, on top of the exceptions found before.
pub(crate) fn deliver(x: Unrounded, before: Flags, precision: u32, control: ControlWord) -> Outcome<F80> {
    let rounded = round(x, &control.rules(precision));
    let value = match rounded.magnitude {
        Magnitude::Zero => F80::zero(rounded.negative),
        Magnitude::Infinity => F80::infinity(rounded.negative),
        Magnitude::Finite { exponent, significand } => F80::packed(rounded.negative, exponent, significand),
    };
    Outcome { value, flags: before | rounded.flags, c1: rounded.up }
}
