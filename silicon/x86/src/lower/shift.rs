use iced_x86::Mnemonic as M;

use super::alu::operands;
use crate::exec::operand::{Imm, Mem, RegA, RegB};
use crate::exec::shift::{self as x, Cl, Double, Shift};
use crate::op::{Exec, Lowering, Op};
use crate::{sized, sized_wide};

/// Shifts and rotates.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        M::Shl | M::Sal => shift::<x::Shl>(l),
        M::Shr => shift::<x::Shr>(l),
        M::Sar => shift::<x::Sar>(l),
        M::Rol => shift::<x::Rol>(l),
        M::Ror => shift::<x::Ror>(l),
        M::Rcl => shift::<x::Rcl>(l),
        M::Rcr => shift::<x::Rcr>(l),
        M::Shld => double::<x::Shld>(l),
        M::Shrd => double::<x::Shrd>(l),
        M::Shlx => without_flags::<x::Shl, false>(l),
        M::Shrx => without_flags::<x::Shr, false>(l),
        M::Sarx => without_flags::<x::Sar, false>(l),
        M::Rorx => without_flags::<x::Ror, true>(l),
        _ => return None,
    })
}

fn shift<O: Shift>(l: &Lowering<'_>) -> Op {
    let bits = l.bits(0);
    let exec = match (l.is_mem(0), l.is_imm(1)) {
        (true, true) => sized!(bits, x::shift, O, Mem, Imm),
        (true, false) => sized!(bits, x::shift, O, Mem, Cl),
        (false, true) => sized!(bits, x::shift, O, RegA, Imm),
        (false, false) => sized!(bits, x::shift, O, RegA, Cl),
    };
    operands(l, exec)
}

fn double<O: Double>(l: &Lowering<'_>) -> Op {
    let bits = l.bits(0);
    let exec = match (l.is_mem(0), l.is_imm(2)) {
        (true, true) => sized_wide!(bits, x::double, O, Mem, Imm),
        (true, false) => sized_wide!(bits, x::double, O, Mem, Cl),
        (false, true) => sized_wide!(bits, x::double, O, RegA, Imm),
        (false, false) => sized_wide!(bits, x::double, O, RegA, Cl),
    };
    let mut op = operands(l, exec);
    if l.is_imm(2) {
        op.imm = l.imm(2);
    }
    op
}

fn without_flags<O: Shift, const IMMEDIATE: bool>(l: &Lowering<'_>) -> Op {
    let exec: Exec = match (l.is_mem(1), l.bits(0)) {
        (true, 32) => x::shift_without_flags::<O, Mem, u32, IMMEDIATE>,
        (true, _) => x::shift_without_flags::<O, Mem, u64, IMMEDIATE>,
        (false, 32) => x::shift_without_flags::<O, RegB, u32, IMMEDIATE>,
        (false, _) => x::shift_without_flags::<O, RegB, u64, IMMEDIATE>,
    };
    let mut op = operands(l, exec);
    op.imm = if IMMEDIATE { l.imm(2) } else { u64::from(l.reg(2)) };
    op
}
