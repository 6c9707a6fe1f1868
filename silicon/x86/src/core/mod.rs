//! The architectural state of a logical processor in VMX non-root mode, and what the engine needs beside it.

pub mod access;
pub mod clock;
pub mod fault;
pub mod flags;
pub mod fpu;
pub mod mode;
pub mod msrs;
pub mod random;
pub mod segment;
#[cfg(test)]
pub mod test;

use std::sync::Arc;

use silicon_memory::PhysicalMemory;

pub use clock::{Clock, Oscillator};
pub use fault::Fault;
pub use flags::Flags;
pub use fpu::Fpu;
pub use mode::Mode;
pub use msrs::Msrs;
pub use random::Random;
pub use segment::{SegmentRegister, TableRegister};

use crate::cost::Counters;
use crate::event::Events;
use crate::exec::system::idle::Monitored;
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
    /// Rights of user-mode protection keys. Change it with [`Core::set_pkru`].
    pub pkru: u32,
    /// Which state components XSAVE and VEX-encoded instructions may use; XCR0 has always bit 0.
    pub xcr0: u64,
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
    /// What MWAIT waits for; VM-entry disarms it.
    pub monitor: Option<Monitored>,
    /// The exception that [`crate::Leave::Fault`] speaks of.
    pub fault: Fault,

    /// Quarter cycles until the next deadline; runs down. See [`Core::now_quarter_cycles`].
    pub budget: i64,
    /// The deadline that `budget` runs down to, in quarter cycles since power-on.
    pub deadline: u64,
    /// Cost of the running block's dynamic events (TLB misses, VM-exits), in quarter cycles, not yet taken off `budget`.
    pub stall: u64,
    pub clock: Clock,
    /// Where RDRAND and RDSEED take their values from.
    pub rng: Random,
    /// Exact counts.
    pub count: Counters,
    /// An instruction that must be executed alone may store to the page it was fetched from.
    pub self_modify: bool,
}

impl Core {
    /// A processor after RESET ("Processor State After Reset"), in VMX root operation.
    #[must_use]
    pub fn new(memory: Arc<PhysicalMemory>, model: Arc<Model>) -> Self {
        let mut core = Self {
            gpr: [0; 32],
            flags: Flags::default(),
            rflags_rest: x86_defs::rflags::FIXED,
            rip: 0xfff0,
            mode: Mode::default(),
            seg: [SegmentRegister::default(); 8],
            gdtr: TableRegister { base: 0, limit: 0xffff },
            idtr: TableRegister { base: 0, limit: 0xffff },
            cr0: 0x6000_0010,
            cr2: 0,
            cr3: 0,
            cr4: 0,
            efer: 0,
            pkru: 0,
            xcr0: 1,
            dr: [0, 0, 0, 0, 0, 0, 0xffff_0ff0, 0x400],
            msrs: Msrs::default(),
            fpu: Fpu::default(),
            mmu: Mmu::new(&model.tlb),
            memory,
            model,
            vmx: Vmx::default(),
            events: Events::default(),
            monitor: None,
            fault: Fault::default(),
            budget: 0,
            deadline: 0,
            stall: 0,
            clock: Clock::default(),
            rng: Random::default(),
            count: Counters::default(),
            self_modify: false,
        };
        core.reset_segments();
        core.flags.set_bits(0);
        core.update_mode();
        core.tlb_select();
        core
    }

    fn reset_segments(&mut self) {
        use x86_defs::segment::{index, rights};
        for i in index::ES..=index::GS {
            let selector = if i == index::CS { 0xf000 } else { 0 };
            let base = if i == index::CS { 0xffff_0000 } else { 0 };
            let code = if i == index::CS { rights::CODE } else { 0 };
            self.seg[i] = SegmentRegister {
                selector,
                base,
                limit: 0xffff,
                rights: rights::P | rights::S | rights::WRITABLE | rights::ACCESSED | code,
            };
        }
        self.seg[index::LDTR] = SegmentRegister { selector: 0, base: 0, limit: 0xffff, rights: rights::P | 2 };
        self.seg[index::TR] = SegmentRegister { selector: 0, base: 0, limit: 0xffff, rights: rights::P | 11 };
    }

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
        if changed & (rflags::AC | rflags::VM) != 0 {
            self.update_mode();
        }
        self.events.attention = true;
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

impl std::fmt::Debug for Core {
    /// The registers, as a crash report shows them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
            "r15",
        ];
        for (i, name) in NAMES.iter().enumerate() {
            let end = if i % 4 == 3 { '\n' } else { ' ' };
            write!(f, "{name:>3}={:016x}{end}", self.gpr[i])?;
        }
        writeln!(
            f,
            "rip={:016x} rflags={:08x} cr0={:08x} cr2={:x} cr3={:x} cr4={:x} efer={:x} {:?} cpl={}",
            self.rip,
            self.rflags(),
            self.cr0,
            self.cr2,
            self.cr3,
            self.cr4,
            self.efer,
            self.mode.operating,
            self.mode.cpl
        )?;
        for (name, s) in ["es", "cs", "ss", "ds", "fs", "gs", "ldtr", "tr"].iter().zip(&self.seg) {
            write!(f, "{name}={:04x}:{:x}+{:x}/{:x} ", s.selector, s.base, s.limit, s.rights)?;
        }
        Ok(())
    }
}
