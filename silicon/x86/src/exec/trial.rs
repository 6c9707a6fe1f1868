//! Runs single instructions in tests: 64-bit mode (or another), flat segments, a few pages in the fast look-up.

use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions};
use silicon_memory::{Frame, HostPhysical, PhysicalMemory};
use x86_defs::segment::{index, rights};

use crate::Core;
use crate::core::{Flags, Fpu, Mode, Msrs, SegmentRegister, TableRegister, mode::Operating};
use crate::cost::Counters;
use crate::event::Events;
use crate::mem::{Mmu, fast::FAST_ENTRIES};
use crate::model::Model;
use crate::op::{BLOCK_RIP, CodeSize, Done, Lowering, Op};
use crate::vmx::Vmx;

/// Linear address of the first page that is mapped.
pub const DATA: u64 = 0x10_0000;
/// Pages mapped from there, each followed by nothing but the next.
pub const PAGES: u64 = 4;
/// Where blocks are.
pub const CODE: u64 = 0x40_0000;

/// A processor in 64-bit mode at CPL 3, RIP at [`CODE`], RSP in the middle of the data, registers otherwise zero.
pub fn core() -> Core {
    let memory = PhysicalMemory::new();
    memory.add(HostPhysical(0), PAGES * 4096).expect("host memory");
    let data = SegmentRegister { selector: 0x2b, base: 0, limit: u32::MAX, rights: rights::P | rights::S | rights::DPL | 3 };
    let mut core = Core {
        gpr: [0; 32],
        flags: Flags::default(),
        rflags_rest: 0x202,
        rip: CODE,
        mode: Mode {
            operating: Operating::Long64,
            code: CodeSize::Bits64,
            stack_mask: u64::MAX,
            rip_mask: u64::MAX,
            cpl: 3,
            privilege: 0,
            key: 2,
        },
        seg: [data; 8],
        gdtr: TableRegister::default(),
        idtr: TableRegister::default(),
        cr0: 0x8000_0011,
        cr2: 0,
        cr3: 0,
        cr4: 0,
        efer: 0x500,
        dr: [0; 8],
        msrs: Msrs::default(),
        fpu: Fpu::default(),
        mmu: Mmu::new(),
        memory: Arc::new(memory),
        model: Arc::new(Model::default()),
        vmx: Vmx::default(),
        events: Events::default(),
        fault: crate::core::Fault::default(),
        budget: 1 << 40,
        deadline: 1 << 40,
        stall: 0,
        count: Counters::default(),
        self_modify: false,
    };
    core.seg[index::CS].rights = rights::P | rights::S | rights::DPL | rights::L | 11;
    core.gpr[BLOCK_RIP as usize] = CODE;
    core.gpr[4] = DATA + 0x1800;
    core.mmu.set_privilege(0);
    for page in 0..PAGES {
        let linear = DATA + page * 4096;
        let entry = &mut core.mmu.fast[(linear >> 12) as usize & (FAST_ENTRIES - 1)];
        entry.tag = linear;
        entry.frame = core.memory.page(HostPhysical(page * 4096)).expect("a page").0;
        entry.permissions = u32::MAX;
    }
    core
}

/// The frame behind a page of the data.
pub fn frame(core: &Core, linear: u64) -> Frame {
    core.memory.page(HostPhysical(linear - DATA)).expect("mapped").0
}

/// Decodes and lowers the instruction at the start of a block; `None` where it is #UD.
pub fn op(size: CodeSize, bytes: &[u8]) -> Option<Op> {
    let insn = Decoder::with_ip(size.bits(), bytes, 0, DecoderOptions::NONE).decode();
    if insn.is_invalid() {
        return None;
    }
    assert_eq!(insn.len(), bytes.len(), "{bytes:02x?} is {insn:?}");
    crate::lower::lower(&Lowering { insn: &insn, bytes, size, off: 0 })
}

/// Executes one instruction of 64-bit mode.
pub fn run(core: &mut Core, bytes: &[u8]) -> Done {
    let op = op(CodeSize::Bits64, bytes).unwrap_or_else(|| panic!("{bytes:02x?} does not exist"));
    (op.exec)(core, &op)
}

/// Numbers for tests: the same sequence every time.
pub struct Numbers(pub u64);

impl Numbers {
    /// A number with many interesting ones among them.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let r = (self.0 >> 33) ^ (self.0 << 31);
        match self.0 >> 60 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (r & 63),
            3 => (1 << (r & 63)) - 1,
            4 => r & 0xff,
            5 => !(1 << (r & 63)),
            _ => r,
        }
    }
}
