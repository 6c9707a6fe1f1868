use iced_x86::{Code, Instruction, Mnemonic as M};

use super::alu::operands;
use crate::exec::operand::{Imm, Mem, RegA, RegB};
use crate::exec::{cache, mov as x, undefined};
use crate::op::{CodeSize, Exec, Lowering, Op, ZERO};
use crate::{conditional, sized, sized_wide};

/// Moves, extensions, exchanges and what does nothing.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let bits = if l.insn.op_count() > 0 { l.bits(0) } else { 0 };
    let exec: Exec = match l.insn.mnemonic() {
        M::Mov => return mov(l, bits),
        M::Movnti => sized_wide!(bits, x::to_mem, RegB),
        M::Movzx => extend::<Zero>(l),
        M::Movsx | M::Movsxd => extend::<Sign>(l),
        M::Lea => sized_wide!(bits, x::lea),
        M::Xchg => return Some(xchg(l)),
        M::Bswap => match bits {
            16 => x::bswap16,
            32 => x::bswap::<u32>,
            _ => x::bswap::<u64>,
        },
        M::Movbe if l.is_mem(0) => sized_wide!(bits, x::movbe_store),
        M::Movbe => sized_wide!(bits, x::movbe_load),
        M::Xlatb => return Some(Op { index: ZERO, ..l.op(x::xlat) }),
        M::Cbw => x::extend_accumulator::<u8, u16>,
        M::Cwde => x::extend_accumulator::<u16, u32>,
        M::Cdqe => x::extend_accumulator::<u32, u64>,
        M::Cwd => x::spread_sign::<u16>,
        M::Cdq => x::spread_sign::<u32>,
        M::Cqo => x::spread_sign::<u64>,
        m if is_cmov(m) => cmov(l),
        m if is_set(m) => set(l),
        M::Nop | M::Reservednop | M::Endbr32 | M::Endbr64 | M::Cldemote => cache::nop,
        // RDSSP is a NOP where shadow stacks are not enabled.
        M::Rdsspd | M::Rdsspq => cache::nop,
        M::Prefetch | M::Prefetchw | M::Prefetchwt1 => cache::nop,
        M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchnta => cache::nop,
        M::Lfence | M::Sfence | M::Mfence => cache::nop,
        M::Clflush | M::Clflushopt | M::Clwb => cache::flush_line,
        M::Ud0 | M::Ud1 | M::Ud2 => undefined,
        _ => return None,
    };
    Some(operands(l, exec))
}

fn mov(l: &Lowering<'_>, bits: u32) -> Option<Op> {
    let (to, from) = (l.insn.op0_register(), l.insn.op1_register());
    if l.is_reg(0) && !to.is_gpr() {
        return None;
    }
    let mut op = operands(l, cache::nop);
    op.exec = if l.is_reg(1) && !from.is_gpr() {
        if !from.is_segment_register() {
            return None;
        }
        if l.is_mem(0) { x::selector_to_mem } else { sized_wide!(bits, x::selector_to_reg) }
    } else if let Some(load) = wide_offset(l) {
        op.imm = l.insn.memory_displacement64();
        if load { sized!(bits, x::load_offset) } else { sized!(l.bits(1), x::store_offset) }
    } else {
        match (l.is_mem(0), l.is_mem(1), l.is_imm(1)) {
            (true, _, true) => sized!(bits, x::to_mem, Imm),
            (true, ..) => sized!(bits, x::to_mem, RegB),
            (_, true, _) => sized!(bits, x::to_reg, Mem),
            (.., true) => sized!(bits, x::to_reg, Imm),
            _ => sized!(bits, x::to_reg, RegB),
        }
    };
    Some(op)
}

