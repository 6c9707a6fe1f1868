//! The status word: exceptions, condition codes, and the pointers to the last instruction.

use silicon_float::Flags;
use silicon_float::x87::{Destination, F80, Outcome};

use crate::core::Fpu;
use crate::op::Done;
use crate::{Core, Op};

/// Bits of the status word ("x87 FPU Status Register").
pub mod fsw {
    /// The six exceptions.
    pub const EXCEPTIONS: u16 = 0x3f;
    /// An invalid operation that is a stack fault.
    pub const SF: u16 = 1 << 6;
    /// Error summary: an exception that is not masked is pending.
    pub const ES: u16 = 1 << 7;
    pub const C0: u16 = 1 << 8;
    pub const C1: u16 = 1 << 9;
    pub const C2: u16 = 1 << 10;
    pub const C3: u16 = 1 << 14;
    /// Busy: mirrors ES.
    pub const B: u16 = 1 << 15;
    pub const CONDITIONS: u16 = C0 | C1 | C2 | C3;
}

/// A stack fault; C1 tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackFault {
    /// An operand is empty.
    Underflow,
    /// The register to push into is not.
    Overflow,
}

impl Fpu {
    /// Whether an exception that is not masked waits to be raised.
    #[inline(always)]
    #[must_use]
    pub fn exception_pending(&self) -> bool {
        self.fsw & fsw::ES != 0
    }

    /// Makes ES and B say whether one of the exceptions is not masked.
    #[inline(always)]
    pub fn summarize(&mut self) {
        let pending = self.fsw & !self.fcw & fsw::EXCEPTIONS != 0;
        self.fsw = self.fsw & !(fsw::ES | fsw::B) | if pending { fsw::ES | fsw::B } else { 0 };
    }

    /// Sets the condition codes in `mask` to `bits`.
    #[inline(always)]
    pub fn set_conditions(&mut self, mask: u16, bits: u16) {
        self.fsw = self.fsw & !mask | bits;
    }
}

impl Core {
    /// Completes a non-control instruction: merges its exceptions into the status word, sets C1, and notes where it
    /// was.
    #[inline(always)]
    pub(super) fn complete_x87(&mut self, op: &Op, flags: Flags, c1: bool) {
        self.note_x87_pointer(op);
        self.fpu.set_conditions(fsw::C1, if c1 { fsw::C1 } else { 0 });
        if !flags.is_empty() {
            self.merge_x87_exceptions(op, u16::from(flags.0));
        }
    }

    /// Notes the instruction and its memory operand in FIP and FDP.
    #[inline(always)]
    pub(super) fn note_x87_pointer(&mut self, op: &Op) {
        self.fpu.fip = self.this_rip(op);
        if op.b == HAS_MEMORY {
            self.fpu.fdp = self.address(op);
        }
    }

    fn merge_x87_exceptions(&mut self, op: &Op, flags: u16) {
        self.fpu.fsw |= flags;
        if flags & !self.fpu.fcw & fsw::EXCEPTIONS != 0 {
            self.fpu.summarize();
            self.fpu.fop = op.imm as u16;
        }
    }

    /// Completes an instruction with a stack fault; `response` is what it does where invalid operations are masked.
    #[cold]
    pub(super) fn stack_fault(&mut self, op: &Op, fault: StackFault, response: impl FnOnce(&mut Fpu)) -> Done {
        self.complete_stack_fault(op, fault);
        if self.stack_faults_masked() {
            response(&mut self.fpu);
        }
        Ok(())
    }

    /// The status of [`Core::stack_fault`] alone.
    pub(super) fn complete_stack_fault(&mut self, op: &Op, fault: StackFault) {
        self.complete_x87(op, Flags::NONE, fault == StackFault::Overflow);
        self.merge_x87_exceptions(op, u16::from(Flags::IE.0) | fsw::SF);
    }

    /// Whether a stack fault has a masked response.
    pub(super) fn stack_faults_masked(&self) -> bool {
        self.fpu.control().masked().contains(Flags::IE)
    }

    /// Completes an instruction whose result goes to ST(i), and then pops.
    #[inline(always)]
    pub(super) fn deliver_x87(&mut self, op: &Op, outcome: Outcome<F80>, i: u8, pops: u8) -> Done {
        if outcome.reaches(Destination::Register, self.fpu.control()) {
            self.fpu.set_stack(i, outcome.value);
            self.fpu.pop_stack(pops);
        }
        self.complete_x87(op, outcome.flags, outcome.c1);
        Ok(())
    }
}

/// [`Op::b`] of an x87 instruction with a memory operand.
pub const HAS_MEMORY: u8 = 1;
