//! Debug exceptions: single step and instruction breakpoints ("Debug Exceptions").
//!
//! The engine runs one instruction at a time while [`Core::debug_active`]:
//!
//! 1. before it: [`Core::instruction_breakpoint`], which on a hit leaves a fault to deliver;
//! 2. after it completed: [`Core::end_of_step`] with RFLAGS.TF as it was before;
//! 3. between instructions, where [`Core::pending_debug`]: [`Core::deliver_debug_trap`].
//!
//! Data breakpoints are not modelled.

use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::index;

use crate::core::Fault;
use crate::{Core, Leave};

/// Bits of DR6 ("Debug Status Register (DR6)").
pub mod dr6 {
    pub const BREAKPOINTS: u64 = 0xf;
    /// Debug-register access detected.
    pub const BD: u64 = 1 << 13;
    /// Single step.
    pub const BS: u64 = 1 << 14;
    pub const BT: u64 = 1 << 15;
    /// Bits that always read as one.
    pub const FIXED: u64 = 0xffff_0ff0;
}

/// Bits of DR7 ("Debug Control Register (DR7)").
pub mod dr7 {
    /// Local and global enables of the four breakpoints.
    pub const ENABLES: u64 = 0xff;
    /// General detect enable.
    pub const GD: u64 = 1 << 13;
    /// Bit that always reads as one.
    pub const FIXED: u64 = 1 << 10;
}

/// Sets DR6 as a delivered #DB does, and clears DR7.GD.
pub(super) fn report(core: &mut Core, bits: u64) {
    core.dr[6] = (core.dr[6] & !dr6::BREAKPOINTS) | bits | dr6::FIXED;
    core.dr[7] &= !dr7::GD;
}

impl Core {
    /// Whether instructions must be executed one at a time, with looks at debug events in between.
    #[inline]
    #[must_use]
    pub fn debug_active(&self) -> bool {
        self.rflags_rest & rflags::TF != 0 || self.dr[7] & dr7::ENABLES != 0 || self.pending_debug()
    }

    /// Whether a debug trap waits.
    #[inline]
    #[must_use]
    pub fn pending_debug(&self) -> bool {
        self.events.pending_debug != 0
    }

    /// Looks for an enabled instruction breakpoint at [`Core::rip`].
    ///
    /// # Errors
    /// [`Leave::Fault`] with #DB in [`Core::fault`].
    pub fn instruction_breakpoint(&mut self) -> Result<(), Leave> {
        if self.dr[7] & dr7::ENABLES == 0 || self.rflags_rest & rflags::RF != 0 {
            return Ok(());
        }
        let base = if self.mode.is_64() { 0 } else { self.seg[index::CS].base };
        let linear = base.wrapping_add(self.rip) & self.mode.rip_mask;
        let mut hits = 0;
        let mut enabled_hit = false;
        for i in 0..4 {
            let is_execution = self.dr[7] >> (16 + i * 4) & 0xf == 0;
            if is_execution && self.dr[i] == linear {
                hits |= 1 << i;
                enabled_hit |= self.dr[7] >> (i * 2) & 3 != 0;
            }
        }
        // A blocking MOV SS also holds off breakpoints on the instruction after it.
        if !enabled_hit || self.events.mov_ss_shadow {
            return Ok(());
        }
        self.fault = Fault { vector: vector::DB, error_code: None, address: hits };
        Err(Leave::Fault)
    }

    /// Ends an instruction that completed: RF is cleared, and a single-step trap becomes pending where `before` (RFLAGS
    /// when the instruction began) has TF.
    pub fn end_of_step(&mut self, before: u64) {
        let no_step = std::mem::take(&mut self.events.no_step);
        // IRET and POPF may have set RF for the next instruction.
        if before & rflags::RF != 0 {
            self.rflags_rest &= !rflags::RF;
        }
        if before & rflags::TF != 0 && !no_step && !self.events.mov_ss_shadow {
            self.events.pending_debug |= dr6::BS;
        }
    }

    /// Delivers the waiting debug trap, [`Core::rip`] being the next instruction.
    ///
    /// # Errors
    /// [`Leave::Exit`] as for [`Core::deliver_fault`].
    pub fn deliver_debug_trap(&mut self) -> Result<(), Leave> {
        let bits = std::mem::take(&mut self.events.pending_debug);
        if bits == 0 {
            return Ok(());
        }
        self.fault = Fault { vector: vector::DB, error_code: None, address: bits };
        self.deliver_fault()
    }
}