/// Whether the instruction loads (or stores) the accumulator at an absolute 64-bit offset.
fn wide_offset(l: &Lowering<'_>) -> Option<bool> {
    let load = match l.insn.code() {
        Code::Mov_AL_moffs8 | Code::Mov_AX_moffs16 | Code::Mov_EAX_moffs32 | Code::Mov_RAX_moffs64 => true,
        Code::Mov_moffs8_AL | Code::Mov_moffs16_AX | Code::Mov_moffs32_EAX | Code::Mov_moffs64_RAX => false,
        _ => return None,
    };
    (l.size == CodeSize::Bits64 && l.insn.memory_displ_size() == 8).then_some(load)
}

fn xchg(l: &Lowering<'_>) -> Op {
    let bits = l.bits(0);
    // The encoding has the memory operand first or second: XCHG is symmetric.
    let mut op = operands(l, cache::nop);
    op.exec = if l.is_mem(0) || l.is_mem(1) {
        if l.is_mem(1) {
            op.b = op.a;
        }
        sized!(bits, x::xchg, Mem)
    } else {
        sized!(bits, x::xchg, RegA)
    };
    op
}

trait Extension {
    fn handler(memory: bool, from: u32, to: u32) -> Exec;
}
struct Zero;
struct Sign;

macro_rules! extension {
    ($name:ident, $($f:ident)::+) => {
        impl Extension for $name {
            fn handler(memory: bool, from: u32, to: u32) -> Exec {
                match (memory, from) {
                    (true, 8) => sized_wide!(to, $($f)::+, Mem, u8),
                    (true, 16) => sized_wide!(to, $($f)::+, Mem, u16),
                    (true, _) => sized_wide!(to, $($f)::+, Mem, u32),
                    (false, 8) => sized_wide!(to, $($f)::+, RegB, u8),
                    (false, 16) => sized_wide!(to, $($f)::+, RegB, u16),
                    (false, _) => sized_wide!(to, $($f)::+, RegB, u32),
                }
            }
        }
    };
}
extension!(Zero, x::zero_extend);
extension!(Sign, x::sign_extend);

fn extend<E: Extension>(l: &Lowering<'_>) -> Exec {
    // MOVSXD without REX.W moves 16 bits to 16 bits or 32 bits to 32 bits; the decoder names the source's size.
    E::handler(l.is_mem(1), l.bits(1).min(l.bits(0)), l.bits(0))
}

/// The condition code (0-15) of a conditional instruction.
pub(super) fn condition(l: &Lowering<'_>) -> u8 {
    condition_of(l.insn)
}

pub(super) fn condition_of(insn: &Instruction) -> u8 {
    (insn.condition_code() as u8).wrapping_sub(1) & 15
}

pub(super) fn is_cmov(m: M) -> bool {
    use M::{
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns, Cmovo,
        Cmovp, Cmovs,
    };
    matches!(
        m,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}

pub(super) fn is_set(m: M) -> bool {
    use M::{Seta, Setae, Setb, Setbe, Sete, Setg, Setge, Setl, Setle, Setne, Setno, Setnp, Setns, Seto, Setp, Sets};
    matches!(
        m,
        Seta | Setae
            | Setb
            | Setbe
            | Sete
            | Setg
            | Setge
            | Setl
            | Setle
            | Setne
            | Setno
            | Setnp
            | Setns
            | Seto
            | Setp
            | Sets
    )
}

fn cmov(l: &Lowering<'_>) -> Exec {
    use x::cmov as f;
    let code = condition(l);
    match (l.is_mem(1), l.bits(0)) {
        (true, 16) => conditional!(code, f, Mem, u16),
        (true, 32) => conditional!(code, f, Mem, u32),
        (true, _) => conditional!(code, f, Mem, u64),
        (false, 16) => conditional!(code, f, RegB, u16),
        (false, 32) => conditional!(code, f, RegB, u32),
        (false, _) => conditional!(code, f, RegB, u64),
    }
}

fn set(l: &Lowering<'_>) -> Exec {
    use x::{set_mem, set_reg};
    let code = condition(l);
    if l.is_mem(0) { conditional!(code, set_mem) } else { conditional!(code, set_reg) }
}
