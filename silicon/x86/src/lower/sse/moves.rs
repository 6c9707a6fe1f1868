//! Moves.

use iced_x86::{Code, Mnemonic};

use super::{op, source};
use crate::exec::mmx::apply as mm;
use crate::exec::sse::operand::{General, Memory, Register, Unaligned};
use crate::exec::sse::{apply, moves};
use crate::op::{Exec, Lowering, Op};

/// The whole register from register or memory.
fn load<S: crate::exec::sse::operand::Source>(core: &mut crate::Core, op: &Op) -> crate::op::Done {
    apply::vector::<S, [u64; 2], [u64; 2]>(core, op, |_, b, _| b)
}

/// A move of a whole register, which may store.
fn whole(l: &Lowering<'_>, memory: Exec, store: Exec) -> Op {
    if l.is_mem(0) { op(l, store) } else { source(l, load::<Register>, memory) }
}

/// `$f` of destination and source, both `[u64; 2]`, where the source is a register.
macro_rules! halves {
    ($l:expr, $f:expr) => {
        op($l, |c, o| apply::vector::<Register, [u64; 2], [u64; 2]>(c, o, $f))
    };
}

/// MOVLPS, MOVHPS and their kin: replace half `$i` from memory, or store it.
macro_rules! half {
    ($l:expr, $i:literal) => {
        op(
            $l,
            if $l.is_mem(0) {
                |c, o| apply::extract::<[u64; 2], u64>(c, o, |a, _| a[$i])
            } else {
                |c, o| {
                    apply::widen::<Memory, u64, [u64; 2]>(c, o, |mut a, b, _| {
                        a[$i] = b;
                        a
                    })
                }
            },
        )
    };
}

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Movaps
        | Mnemonic::Movapd
        | Mnemonic::Movdqa
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntdq
        | Mnemonic::Movntdqa => whole(l, load::<Memory>, moves::store_aligned),
        Mnemonic::Movups | Mnemonic::Movupd | Mnemonic::Movdqu | Mnemonic::Lddqu => {
            whole(l, load::<Unaligned>, moves::store_low::<u128>)
        }
        Mnemonic::Movlps | Mnemonic::Movlpd => half!(l, 0),
        Mnemonic::Movhps | Mnemonic::Movhpd => half!(l, 1),
        Mnemonic::Movhlps => halves!(l, |a, b, _| [b[1], a[1]]),
        Mnemonic::Movlhps => halves!(l, |a, b, _| [a[0], b[0]]),
        Mnemonic::Movddup => source(
            l,
            |c, o| apply::vector::<Register, [u64; 2], [u64; 2]>(c, o, |_, b, _| [b[0]; 2]),
            |c, o| apply::widen::<Memory, u64, [u64; 2]>(c, o, |_, b, _| [b; 2]),
        ),
        Mnemonic::Movsldup => source(
            l,
            |c, o| apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, |_, b, _| [b[0], b[0], b[2], b[2]]),
            |c, o| apply::vector::<Memory, [u32; 4], [u32; 4]>(c, o, |_, b, _| [b[0], b[0], b[2], b[2]]),
        ),
        Mnemonic::Movshdup => source(
            l,
            |c, o| apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, |_, b, _| [b[1], b[1], b[3], b[3]]),
            |c, o| apply::vector::<Memory, [u32; 4], [u32; 4]>(c, o, |_, b, _| [b[1], b[1], b[3], b[3]]),
        ),
        _ => return by_code(l),
    })
}

fn by_code(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.code() {
        Code::Movss_xmm_xmmm32 => source(
            l,
            |c, o| apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, |a, b, _| [b[0], a[1], a[2], a[3]]),
            moves::load_scalar::<Memory, u32>,
        ),
        Code::Movss_xmmm32_xmm if l.is_mem(0) => op(l, moves::store_low::<u32>),
        Code::Movss_xmmm32_xmm => {
            op(l, |c, o| apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, |a, b, _| [b[0], a[1], a[2], a[3]]))
        }
        Code::Movsd_xmm_xmmm64 if l.is_mem(1) => op(l, moves::load_scalar::<Memory, u64>),
        Code::Movsd_xmmm64_xmm if l.is_mem(0) => op(l, moves::store_low::<u64>),
        Code::Movsd_xmm_xmmm64 | Code::Movsd_xmmm64_xmm => halves!(l, |a, b, _| [b[0], a[1]]),

        Code::Movd_xmm_rm32 => source(l, moves::load_scalar::<General, u32>, moves::load_scalar::<Memory, u32>),
        Code::Movq_xmm_rm64 => source(l, moves::load_scalar::<General, u64>, moves::load_scalar::<Memory, u64>),
        Code::Movq_xmm_xmmm64 => source(l, moves::load_scalar::<Register, u64>, moves::load_scalar::<Memory, u64>),
        Code::Movd_rm32_xmm if l.is_mem(0) => op(l, moves::store_low::<u32>),
        Code::Movd_rm32_xmm => op(l, |c, o| apply::general::<Register, [u32; 4]>(c, o, |b, _| u64::from(b[0]))),
        Code::Movq_rm64_xmm | Code::Movq_xmmm64_xmm if l.is_mem(0) => op(l, moves::store_low::<u64>),
        Code::Movq_rm64_xmm => op(l, |c, o| apply::general::<Register, [u64; 2]>(c, o, |b, _| b[0])),
        Code::Movq_xmmm64_xmm => op(l, moves::load_scalar::<Register, u64>),

        Code::Movd_mm_rm32 => source(
            l,
            |c, o| mm::scalar::<mm::General, u32>(c, o, |_, b, _| u64::from(b)),
            |c, o| mm::scalar::<mm::Memory, u32>(c, o, |_, b, _| u64::from(b)),
        ),
        Code::Movq_mm_rm64 => source(
            l,
            |c, o| mm::scalar::<mm::General, u64>(c, o, |_, b, _| b),
            |c, o| mm::scalar::<mm::Memory, u64>(c, o, |_, b, _| b),
        ),
        Code::Movq_mm_mmm64 => source(
            l,
            |c, o| mm::scalar::<mm::Register, u64>(c, o, |_, b, _| b),
            |c, o| mm::scalar::<mm::Memory, u64>(c, o, |_, b, _| b),
        ),
        Code::Movd_rm32_mm if l.is_mem(0) => op(l, mm::store::<u32>),
        Code::Movd_rm32_mm => op(l, mm::to_general::<u32>),
        Code::Movq_rm64_mm | Code::Movq_mmm64_mm if l.is_mem(0) => op(l, mm::store::<u64>),
        Code::Movq_rm64_mm => op(l, mm::to_general::<u64>),
        Code::Movq_mmm64_mm => op(l, |c, o| mm::scalar::<mm::Register, u64>(c, o, |_, b, _| b)),
        Code::Movntq_m64_mm => op(l, mm::store::<u64>),
        Code::Movdq2q_mm_xmm => op(l, mm::from_xmm),
        Code::Movq2dq_xmm_mm => op(l, mm::to_xmm),
        _ => return None,
    })
}
