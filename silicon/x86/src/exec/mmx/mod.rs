//! MMX, and the instructions of SSE that use MMX registers.
//!
//! MMX register n is the significand of the physical x87 register n. Every instruction sets TOP to 0, and all but
//! EMMS set all tags to valid; a write sets sign and exponent to all ones ("The MMX State and MMX Register Aliasing").

pub mod apply;

use x86_defs::control::cr0;
use x86_defs::exception::vector;

use crate::op::Done;
use crate::{Core, Leave, Op};

/// FSW.ES: an unmasked x87 exception is pending.
const ERROR_SUMMARY: u16 = 1 << 7;
const TOP: u16 = 7 << 11;

impl Core {
    /// Raises what an MMX instruction raises for CR0.EM, CR0.TS and a pending x87 exception.
    #[inline(always)]
    pub fn check_mmx(&mut self) -> Result<(), Leave> {
        if self.mode.x87_usable && self.fpu.fsw & ERROR_SUMMARY == 0 { Ok(()) } else { Err(self.mmx_unusable()) }
    }

    #[cold]
    #[inline(never)]
    fn mmx_unusable(&mut self) -> Leave {
        let vector = if self.cr0 & cr0::EM != 0 {
            vector::UD
        } else if self.cr0 & cr0::TS != 0 {
            vector::NM
        } else {
            vector::MF
        };
        self.raise(vector)
    }

    /// From x87 to MMX.
    #[inline(always)]
    pub fn enter_mmx(&mut self) {
        self.fpu.fsw &= !TOP;
        self.fpu.ftw = 0xff;
    }

    /// An MMX register.
    #[inline(always)]
    #[must_use]
    pub fn mm(&self, slot: u8) -> u64 {
        self.fpu.st[(slot & 7) as usize].significand
    }

    /// Enters MMX and sets a register.
    #[inline(always)]
    pub fn set_mm(&mut self, slot: u8, value: u64) {
        self.enter_mmx();
        let register = &mut self.fpu.st[(slot & 7) as usize];
        register.significand = value;
        register.sign_exponent = 0xffff;
    }
}

/// EMMS: all x87 registers become empty, TOP becomes 0.
pub fn emms(core: &mut Core, _: &Op) -> Done {
    core.check_mmx()?;
    core.enter_mmx();
    core.fpu.ftw = 0;
    Ok(())
}
