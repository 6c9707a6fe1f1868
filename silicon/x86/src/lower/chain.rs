//! The chained form of an instruction ([`crate::exec::chain`]), by mnemonic and operands.

use iced_x86::{Code, Instruction, Mnemonic as M, OpKind};

use super::mov::{condition, condition_of, is_cmov, is_set};
use crate::exec::alu::{Alu, Unary};
use crate::exec::branch::Near64;
use crate::exec::chain::{Address, Based, FastMem, Indexed, compare_and_branch, once, set_mem, stack, to_mem};
use crate::exec::operand::{Imm, RegA, RegB, Source};
use crate::exec::shift::{Cl, Shift};
use crate::exec::{alu, branch, cache, mov, multiply, shift};
use crate::op::{Chain, CodeSize, FLAT, Lowering, Op, ZERO};
use crate::{chained, chained_branch};

/// The chained form of `$f` for an operand size in bits.
macro_rules! sized {
    ($bits:expr, $($f:ident)::+ $(, $g:ty)*) => {
        match $bits {
            8 => chained!($($f)::+::<$($g,)* u8>),
            16 => chained!($($f)::+::<$($g,)* u16>),
            32 => chained!($($f)::+::<$($g,)* u32>),
            _ => chained!($($f)::+::<$($g,)* u64>),
        }
    };
}

/// The same for instructions without an 8-bit form.
macro_rules! sized_wide {
    ($bits:expr, $($f:ident)::+ $(, $g:ty)*) => {
        match $bits {
            16 => chained!($($f)::+::<$($g,)* u16>),
            32 => chained!($($f)::+::<$($g,)* u32>),
            _ => chained!($($f)::+::<$($g,)* u64>),
        }
    };
}

/// The chained form of `$f` for a condition code, by `$make`.
macro_rules! conditional {
    ($make:ident, $code:expr, $($f:ident)::+ $(, $g:ty)*) => {
        match $code {
            0 => $make!($($f)::+::<0 $(, $g)*>),
            1 => $make!($($f)::+::<1 $(, $g)*>),
            2 => $make!($($f)::+::<2 $(, $g)*>),
            3 => $make!($($f)::+::<3 $(, $g)*>),
            4 => $make!($($f)::+::<4 $(, $g)*>),
            5 => $make!($($f)::+::<5 $(, $g)*>),
            6 => $make!($($f)::+::<6 $(, $g)*>),
            7 => $make!($($f)::+::<7 $(, $g)*>),
            8 => $make!($($f)::+::<8 $(, $g)*>),
            9 => $make!($($f)::+::<9 $(, $g)*>),
            10 => $make!($($f)::+::<10 $(, $g)*>),
            11 => $make!($($f)::+::<11 $(, $g)*>),
            12 => $make!($($f)::+::<12 $(, $g)*>),
            13 => $make!($($f)::+::<13 $(, $g)*>),
            14 => $make!($($f)::+::<14 $(, $g)*>),
            _ => $make!($($f)::+::<15 $(, $g)*>),
        }
    };
}

/// The chained form of an instruction that `lower` has made `op` of; [`once`] where it has none of its own.
#[must_use]
pub fn of(l: &Lowering<'_>, op: &Op) -> Chain {
    // Addresses of less than 64 bits wrap around.
    if l.size != CodeSize::Bits64 || op.scale_drop >> 2 != 0 {
        once
    } else if op.index == ZERO && op.seg & FLAT != 0 {
        addressed::<Based>(l)
    } else {
        addressed::<Indexed>(l)
    }
}

