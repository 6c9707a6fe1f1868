use iced_x86::{Code, Instruction, Mnemonic as M};

use super::alu::operands;
use crate::exec::operand::{Imm, Mem, RegA};
use crate::exec::{cache, stack as x};
use crate::op::{Lowering, Op};
use crate::sized_wide;

/// The stack. POP of a segment register is not here.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let i = l.insn;
    Some(match i.mnemonic() {
        M::Push => {
            let bits = stack_bits(i);
            let mut op = operands(l, cache::nop);
            op.exec = if l.is_mem(0) {
                sized_wide!(bits, x::push, Mem)
            } else if !l.is_reg(0) {
                op.imm = l.imm(0);
                sized_wide!(bits, x::push, Imm)
            } else if i.op0_register().is_segment_register() {
                sized_wide!(bits, x::push_selector)
            } else {
                sized_wide!(bits, x::push, RegA)
            };
            op
        }
        M::Pop if l.is_mem(0) => operands(l, sized_wide!(stack_bits(i), x::pop_mem)),
        M::Pop if i.op0_register().is_gpr() => operands(l, sized_wide!(stack_bits(i), x::pop_reg)),
        M::Pusha | M::Pushad => {
            operands(l, if i.mnemonic() == M::Pusha { x::push_all::<u16> } else { x::push_all::<u32> })
        }
        M::Popa | M::Popad => operands(l, if i.mnemonic() == M::Popa { x::pop_all::<u16> } else { x::pop_all::<u32> }),
        M::Enter => {
            let bits = match i.code() {
                Code::Enterw_imm16_imm8 => 16,
                Code::Enterd_imm16_imm8 => 32,
                _ => 64,
            };
            let mut op = l.op(sized_wide!(bits, x::enter));
            op.imm = l.imm(0) & 0xffff;
            op.b = l.imm(1) as u8 & 31;
            op
        }
        M::Leave => {
            let bits = match i.code() {
                Code::Leavew => 16,
                Code::Leaved => 32,
                _ => 64,
            };
            l.op(sized_wide!(bits, x::leave))
        }
        M::Pushf => l.op(x::pushf::<u16>),
        M::Pushfd => l.op(x::pushf::<u32>),
        M::Pushfq => l.op(x::pushf::<u64>),
        M::Popf => l.op(x::popf::<u16>),
        M::Popfd => l.op(x::popf::<u32>),
        M::Popfq => l.op(x::popf::<u64>),
        _ => return None,
    })
}

/// POPF may change what is looked at between blocks.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), M::Popf | M::Popfd | M::Popfq)
}

/// How much one PUSH or POP moves the stack pointer, in bits.
fn stack_bits(insn: &Instruction) -> u32 {
    insn.stack_pointer_increment().unsigned_abs() * 8
}
