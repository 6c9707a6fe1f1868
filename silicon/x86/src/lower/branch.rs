use iced_x86::{Mnemonic as M, OpKind};

use super::mov::condition;
use crate::conditional;
use crate::exec::branch::{self as x, Always, LoopCondition, Near16, Near32, Near64, WhileEqual, WhileNotEqual, Width};
use crate::exec::operand::{Mem, RegA};
use crate::op::{CodeSize, Exec, Lowering, Op};

/// Near branches.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let exec = match width(l)? {
        16 => exec::<Near16>(l)?,
        32 => exec::<Near32>(l)?,
        _ => exec::<Near64>(l)?,
    };
    let mut op = l.op(exec);
    match l.insn.mnemonic() {
        M::Ret => op.imm = if l.insn.op_count() > 0 { l.imm(0) } else { 0 },
        _ if l.is_reg(0) => op.a = l.reg(0),
        _ if l.is_mem(0) => {}
        _ => op.imm = l.branch_target(),
    }
    Some(op)
}

/// Operand size of a near branch in bits; `None` for all else.
fn width(l: &Lowering<'_>) -> Option<u32> {
    if l.insn.mnemonic() == M::Ret {
        return Some(match l.insn.code() {
            _ if l.size == CodeSize::Bits64 => 64,
            iced_x86::Code::Retnw | iced_x86::Code::Retnw_imm16 => 16,
            _ => 32,
        });
    }
    if l.insn.op_count() != 1 {
        return None;
    }
    match l.insn.op0_kind() {
        OpKind::NearBranch16 => Some(16),
        OpKind::NearBranch32 => Some(32),
        OpKind::NearBranch64 => Some(64),
        _ if l.insn.is_jmp_near_indirect() || l.insn.is_call_near_indirect() => Some(l.bits(0)),
        _ => None,
    }
}

fn exec<W: Width>(l: &Lowering<'_>) -> Option<Exec> {
    use x::jcc;
    let direct = !(l.is_reg(0) || l.is_mem(0));
    let wide = l.address_bits();
    Some(match l.insn.mnemonic() {
        M::Ret => x::ret::<W>,
        M::Jmp if direct => x::jmp::<W>,
        M::Jmp if l.is_mem(0) => x::jmp_indirect::<Mem, W>,
        M::Jmp => x::jmp_indirect::<RegA, W>,
        M::Call if direct => x::call::<W>,
        M::Call if l.is_mem(0) => x::call_indirect::<Mem, W>,
        M::Call => x::call_indirect::<RegA, W>,
        M::Loop => counted::<Always, W>(wide),
        M::Loope => counted::<WhileEqual, W>(wide),
        M::Loopne => counted::<WhileNotEqual, W>(wide),
        M::Jcxz => x::jump_if_count_zero::<u16, W>,
        M::Jecxz => x::jump_if_count_zero::<u32, W>,
        M::Jrcxz => x::jump_if_count_zero::<u64, W>,
        _ if l.insn.is_jcc_short_or_near() => conditional!(condition(l), jcc, W),
        _ => return None,
    })
}

fn counted<C: LoopCondition, W: Width>(address_bits: u32) -> Exec {
    match address_bits {
        16 => x::loop_while::<C, u16, W>,
        32 => x::loop_while::<C, u32, W>,
        _ => x::loop_while::<C, u64, W>,
    }
}