fn addressed<A: Address>(l: &Lowering<'_>) -> Chain {
    let bits = if l.insn.op_count() > 0 { l.bits(0) } else { 0 };
    match l.insn.mnemonic() {
        M::Mov => mov::<A>(l, bits),
        M::Lea => sized_wide!(bits, mov::lea),
        M::Movzx => extend::<true, A>(l, bits),
        M::Movsx | M::Movsxd => extend::<false, A>(l, bits),
        M::Nop | M::Endbr64 => chained!(cache::nop),
        M::Cdqe => chained!(mov::extend_accumulator::<u32, u64>),
        M::Cdq => chained!(mov::spread_sign::<u32>),
        M::Cqo => chained!(mov::spread_sign::<u64>),
        M::Add => binary::<alu::Add, A>(l, bits),
        M::Or => binary::<alu::Or, A>(l, bits),
        M::Adc => binary::<alu::Adc, A>(l, bits),
        M::Sbb => binary::<alu::Sbb, A>(l, bits),
        M::And => binary::<alu::And, A>(l, bits),
        M::Sub => binary::<alu::Sub, A>(l, bits),
        M::Xor => binary::<alu::Xor, A>(l, bits),
        M::Cmp => compare::<alu::Sub, A>(l, bits),
        M::Test => compare::<alu::And, A>(l, bits),
        M::Inc => unary::<alu::Inc, A>(l, bits),
        M::Dec => unary::<alu::Dec, A>(l, bits),
        M::Neg => unary::<alu::Neg, A>(l, bits),
        M::Not => unary::<alu::Not, A>(l, bits),
        M::Shl | M::Sal => shift_by::<shift::Shl>(l, bits),
        M::Shr => shift_by::<shift::Shr>(l, bits),
        M::Sar => shift_by::<shift::Sar>(l, bits),
        M::Rol => shift_by::<shift::Rol>(l, bits),
        M::Ror => shift_by::<shift::Ror>(l, bits),
        M::Bswap if bits == 32 => chained!(mov::bswap::<u32>),
        M::Bswap if bits == 64 => chained!(mov::bswap::<u64>),
        M::Imul => imul::<A>(l, bits),
        M::Mul if bits == 64 && l.is_reg(0) => chained!(multiply::mul::<RegA, u64>),
        M::Push if l.insn.stack_pointer_increment() == -8 => push::<A>(l),
        M::Pop if l.insn.stack_pointer_increment() == 8 && is_gpr(l, 0) => chained!(stack::pop),
        M::Leave if l.insn.code() == Code::Leaveq => chained!(stack::leave),
        M::Ret => chained_branch!(stack::ret),
        M::Call | M::Jmp => near_branch::<A>(l),
        _ if l.insn.is_jcc_short_or_near() && l.insn.op0_kind() == OpKind::NearBranch64 => {
            conditional!(chained_branch, condition(l), branch::jcc, Near64)
        }
        m if is_set(m) && l.is_mem(0) => conditional!(chained, condition(l), set_mem, A),
        m if is_set(m) => conditional!(chained, condition(l), mov::set_reg),
        m if is_cmov(m) => cmov::<A>(l, bits),
        _ => once,
    }
}

/// The chained form of `op`, made of `l`, together with the instruction `branch` that follows it: a comparison and
/// the Jcc that it is for. `None` for all other pairs.
#[must_use]
pub fn with_branch(l: &Lowering<'_>, op: &Op, branch: &Instruction) -> Option<Chain> {
    if l.size != CodeSize::Bits64
        || !branch.is_jcc_short_or_near()
        || branch.op0_kind() != OpKind::NearBranch64
        || op.scale_drop >> 2 != 0
    {
        return None;
    }
    let code = condition_of(branch);
    match l.insn.mnemonic() {
        M::Cmp if l.is_imm(1) && l.is_reg(0) => Some(pair::<alu::Sub, RegA, Imm>(l, code)),
        M::Cmp if l.is_reg(1) && l.is_reg(0) => Some(pair::<alu::Sub, RegA, RegB>(l, code)),
        M::Cmp if l.is_imm(1) && op.index == ZERO && op.seg & FLAT != 0 => {
            Some(pair::<alu::Sub, FastMem<Based>, Imm>(l, code))
        }
        M::Test if l.is_imm(1) && l.is_reg(0) => Some(pair::<alu::And, RegA, Imm>(l, code)),
        M::Test if l.is_reg(1) && l.is_reg(0) => Some(pair::<alu::And, RegA, RegB>(l, code)),
        _ => None,
    }
}

fn pair<O: Alu, A: Source, B: Source>(l: &Lowering<'_>, code: u8) -> Chain {
    macro_rules! plain {
        ($f:expr) => {
            $f as Chain
        };
    }
    match l.bits(0) {
        8 => conditional!(plain, code, compare_and_branch, O, A, B, u8),
        16 => conditional!(plain, code, compare_and_branch, O, A, B, u16),
        32 => conditional!(plain, code, compare_and_branch, O, A, B, u32),
        _ => conditional!(plain, code, compare_and_branch, O, A, B, u64),
    }
}

fn is_gpr(l: &Lowering<'_>, i: u32) -> bool {
    l.is_reg(i) && l.insn.op_register(i).is_gpr()
}

fn mov<A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    if matches!(
        l.insn.code(),
        Code::Mov_AL_moffs8
            | Code::Mov_AX_moffs16
            | Code::Mov_EAX_moffs32
            | Code::Mov_RAX_moffs64
            | Code::Mov_moffs8_AL
            | Code::Mov_moffs16_AX
            | Code::Mov_moffs32_EAX
            | Code::Mov_moffs64_RAX
    ) {
        return once;
    }
    match (is_gpr(l, 0), is_gpr(l, 1)) {
        (true, true) => sized!(bits, mov::to_reg, RegB),
        (true, _) if l.is_imm(1) => sized!(bits, mov::to_reg, Imm),
        (true, _) if l.is_mem(1) => sized!(bits, mov::to_reg, FastMem<A>),
        (_, true) if l.is_mem(0) => sized!(bits, to_mem, A, RegB),
        _ if l.is_mem(0) && l.is_imm(1) => sized!(bits, to_mem, A, Imm),
        _ => once,
    }
}

