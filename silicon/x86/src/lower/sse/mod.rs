//! MMX, and SSE to SSE4.2: one line an instruction.
//!
//! Packed integer instructions exist for MMX and for XMM registers with the same lanes, so one line makes both.

mod convert;
mod crypto;
mod float;
pub mod integer;
mod moves;
mod text;

use iced_x86::OpKind;

use crate::op::{Exec, Lowering, Op};

/// The op of an MMX or SSE instruction.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    moves::lower(l)
        .or_else(|| integer::lower(l))
        .or_else(|| float::lower(l))
        .or_else(|| convert::lower(l))
        .or_else(|| text::lower(l))
        .or_else(|| crypto::lower(l))
}

/// Whether an operand is an MMX register.
fn is_mmx(l: &Lowering<'_>) -> bool {
    (0..l.insn.op_count()).any(|i| l.insn.op_kind(i) == OpKind::Register && l.insn.op_register(i).is_mm())
}

/// An op with operand 0 in `a` and operand 1 in `b`, where they are registers, and the immediate, wherever it stands.
fn op(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    for i in 0..l.insn.op_count() {
        match i {
            _ if l.is_imm(i) => op.imm = l.imm(i),
            0 if l.is_reg(i) => op.a = l.reg(i),
            1 if l.is_reg(i) => op.b = l.reg(i),
            _ => {}
        }
    }
    op
}

/// The handler for a source that is a register, or the one for memory.
fn source(l: &Lowering<'_>, register: Exec, memory: Exec) -> Op {
    op(l, if l.is_mem(1) { memory } else { register })
}

/// The handler for a shift by immediate, register or memory.
fn count(l: &Lowering<'_>, immediate: Exec, register: Exec, memory: Exec) -> Op {
    if l.is_imm(1) { op(l, immediate) } else { source(l, register, memory) }
}
