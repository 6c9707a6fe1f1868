//! Moves, halves, gathers, masked loads and stores, text.

use iced_x86::{Code, Mnemonic, OpKind};

use super::{has_memory, is_wide, three, two};
use crate::exec::avx::apply::{extract, general, insert_half, vector, widen};
use crate::exec::avx::masked::{self, gather};
use crate::exec::avx::moves;
use crate::exec::avx::operand::{self, Aligned};
use crate::exec::sse::operand::{General, Memory, Register, Unaligned};
use crate::exec::sse::text::{Explicit32, Explicit64, Implicit};
use crate::lower::sse::integer::masked_store;
use crate::op::{Exec, Lowering, Op, reg};

/// The handler for one width or the other.
fn by_width(l: &Lowering<'_>, narrow: Exec, wide: Exec) -> Exec {
    if is_wide(l) { wide } else { narrow }
}

/// A move of the only source.
macro_rules! load {
    ($l:expr, $source:ty) => {
        by_width(
            $l,
            |c, o| vector::<false, $source, u128, u128>(c, o, |_, b, _| b),
            |c, o| vector::<true, $source, u128, u128>(c, o, |_, b, _| b),
        )
    };
}

/// A move of a whole register, to memory or from `$memory`.
macro_rules! whole {
    ($l:expr, $memory:ty, $store:ident) => {
        two(
            $l,
            if $l.is_mem(0) {
                by_width($l, moves::$store::<false>, moves::$store::<true>)
            } else if $l.is_mem(1) {
                load!($l, $memory)
            } else {
                load!($l, operand::Register)
            },
        )
    };
}

/// VMOVLPS, VMOVHPS and their kin: replace half `$i` of source 1 from memory, or store it.
macro_rules! half {
    ($l:expr, $i:literal) => {
        if $l.is_mem(0) {
            two($l, |c, o| extract::<[u64; 2], u64>(c, o, |a, _| a[$i]))
        } else {
            three($l, |c, o| {
                widen::<Memory, u64, [u64; 2]>(c, o, |mut a, b, _| {
                    a[$i] = b;
                    a
                })
            })
        }
    };
}

/// A scalar, zero-extended, from `$register` or memory; or to memory.
macro_rules! scalar {
    ($l:expr, $register:ty, $t:ty) => {
        two(
            $l,
            if $l.is_mem(0) {
                moves::store_low::<$t>
            } else if $l.is_mem(1) {
                moves::load_scalar::<Memory, $t>
            } else {
                moves::load_scalar::<$register, $t>
            },
        )
    };
}

/// VMASKMOVPS and its kin, of elements `$t`.
macro_rules! masked {
    ($l:expr, $t:ty) => {
        three(
            $l,
            if $l.is_mem(0) {
                by_width($l, masked::store::<false, $t>, masked::store::<true, $t>)
            } else {
                by_width($l, masked::load::<false, $t>, masked::load::<true, $t>)
            },
        )
    };
}

/// VPCMPxSTRx.
macro_rules! text {
    ($l:expr, $handler:ident, $lengths:ty) => {
        two(
            $l,
            if has_memory($l) { moves::$handler::<Unaligned, $lengths> } else { moves::$handler::<Register, $lengths> },
        )
    };
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vmovaps
        | Mnemonic::Vmovapd
        | Mnemonic::Vmovdqa
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Vmovntdq
        | Mnemonic::Vmovntdqa => whole!(l, Aligned, store_aligned),
        Mnemonic::Vmovups | Mnemonic::Vmovupd | Mnemonic::Vmovdqu | Mnemonic::Vlddqu => {
            whole!(l, operand::Memory, store)
        }
        Mnemonic::Vmovlps | Mnemonic::Vmovlpd => half!(l, 0),
        Mnemonic::Vmovhps | Mnemonic::Vmovhpd => half!(l, 1),
        Mnemonic::Vmovhlps => three(l, forms!(l, vector, [[u64; 2], [u64; 2]], |a, b, _| [b[1], a[1]])),
        Mnemonic::Vmovlhps => three(l, forms!(l, vector, [[u64; 2], [u64; 2]], |a, b, _| [a[0], b[0]])),
        Mnemonic::Vmovss if l.insn.op_count() == 3 => three(l, moves::merge_low::<u32>),
        Mnemonic::Vmovsd if l.insn.op_count() == 3 => three(l, moves::merge_low::<u64>),
        Mnemonic::Vmovss => scalar!(l, Register, u32),
        Mnemonic::Vmovsd => scalar!(l, Register, u64),
        // Only eight bytes are read for 128 bits, and 32 for 256.
        Mnemonic::Vmovddup if has_memory(l) && !is_wide(l) => {
            two(l, |c, o| widen::<Memory, u64, [u64; 2]>(c, o, |_, b, _| [b; 2]))
        }
        Mnemonic::Vmovddup => two(l, forms!(l, vector, [[u64; 2], [u64; 2]], |_, b, _| [b[0]; 2])),
        Mnemonic::Vmovsldup => two(l, forms!(l, vector, [[u32; 4], [u32; 4]], |_, b, _| [b[0], b[0], b[2], b[2]])),
        Mnemonic::Vmovshdup => two(l, forms!(l, vector, [[u32; 4], [u32; 4]], |_, b, _| [b[1], b[1], b[3], b[3]])),

        Mnemonic::Vinsertf128 | Mnemonic::Vinserti128 => {
            three(l, if has_memory(l) { insert_half::<operand::Memory> } else { insert_half::<operand::Register> })
        }
        Mnemonic::Vextractf128 | Mnemonic::Vextracti128 => {
            two(l, if has_memory(l) { moves::store_half } else { moves::extract_half })
        }
        Mnemonic::Vbroadcastf128 | Mnemonic::Vbroadcasti128 => two(l, moves::broadcast_half),

        Mnemonic::Vmaskmovps | Mnemonic::Vpmaskmovd => masked!(l, u32),
        Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq => masked!(l, u64),
        Mnemonic::Vmaskmovdqu => masked_store(l, moves::masked_store_bytes),

        Mnemonic::Vzeroupper => l.op(moves::zero_upper),
        Mnemonic::Vzeroall => l.op(moves::zero_all),
        Mnemonic::Vldmxcsr => l.op(moves::ldmxcsr),
        Mnemonic::Vstmxcsr => l.op(moves::stmxcsr),
        _ => return by_code(l),
    })
}