fn extend<const ZEROES: bool, A: Address>(l: &Lowering<'_>, to: u32) -> Chain {
    match (ZEROES, l.is_mem(1), l.bits(1).min(to)) {
        (true, true, 8) => sized_wide!(to, mov::zero_extend, FastMem<A>, u8),
        (true, true, 16) => sized_wide!(to, mov::zero_extend, FastMem<A>, u16),
        (true, false, 8) => sized_wide!(to, mov::zero_extend, RegB, u8),
        (true, false, 16) => sized_wide!(to, mov::zero_extend, RegB, u16),
        (false, true, 8) => sized_wide!(to, mov::sign_extend, FastMem<A>, u8),
        (false, true, 16) => sized_wide!(to, mov::sign_extend, FastMem<A>, u16),
        (false, true, _) => sized_wide!(to, mov::sign_extend, FastMem<A>, u32),
        (false, false, 8) => sized_wide!(to, mov::sign_extend, RegB, u8),
        (false, false, 16) => sized_wide!(to, mov::sign_extend, RegB, u16),
        (false, false, _) => sized_wide!(to, mov::sign_extend, RegB, u32),
        _ => once,
    }
}

fn binary<O: Alu, A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    match (l.is_mem(0), l.is_mem(1), l.is_imm(1)) {
        (true, _, true) => sized!(bits, alu::binary, O, FastMem<A>, Imm),
        (true, ..) => sized!(bits, alu::binary, O, FastMem<A>, RegB),
        (_, true, _) => sized!(bits, alu::binary, O, RegA, FastMem<A>),
        (.., true) => sized!(bits, alu::binary, O, RegA, Imm),
        _ => sized!(bits, alu::binary, O, RegA, RegB),
    }
}

fn compare<O: Alu, A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    match (l.is_mem(0), l.is_mem(1), l.is_imm(1)) {
        (true, _, true) => sized!(bits, alu::compare, O, FastMem<A>, Imm),
        (true, ..) => sized!(bits, alu::compare, O, FastMem<A>, RegB),
        (_, true, _) => sized!(bits, alu::compare, O, RegA, FastMem<A>),
        (.., true) => sized!(bits, alu::compare, O, RegA, Imm),
        _ => sized!(bits, alu::compare, O, RegA, RegB),
    }
}

fn unary<O: Unary, A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    if l.is_mem(0) { sized!(bits, alu::unary, O, FastMem<A>) } else { sized!(bits, alu::unary, O, RegA) }
}

fn shift_by<O: Shift>(l: &Lowering<'_>, bits: u32) -> Chain {
    match (l.is_mem(0), l.is_imm(1)) {
        (true, _) => once,
        (false, true) => sized!(bits, shift::shift, O, RegA, Imm),
        (false, false) => sized!(bits, shift::shift, O, RegA, Cl),
    }
}

fn imul<A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    match (l.insn.op_count(), l.insn.op_count() > 1 && l.is_mem(1)) {
        (2, true) => sized_wide!(bits, multiply::imul_to_reg, FastMem<A>),
        (2, false) => sized_wide!(bits, multiply::imul_to_reg, RegB),
        (3, true) => sized_wide!(bits, multiply::imul_by_imm, FastMem<A>),
        (3, false) => sized_wide!(bits, multiply::imul_by_imm, RegB),
        _ => once,
    }
}

fn push<A: Address>(l: &Lowering<'_>) -> Chain {
    if l.is_mem(0) {
        chained!(stack::push::<FastMem<A>>)
    } else if is_gpr(l, 0) {
        chained!(stack::push::<RegA>)
    } else if l.is_reg(0) {
        once
    } else {
        chained!(stack::push::<Imm>)
    }
}

fn near_branch<A: Address>(l: &Lowering<'_>) -> Chain {
    let call = l.insn.mnemonic() == M::Call;
    if l.insn.op0_kind() == OpKind::NearBranch64 {
        return if call { chained_branch!(stack::call) } else { chained_branch!(branch::jmp::<Near64>) };
    }
    let near = l.insn.is_jmp_near_indirect() || l.insn.is_call_near_indirect();
    if !near || l.bits(0) != 64 {
        return once;
    }
    match (call, l.is_mem(0)) {
        (true, true) => chained_branch!(stack::call_indirect::<FastMem<A>>),
        (true, false) => chained_branch!(stack::call_indirect::<RegA>),
        (false, true) => chained_branch!(branch::jmp_indirect::<FastMem<A>, Near64>),
        (false, false) => chained_branch!(branch::jmp_indirect::<RegA, Near64>),
    }
}

fn cmov<A: Address>(l: &Lowering<'_>, bits: u32) -> Chain {
    match (l.is_mem(1), bits) {
        (true, 32) => conditional!(chained, condition(l), mov::cmov, FastMem<A>, u32),
        (true, 64) => conditional!(chained, condition(l), mov::cmov, FastMem<A>, u64),
        (false, 32) => conditional!(chained, condition(l), mov::cmov, RegB, u32),
        (false, 64) => conditional!(chained, condition(l), mov::cmov, RegB, u64),
        _ => once,
    }
}
