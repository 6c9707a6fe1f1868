use iced_x86::Mnemonic as M;

use super::alu::operands;
use crate::exec::bit::{self as x, BitChange, Lowest};
use crate::exec::operand::{Imm, Mem, RegA, RegB};
use crate::op::{Exec, Lowering, Op};
use crate::{sized, sized_wide};

/// Bit tests, scans and counts, CRC32, BMI1 and BMI2.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let bits = l.bits(0);
    let memory = l.insn.op_count() > 1 && l.is_mem(1);
    macro_rules! counted {
        ($f:ident) => {
            if memory { sized_wide!(bits, x::$f, Mem) } else { sized_wide!(bits, x::$f, RegB) }
        };
    }
    let exec: Exec = match l.insn.mnemonic() {
        M::Bt => test(l),
        M::Bts => modify::<x::Set>(l),
        M::Btr => modify::<x::Reset>(l),
        M::Btc => modify::<x::Complement>(l),
        M::Bsf => counted!(scan_forward),
        M::Bsr => counted!(scan_reverse),
        M::Lzcnt => counted!(leading_zeros),
        M::Tzcnt => counted!(trailing_zeros),
        M::Popcnt => counted!(population),
        M::Crc32 if memory => sized!(l.bits(1), x::crc32, Mem),
        M::Crc32 => sized!(l.bits(1), x::crc32, RegB),
        M::Blsi => lowest::<x::Blsi>(l),
        M::Blsmsk => lowest::<x::Blsmsk>(l),
        M::Blsr => lowest::<x::Blsr>(l),
        M::Andn => return Some(three(l, 2, 1, sized_wide!(bits, x::andn, Mem), sized_wide!(bits, x::andn, RegB))),
        M::Bextr => return Some(three(l, 1, 2, sized_wide!(bits, x::bextr, Mem), sized_wide!(bits, x::bextr, RegB))),
        M::Bzhi => return Some(three(l, 1, 2, sized_wide!(bits, x::bzhi, Mem), sized_wide!(bits, x::bzhi, RegB))),
        M::Pdep => return Some(three(l, 2, 1, sized_wide!(bits, x::pdep, Mem), sized_wide!(bits, x::pdep, RegB))),
        M::Pext => return Some(three(l, 2, 1, sized_wide!(bits, x::pext, Mem), sized_wide!(bits, x::pext, RegB))),
        _ => return None,
    };
    Some(operands(l, exec))
}

/// A three-operand instruction: operand `source` may be in memory, operand `register` goes to `imm`.
fn three(l: &Lowering<'_>, source: u32, register: u32, memory: Exec, plain: Exec) -> Op {
    let mut op = l.op(if l.is_mem(source) { memory } else { plain });
    op.a = l.reg(0);
    if l.is_reg(source) {
        op.b = l.reg(source);
    }
    op.imm = u64::from(l.reg(register));
    op
}

fn test(l: &Lowering<'_>) -> Exec {
    let bits = l.bits(0);
    match (l.is_mem(0), l.is_imm(1)) {
        (true, true) => sized_wide!(bits, x::test, Mem, Imm),
        (true, false) => sized_wide!(bits, x::test_string),
        (false, true) => sized_wide!(bits, x::test, RegA, Imm),
        (false, false) => sized_wide!(bits, x::test, RegA, RegB),
    }
}

fn modify<C: BitChange>(l: &Lowering<'_>) -> Exec {
    let bits = l.bits(0);
    match (l.is_mem(0), l.is_imm(1)) {
        (true, true) => sized_wide!(bits, x::modify, C, Mem, Imm),
        (true, false) => sized_wide!(bits, x::modify_string, C),
        (false, true) => sized_wide!(bits, x::modify, C, RegA, Imm),
        (false, false) => sized_wide!(bits, x::modify, C, RegA, RegB),
    }
}

fn lowest<O: Lowest>(l: &Lowering<'_>) -> Exec {
    let bits = l.bits(0);
    if l.is_mem(1) { sized_wide!(bits, x::lowest, O, Mem) } else { sized_wide!(bits, x::lowest, O, RegB) }
}