fn by_code(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.code() {
        Code::VEX_Vmovd_xmm_rm32 => scalar!(l, General, u32),
        Code::VEX_Vmovq_xmm_rm64 => scalar!(l, General, u64),
        Code::VEX_Vmovq_xmm_xmmm64 | Code::VEX_Vmovq_xmmm64_xmm => scalar!(l, Register, u64),
        Code::VEX_Vmovd_rm32_xmm if l.is_mem(0) => two(l, moves::store_low::<u32>),
        Code::VEX_Vmovd_rm32_xmm => two(l, |c, o| general::<[u32; 4]>(c, o, |b, _| u64::from(b[0]))),
        Code::VEX_Vmovq_rm64_xmm if l.is_mem(0) => two(l, moves::store_low::<u64>),
        Code::VEX_Vmovq_rm64_xmm => two(l, |c, o| general::<[u64; 2]>(c, o, |b, _| b[0])),

        Code::VEX_Vpgatherdd_xmm_vm32x_xmm | Code::VEX_Vgatherdps_xmm_vm32x_xmm => gathered(l, gather::<i32, u32, 4>),
        Code::VEX_Vpgatherdd_ymm_vm32y_ymm | Code::VEX_Vgatherdps_ymm_vm32y_ymm => gathered(l, gather::<i32, u32, 8>),
        Code::VEX_Vpgatherdq_xmm_vm32x_xmm | Code::VEX_Vgatherdpd_xmm_vm32x_xmm => gathered(l, gather::<i32, u64, 2>),
        Code::VEX_Vpgatherdq_ymm_vm32x_ymm | Code::VEX_Vgatherdpd_ymm_vm32x_ymm => gathered(l, gather::<i32, u64, 4>),
        Code::VEX_Vpgatherqd_xmm_vm64x_xmm | Code::VEX_Vgatherqps_xmm_vm64x_xmm => gathered(l, gather::<i64, u32, 2>),
        Code::VEX_Vpgatherqd_xmm_vm64y_xmm | Code::VEX_Vgatherqps_xmm_vm64y_xmm => gathered(l, gather::<i64, u32, 4>),
        Code::VEX_Vpgatherqq_xmm_vm64x_xmm | Code::VEX_Vgatherqpd_xmm_vm64x_xmm => gathered(l, gather::<i64, u64, 2>),
        Code::VEX_Vpgatherqq_ymm_vm64y_ymm | Code::VEX_Vgatherqpd_ymm_vm64y_ymm => gathered(l, gather::<i64, u64, 4>),

        Code::VEX_Vpcmpistri_xmm_xmmm128_imm8 => text!(l, text_index, Implicit),
        Code::VEX_Vpcmpistrm_xmm_xmmm128_imm8 => text!(l, text_mask, Implicit),
        Code::VEX_Vpcmpestri_xmm_xmmm128_imm8 => text!(l, text_index, Explicit32),
        Code::VEX_Vpcmpestrm_xmm_xmmm128_imm8 => text!(l, text_mask, Explicit32),
        Code::VEX_Vpcmpestri64_xmm_xmmm128_imm8 => text!(l, text_index, Explicit64),
        Code::VEX_Vpcmpestrm64_xmm_xmmm128_imm8 => text!(l, text_mask, Explicit64),
        _ => return None,
    })
}

/// Destination in `a`, indices in `b`, mask in VEX.vvvv. The same register twice is #UD.
fn gathered(l: &Lowering<'_>, exec: Exec) -> Op {
    debug_assert_eq!(l.insn.op_kind(1), OpKind::Memory);
    let mut op = l.op(exec);
    op.a = l.reg(0);
    op.b = reg(l.insn.memory_index());
    op.imm = u64::from(l.reg(2) & 15) << 8;
    op
}
