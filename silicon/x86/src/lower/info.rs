//! The static part of the VM-exit instruction-information field ("VM-Exit Instruction-Information Field").

use iced_x86::{OpKind, Register};

use crate::op::{Lowering, Op};

/// Bit 10: the operand is a register, not memory.
const REGISTER: u32 = 1 << 10;

/// Address size, segment, scale, base and index of the memory operand, or that there is none.
#[must_use]
pub(super) fn operand(l: &Lowering<'_>, op: &Op) -> u32 {
    let i = l.insn;
    if !(0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory) {
        return REGISTER;
    }
    let scale = u32::from(op.scale_drop & 3);
    let segment = i.memory_segment().number() as u32;
    scale | address_size(op) << 7 | segment << 15 | register(i.memory_index()) << 18 | register(i.memory_base()) << 23
}

/// 0, 1 or 2 for 16, 32 or 64 bits.
#[must_use]
pub(super) fn address_size(op: &Op) -> u32 {
    match op.scale_drop >> 2 {
        0 => 2,
        32 => 1,
        _ => 0,
    }
}

/// Four bits of the register, and bit 4 where there is none.
fn register(register: Register) -> u32 {
    match register {
        Register::None | Register::RIP | Register::EIP => 1 << 4,
        r => r.number() as u32,
    }
}

/// Register operand in bits 6:3.
#[must_use]
pub(super) fn reg1(slot: u8) -> u32 {
    u32::from(slot & 15) << 3
}

/// Second register operand in bits 31:28.
#[must_use]
pub(super) fn reg2(slot: u8) -> u32 {
    u32::from(slot & 15) << 28
}
