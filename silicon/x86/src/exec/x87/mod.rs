//! The x87 FPU: its register stack, exceptions and instructions. The arithmetic is [`silicon_float::x87`].
//!
//! An exception that is not masked is left pending in the status word; the next waiting instruction raises it as #MF.
//! Where CR0.NE is clear, hardware would signal it at the FERR# pin instead, and freeze until an interrupt or IGNNE#
//! arrives; there is no such wiring here, so it stays pending and execution goes on, as with IGNNE# asserted.
//!
//! FIP and FDP follow every non-control instruction (FDP: those with a memory operand), FOP only those that cause an
//! exception that is not masked. FCS and FDS are not kept: CPUID must enumerate "Deprecates FPU CS and FPU DS values".
//!
//! Source: Intel SDM volume 1, "Programming with the x87 FPU".

pub mod arithmetic;
pub mod compare;
pub mod control;
pub mod environment;
pub mod load;
pub mod memory;
pub mod moves;
pub mod stack;
pub mod status;
pub mod store;
pub mod transcendental;
pub mod unary;

#[cfg(test)]
mod tests;

use x86_defs::control::cr0;
use x86_defs::exception::vector;

use crate::op::Done;
use crate::{Core, Leave, Op};

impl Core {
    /// What a waiting x87 instruction starts with: #NM for CR0.EM and CR0.TS, #MF for a pending exception.
    #[inline(always)]
    pub fn begin_x87(&mut self) -> Result<(), Leave> {
        if self.mode.x87_usable && !self.fpu.exception_pending() { Ok(()) } else { self.begin_x87_slow() }
    }

    /// What an x87 instruction that does not wait starts with: #NM for CR0.EM and CR0.TS.
    #[inline(always)]
    pub fn begin_x87_without_wait(&mut self) -> Result<(), Leave> {
        if self.mode.x87_usable { Ok(()) } else { Err(self.raise(vector::NM)) }
    }

    #[cold]
    #[inline(never)]
    fn begin_x87_slow(&mut self) -> Result<(), Leave> {
        self.begin_x87_without_wait()?;
        self.raise_pending_x87()
    }

    /// #MF for a pending exception, where CR0.NE has it reported that way.
    fn raise_pending_x87(&mut self) -> Result<(), Leave> {
        if self.fpu.exception_pending() && self.cr0 & cr0::NE != 0 { Err(self.raise(vector::MF)) } else { Ok(()) }
    }
}

/// WAIT: #NM for CR0.TS where CR0.MP says so, then #MF for a pending exception.
pub fn wait(core: &mut Core, _: &Op) -> Done {
    if core.cr0 & (cr0::MP | cr0::TS) == cr0::MP | cr0::TS {
        return Err(core.raise(vector::NM));
    }
    core.raise_pending_x87()
}
