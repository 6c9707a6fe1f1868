//! VEX-encoded vector instructions: AVX, AVX2, FMA, F16C, and the VEX forms of AES and PCLMUL. One line an instruction.
//!
//! [`Op::imm`] has the immediate in bits 7:0, the register of VEX.vvvv in bits 11:8 and the register of an immediate
//! (`/is4`) in bits 15:12: [`crate::exec::avx::operand`] reads them.

mod convert;
mod crypto;
mod float;
mod fma;
mod integer;
mod moves;

use iced_x86::{EncodingKind, OpKind};

use crate::op::{Exec, Lowering, Op};

/// The op of a VEX-encoded vector instruction.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    if l.insn.code().encoding() != EncodingKind::VEX {
        return None;
    }
    moves::lower(l)
        .or_else(|| integer::lower(l))
        .or_else(|| float::lower(l))
        .or_else(|| convert::lower(l))
        .or_else(|| fma::lower(l))
        .or_else(|| crypto::lower(l))
}

/// Whether the instruction works on 256 bits (VEX.L).
fn is_wide(l: &Lowering<'_>) -> bool {
    (0..l.insn.op_count()).any(|i| l.insn.op_kind(i) == OpKind::Register && l.insn.op_register(i).is_ymm())
}

/// An op of a form `destination, source 1, source 2[, register or immediate]`: destination in `a`, source 1 (VEX.vvvv) in
/// bits 11:8 of `imm`, source 2 in `b` where it is a register.
fn three(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    op.a = l.reg(0);
    op.imm = u64::from(l.reg(1) & 15) << 8;
    if l.is_reg(2) {
        op.b = l.reg(2);
    }
    if l.insn.op_count() > 3 {
        op.imm |= if l.is_reg(3) { u64::from(l.reg(3) & 15) << 12 } else { l.imm(3) & 0xff };
    }
    op
}

/// An op of a form `destination, source[, immediate]`: destination in `a`, source in `b`, where they are registers.
fn two(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    if l.is_reg(0) {
        op.a = l.reg(0);
    }
    if l.is_reg(1) {
        op.b = l.reg(1);
    }
    if l.insn.op_count() > 2 && l.is_imm(2) {
        op.imm = l.imm(2) & 0xff;
    }
    op
}
