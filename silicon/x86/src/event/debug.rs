//! Debug exceptions: single step and instruction breakpoints ("Debug Exceptions").
//!
//! The engine runs one instruction at a time while [`Core::debug_active`]:
//!
//! 1. before it: [`Core::instruction_breakpoint`], which on a hit leaves a fault to deliver;
//! 2. after it completed: [`Core::end_of_step`] with RFLAGS.TF as it was before;
//! 3. between instructions, where [`Core::pending_debug`]: [`Core::deliver_debug_trap`].
//!
//! Data breakpoints are compared where memory is accessed ([`crate::mem::Watch`]), I/O breakpoints by IN and OUT.

use x86_defs::control::cr4;
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

    /// What a breakpoint waits for: its R/W field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Condition {
        Execute,
        Write,
        /// I/O with CR4.DE; without it undefined, and never met here.
        Port,
        ReadWrite,
    }

    /// One of the four breakpoints, as DR7 describes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Breakpoint {
        /// Locally or globally.
        pub enabled: bool,
        pub condition: Condition,
        /// Length: 1, 2, 4 or 8. The address is aligned to it.
        pub bytes: u64,
    }

    impl Breakpoint {
        /// Breakpoint `i`, 0 to 3.
        #[must_use]
        pub const fn of(dr7: u64, i: usize) -> Self {
            let field = dr7 >> (16 + i * 4);
            let condition = match field & 3 {
                0 => Condition::Execute,
                1 => Condition::Write,
                2 => Condition::Port,
                _ => Condition::ReadWrite,
            };
            let bytes = match field >> 2 & 3 {
                0 => 1,
                1 => 2,
                2 => 8,
                _ => 4,
            };
            Self { enabled: dr7 >> (i * 2) & 3 != 0, condition, bytes }
        }
    }
}

/// Bits of IA32_DEBUGCTL ("IA32_DEBUGCTL MSR").
pub mod debugctl {
    /// Last-branch records.
    pub const LBR: u64 = 1 << 0;
    /// Single-step on branches.
    pub const BTF: u64 = 1 << 1;
}

/// How an instruction that completed left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next instruction; or an iteration of a repeated string instruction is done.
    Straight,
    /// By a branch that was taken.
    Branch,
}

/// Bits of the guest pending debug exceptions that DR6 does not have ("Guest Non-Register State").
mod pending {
    pub const ENABLED_BREAKPOINT: u64 = 1 << 12;
}

/// Sets DR6 as a delivered #DB does, and clears DR7.GD.
pub(super) fn report(core: &mut Core, bits: u64) {
    core.dr[6] = (core.dr[6] & !dr6::BREAKPOINTS) | bits | dr6::FIXED;
    core.dr[7] &= !dr7::GD;
    core.msrs.debugctl &= !(debugctl::BTF | debugctl::LBR);
}

impl Core {
    /// Whether instructions must be executed one at a time, with looks at debug events in between.
    #[inline]
    #[must_use]
    pub fn debug_active(&self) -> bool {
        self.rflags_rest & rflags::TF != 0 || self.execution_breakpoints() || self.pending_debug()
    }

    /// Whether a breakpoint on execution is enabled.
    #[inline]
    fn execution_breakpoints(&self) -> bool {
        self.dr[7] & dr7::ENABLES != 0
            && (0..4)
                .map(|i| dr7::Breakpoint::of(self.dr[7], i))
                .any(|b| b.enabled && b.condition == dr7::Condition::Execute)
    }

    /// Before an instruction that is not executed alone: RF ends with it, and no breakpoint looks at RF before.
    pub fn end_resume(&mut self) {
        if self.rflags_rest & rflags::RF != 0 {
            self.rflags_rest &= !rflags::RF;
        }
    }

    /// Makes a trap pending of the data and I/O breakpoints that were hit.
    pub fn collect_hits(&mut self) {
        let hits = std::mem::take(&mut self.mmu.watch.hits);
        if hits != 0 {
            self.vmx.pending_debug |= hits | pending::ENABLED_BREAKPOINT;
        }
    }

    /// The I/O breakpoints that an access of `bytes` at `port` hits, as in DR6.
    #[must_use]
    pub fn port_breakpoints(&self, port: u16, bytes: u8) -> u64 {
        if self.dr[7] & dr7::ENABLES == 0 || self.cr4 & cr4::DE == 0 {
            return 0;
        }
        let mut hits = 0;
        let (first, last) = (u64::from(port), u64::from(port) + u64::from(bytes) - 1);
        for i in 0..4 {
            let b = dr7::Breakpoint::of(self.dr[7], i);
            let start = self.dr[i] & !(b.bytes - 1);
            let within = first <= start.saturating_add(b.bytes - 1) && last >= start;
            if b.enabled && b.condition == dr7::Condition::Port && within {
                hits |= 1 << i;
            }
        }
        hits
    }

    /// Lets the I/O breakpoints that an access hits trap after it.
    ///
    /// # Errors
    /// [`Leave::End`]: there are some, and the instruction, which has completed, is the last of its block.
    pub fn trap_on_port(&mut self, port: u16, bytes: u8) -> Result<(), Leave> {
        let hits = self.port_breakpoints(port, bytes);
        if hits == 0 {
            return Ok(());
        }
        self.mmu.watch.hits |= hits;
        self.events.attention = true;
        Err(Leave::End)
    }

    /// Whether a debug trap waits ([`crate::vmx::Vmx::pending_debug`]).
    #[inline]
    #[must_use]
    pub fn pending_debug(&self) -> bool {
        self.vmx.pending_debug & (pending::ENABLED_BREAKPOINT | dr6::BS) != 0
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
            let b = dr7::Breakpoint::of(self.dr[7], i);
            if b.condition == dr7::Condition::Execute && self.dr[i] == linear {
                hits |= 1 << i;
                enabled_hit |= b.enabled;
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
    pub fn end_of_step(&mut self, before: u64, step: Step) {
        let no_step = std::mem::take(&mut self.events.no_step);
        // IRET and POPF may have set RF for the next instruction.
        if before & rflags::RF != 0 {
            self.rflags_rest &= !rflags::RF;
        }
        let branches_only = self.msrs.debugctl & debugctl::BTF != 0;
        let traps = step == Step::Branch || !branches_only;
        if before & rflags::TF != 0 && traps && !no_step && !self.events.mov_ss_shadow {
            self.vmx.pending_debug |= dr6::BS;
        }
    }

    /// Delivers the waiting debug trap, [`Core::rip`] being the next instruction.
    ///
    /// # Errors
    /// [`Leave::Exit`] as for [`Core::deliver_fault`].
    pub fn deliver_debug_trap(&mut self) -> Result<(), Leave> {
        // A MOV SS holds a trap off until the instruction after it has completed.
        if !self.pending_debug() || self.events.mov_ss_shadow {
            return Ok(());
        }
        let bits = std::mem::take(&mut self.vmx.pending_debug);
        let address = bits & (dr6::BREAKPOINTS | dr6::BS);
        self.fault = Fault { vector: vector::DB, error_code: None, address };
        self.deliver_fault()
    }
}
