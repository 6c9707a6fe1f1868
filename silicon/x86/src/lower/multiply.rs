use iced_x86::Mnemonic as M;

use super::alu::operands;
use crate::exec::multiply as x;
use crate::exec::operand::{Mem, RegA, RegB};
use crate::op::{Exec, Lowering, Op};
use crate::{sized, sized_wide};

/// Multiplication and division.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let bits = l.bits(0);
    let memory = l.insn.op_count() > 0 && l.is_mem(0);
    let exec: Exec = match l.insn.mnemonic() {
        M::Mul if memory => sized!(bits, x::mul, Mem),
        M::Mul => sized!(bits, x::mul, RegA),
        M::Div if memory => sized!(bits, x::div, Mem),
        M::Div => sized!(bits, x::div, RegA),
        M::Idiv if memory => sized!(bits, x::idiv, Mem),
        M::Idiv => sized!(bits, x::idiv, RegA),
        M::Imul => match (l.insn.op_count(), l.insn.op_count() > 1 && l.is_mem(1)) {
            (1, _) if memory => sized!(bits, x::imul, Mem),
            (1, _) => sized!(bits, x::imul, RegA),
            (2, true) => sized_wide!(bits, x::imul_to_reg, Mem),
            (2, false) => sized_wide!(bits, x::imul_to_reg, RegB),
            (_, from_memory) => {
                let exec = if from_memory {
                    sized_wide!(bits, x::imul_by_imm, Mem)
                } else {
                    sized_wide!(bits, x::imul_by_imm, RegB)
                };
                return Some(Op { imm: l.imm(2), ..operands(l, exec) });
            }
        },
        M::Mulx => {
            let exec: Exec = match (l.is_mem(2), bits) {
                (true, 32) => x::mulx::<u32, true>,
                (true, _) => x::mulx::<u64, true>,
                (false, 32) => x::mulx::<u32, false>,
                (false, _) => x::mulx::<u64, false>,
            };
            let source = if l.is_reg(2) { l.reg(2) } else { 0 };
            return Some(Op { imm: u64::from(source), ..operands(l, exec) });
        }
        _ => return None,
    };
    Some(operands(l, exec))
}
