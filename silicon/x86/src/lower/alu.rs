use iced_x86::Mnemonic as M;

use crate::exec::alu::{self as x, Alu, Unary};
use crate::exec::operand::{Imm, Mem, RegA, RegB};
use crate::op::{Exec, Lowering, Op};
use crate::sized;

/// Addition, subtraction, logic, compare and exchange.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        M::Add => binary::<x::Add>(l),
        M::Or => binary::<x::Or>(l),
        M::Adc => binary::<x::Adc>(l),
        M::Sbb => binary::<x::Sbb>(l),
        M::And => binary::<x::And>(l),
        M::Sub => binary::<x::Sub>(l),
        M::Xor => binary::<x::Xor>(l),
        M::Cmp => compare::<x::Sub>(l),
        M::Test => compare::<x::And>(l),
        M::Inc => unary::<x::Inc>(l),
        M::Dec => unary::<x::Dec>(l),
        M::Neg => unary::<x::Neg>(l),
        M::Not => unary::<x::Not>(l),
        M::Xadd => pair(l, sized!(l.bits(0), x::xadd, Mem), sized!(l.bits(0), x::xadd, RegA)),
        M::Cmpxchg => pair(l, sized!(l.bits(0), x::cmpxchg), sized!(l.bits(0), x::cmpxchg_register)),
        M::Cmpxchg8b => l.op(x::cmpxchg8b),
        M::Cmpxchg16b => l.op(x::cmpxchg16b),
        M::Adcx => add_carry::<false>(l),
        M::Adox => add_carry::<true>(l),
        M::Bound => {
            let exec: Exec = if l.bits(0) == 16 { x::bound::<u16> } else { x::bound::<u32> };
            Op { a: l.reg(0), ..l.op(exec) }
        }
        _ => return None,
    })
}

fn binary<O: Alu>(l: &Lowering<'_>) -> Op {
    let bits = l.bits(0);
    let exec = match (l.is_mem(0), l.is_mem(1), l.is_imm(1)) {
        (true, _, true) => sized!(bits, x::binary, O, Mem, Imm),
        (true, ..) => sized!(bits, x::binary, O, Mem, RegB),
        (_, true, _) => sized!(bits, x::binary, O, RegA, Mem),
        (.., true) => sized!(bits, x::binary, O, RegA, Imm),
        _ => sized!(bits, x::binary, O, RegA, RegB),
    };
    operands(l, exec)
}

fn compare<O: Alu>(l: &Lowering<'_>) -> Op {
    let bits = l.bits(0);
    let exec = match (l.is_mem(0), l.is_mem(1), l.is_imm(1)) {
        (true, _, true) => sized!(bits, x::compare, O, Mem, Imm),
        (true, ..) => sized!(bits, x::compare, O, Mem, RegB),
        (_, true, _) => sized!(bits, x::compare, O, RegA, Mem),
        (.., true) => sized!(bits, x::compare, O, RegA, Imm),
        _ => sized!(bits, x::compare, O, RegA, RegB),
    };
    operands(l, exec)
}

fn unary<O: Unary>(l: &Lowering<'_>) -> Op {
    let exec = if l.is_mem(0) { sized!(l.bits(0), x::unary, O, Mem) } else { sized!(l.bits(0), x::unary, O, RegA) };
    operands(l, exec)
}

fn pair(l: &Lowering<'_>, memory: Exec, register: Exec) -> Op {
    operands(l, if l.is_mem(0) { memory } else { register })
}

fn add_carry<const OVERFLOW: bool>(l: &Lowering<'_>) -> Op {
    let exec: Exec = match (l.is_mem(1), l.bits(0)) {
        (true, 32) => x::add_carry::<Mem, u32, OVERFLOW>,
        (true, _) => x::add_carry::<Mem, u64, OVERFLOW>,
        (_, 32) => x::add_carry::<RegB, u32, OVERFLOW>,
        _ => x::add_carry::<RegB, u64, OVERFLOW>,
    };
    operands(l, exec)
}

/// An op with register operand 0 in `a`, register operand 1 in `b` and an immediate operand 1.
pub(super) fn operands(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    let count = l.insn.op_count();
    if count > 0 && l.is_reg(0) {
        op.a = l.reg(0);
    }
    if count > 1 && l.is_reg(1) {
        op.b = l.reg(1);
    }
    if count > 1 && l.is_imm(1) {
        op.imm = l.imm(1);
    }
    op
}
