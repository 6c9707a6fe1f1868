//! Runs single instructions in tests: 64-bit mode (or another), flat segments, memory mapped one to one.

use iced_x86::{Decoder, DecoderOptions};
use x86_defs::segment::{index, rights};

use crate::Core;
use crate::core::test;
use crate::model::Model;
use crate::op::{BLOCK_RIP, CodeSize, Done, Lowering, Op};

/// Memory for data, with nothing else around it.
pub const DATA: u64 = 0x1_0000;
/// Where blocks are.
pub const CODE: u64 = 0x4_0000;

/// A processor in 64-bit mode at CPL 3, interrupts on, RIP at [`CODE`], RSP in the middle of the data, registers zero.
pub fn core() -> Core {
    let mut core = test::core();
    for seg in &mut core.seg[index::ES..=index::GS] {
        seg.rights |= rights::DPL;
        seg.selector |= 3;
    }
    core.rflags_rest |= x86_defs::rflags::IF;
    core.update_mode();
    core.tlb_select();
    core.rip = CODE;
    core.gpr[BLOCK_RIP as usize] = CODE;
    core.gpr[4] = DATA + 0x1800;
    core
}

/// Takes the page of `linear` away.
pub fn unmap(core: &mut Core, linear: u64) {
    test::poke(core, test::TABLES + 0x3000 + (linear >> 12) * 8, 0);
}

/// Decodes and lowers the instruction at the start of a block; `None` where it is #UD.
pub fn op(size: CodeSize, bytes: &[u8]) -> Option<Op> {
    let insn = Decoder::with_ip(size.bits(), bytes, 0, DecoderOptions::NONE).decode();
    if insn.is_invalid() {
        return None;
    }
    assert_eq!(insn.len(), bytes.len(), "{bytes:02x?} is {insn:?}");
    crate::lower::lower(&Lowering { insn: &insn, bytes, size, off: 0, model: &Model::default() })
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
