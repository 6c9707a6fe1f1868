//! The architectural state of a logical processor in VMX non-root mode, and what the engine needs beside it.

pub mod access;
pub mod fault;
pub mod flags;
pub mod fpu;
pub mod mode;
pub mod msrs;
pub mod segment;

use std::sync::Arc;

use silicon_memory::PhysicalMemory;

pub use fault::Fault;
pub use flags::Flags;
pub use fpu::Fpu;
pub use mode::Mode;
pub use msrs::Msrs;
pub use segment::{SegmentRegister, TableRegister};

use crate::cost::Counters;
use crate::event::Events;
use crate::mem::Mmu;
use crate::model::Model;
use crate::op::BLOCK_RIP;
use crate::vmx::Vmx;

/// A logical processor: everything that an instruction may read or change.
pub struct Core {
    /// General registers 0-15; 16 is always zero, 17 the RIP of the running block ([`crate::op::ZERO`],
    /// [`crate::op::BLOCK_RIP`]); the rest is unused and makes every 5-bit index valid.
    pub gpr: [u64; 32],
    /// CF, PF, AF, ZF, SF and OF. The other bits of RFLAGS are in [`Core::rflags_rest`]; use [`Core::rflags`] for all.
    pub flags: Flags,
    /// RFLAGS without the six arithmetic flags (bit 1 set). Change it with [`Core::set_rflags`].
    pub rflags_rest: u64,
    /// RIP of the next instruction between blocks. Inside of a block only branches set it (see [`Core::next_rip`]).
    pub rip: u64,
    /// What privilege, segmentation and paging amount to now; recomputed by [`Core::update_mode`].
    pub mode: Mode,
    /// ES, CS, SS, DS, FS, GS, LDTR, TR ([`x86_defs::segment::index`]).
    pub seg: [SegmentRegister; 8],
    pub gdtr: TableRegister,
    pub idtr: TableRegister,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub efer: u64,
    /// CR8, which is the TPR only where the VMCS has a TPR shadow; otherwise CR8 accesses exit.
    pub dr: [u64; 8],
    pub msrs: Msrs,
    pub fpu: Fpu,

    /// Translation: the modelled TLB and its counters.
    pub mmu: Mmu,
    pub memory: Arc<PhysicalMemory>,
    /// What the processor is: CPUID of the hardware, and which features instructions may use.
    pub model: Arc<Model>,
    pub vmx: Vmx,
    /// Pending and blocked events.
    pub events: Events,
    /// The exception that [`crate::Leave::Fault`] speaks of.
    pub fault: Fault,

    /// Quarter cycles until the next deadline; runs down. See [`Core::now_quarter_cycles`].
    pub budget: i64,
    /// The deadline that `budget` runs down to, in quarter cycles since power-on.
    pub deadline: u64,
    /// Cost of the running block's dynamic events (TLB misses, VM-exits), in quarter cycles, not yet taken off `budget`.
    pub stall: u64,
    /// Exact counts.
    pub count: Counters,
    /// An instruction that must be executed alone may store to the page it was fetched from.
    pub self_modify: bool,
}

impl Core {
    /// RIP of the instruction after `op`, which must belong to the running block.
    #[inline(always)]
    #[must_use]
    pub fn next_rip(&self, op: &crate::Op) -> u64 {
        self.gpr[BLOCK_RIP as usize].wrapping_add(op.next_off()) & self.mode.rip_mask
    }

    /// RIP of `op`, which must belong to the running block.
    #[inline(always)]
    #[must_use]
    pub fn this_rip(&self, op: &crate::Op) -> u64 {
        self.gpr[BLOCK_RIP as usize].wrapping_add(u64::from(op.off)) & self.mode.rip_mask
    }

    /// All of RFLAGS.
    #[must_use]
    pub fn rflags(&self) -> u64 {
        self.rflags_rest | self.flags.bits()
    }

    /// Sets all of RFLAGS (bit 1 is forced to one, bits that do not exist to zero) and recomputes the mode where AC
    /// or VM changed.
    pub fn set_rflags(&mut self, value: u64) {
        use x86_defs::rflags;
        self.flags.set_bits(value);
        let rest = (value & rflags::DEFINED & !rflags::STATUS) | rflags::FIXED;
        let changed = rest ^ self.rflags_rest;
        self.rflags_rest = rest;
        if changed & (rflags::AC | rflags::VM | rflags::TF) != 0 {
            self.update_mode();
        }
    }

    /// Current privilege level.
    #[inline(always)]
    #[must_use]
    pub fn cpl(&self) -> u8 {
        self.mode.cpl
    }

    /// Quarter cycles since power-on, exact between instructions.
    #[must_use]
    pub fn now_quarter_cycles(&self) -> u64 {
        self.deadline.wrapping_sub(self.budget as u64).wrapping_add(self.stall)
    }
}
