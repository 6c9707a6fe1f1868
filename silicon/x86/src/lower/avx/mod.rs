//! VEX-encoded vector instructions: AVX, AVX2, FMA, F16C, and the VEX forms of AES and PCLMUL. One line an instruction.
//!
//! [`Op::imm`] has the immediate in bits 7:0, the register of VEX.vvvv in bits 11:8 and the register of an immediate
//! (`/is4`) in bits 15:12: [`crate::exec::avx::operand`] reads them.

/// The handler `$handler`, which is generic over width, source and the types given, for what the instruction has.
macro_rules! forms {
    ($l:expr, $handler:ident, [$($t:ty),*] $(, $argument:expr)*) => {{
        use $crate::exec::avx::operand::{Memory, Register};
        let exec: $crate::op::Exec = match ($crate::lower::avx::is_wide($l), $crate::lower::avx::has_memory($l)) {
            (false, false) => |c, o| $handler::<false, Register, $($t),*>(c, o $(, $argument)*),
            (false, true) => |c, o| $handler::<false, Memory, $($t),*>(c, o $(, $argument)*),
            (true, false) => |c, o| $handler::<true, Register, $($t),*>(c, o $(, $argument)*),
            (true, true) => |c, o| $handler::<true, Memory, $($t),*>(c, o $(, $argument)*),
        };
        exec
    }};
}

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

/// Whether an operand is in memory.
fn has_memory(l: &Lowering<'_>) -> bool {
    (0..l.insn.op_count()).any(|i| l.is_mem(i))
}

/// An op of a form `destination, source 1, source 2[, register or immediate]`: destination in `a`, source 1 (VEX.vvvv) in
/// bits 11:8 of `imm`, source 2 in `b` where it is a register; or `destination, source 1, immediate`.
fn three(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    op.a = l.reg(0);
    op.imm = u64::from(l.reg(1) & 15) << 8;
    for i in 2..l.insn.op_count() {
        match i {
            _ if l.is_imm(i) => op.imm |= l.imm(i) & 0xff,
            2 if l.is_reg(i) => op.b = l.reg(i),
            _ if l.is_reg(i) => op.imm |= u64::from(l.reg(i) & 15) << 12,
            _ => {}
        }
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
