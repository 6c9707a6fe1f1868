//! Packed integers.

use bytemuck::cast;
use iced_x86::{Mnemonic, Register as Named};

use super::{count, is_mmx, op, source};
use crate::exec::mmx::apply as mm;
use crate::exec::sse::integer::*;
use crate::exec::sse::lane::{Lane, map, zip};
use crate::exec::sse::operand::{General, Immediate, Memory, Register, low};
use crate::exec::sse::{apply, compare, moves, shuffle};
use crate::op::{CodeSize, Exec, FLAT, Lowering, Op, reg};

/// XMM only: lanes `$t` to lanes `$r` by `$f` of destination, source and immediate.
macro_rules! xmm {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::vector::<Register, <$t as Lane>::Xmm, <$r as Lane>::Xmm>(c, o, $f),
            |c, o| apply::vector::<Memory, <$t as Lane>::Xmm, <$r as Lane>::Xmm>(c, o, $f),
        )
    };
}

/// The same for MMX.
macro_rules! mmx {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        source(
            $l,
            |c, o| mm::vector::<mm::Register, <$t as Lane>::Mm, <$r as Lane>::Mm>(c, o, $f),
            |c, o| mm::vector::<mm::Memory, <$t as Lane>::Mm, <$r as Lane>::Mm>(c, o, $f),
        )
    };
}

/// MMX and XMM.
macro_rules! both {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        if is_mmx($l) { mmx!($l, $t => $r, $f) } else { xmm!($l, $t => $r, $f) }
    };
}

/// MMX and XMM: lanes of the low halves in turn.
macro_rules! unpack_low {
    ($l:expr, $t:ty) => {
        if is_mmx($l) {
            type Lanes = <$t as Lane>::Mm;
            source(
                $l,
                |c, o| mm::vector::<mm::Register, Lanes, Lanes>(c, o, |a, b, _| shuffle::unpack_low(a, b)),
                |c, o| mm::vector::<mm::LowMemory, Lanes, Lanes>(c, o, |a, b, _| shuffle::unpack_low(a, b)),
            )
        } else {
            xmm!($l, $t => $t, |a, b, _| shuffle::unpack_low(a, b))
        }
    };
}

/// MMX and XMM: `$f` of each pair of lanes.
macro_rules! lanes {
    ($l:expr, $t:ty, $f:expr) => {
        both!($l, $t => $t, |a, b, _| zip(a, b, $f))
    };
}

/// MMX and XMM: `$f` of each lane of the source.
macro_rules! unary {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        both!($l, $t => $r, |_, b, _| map(b, $f))
    };
}

/// MMX and XMM: `$f` of the destination and the count.
macro_rules! shift {
    ($l:expr, $t:ty, $f:expr) => {
        if is_mmx($l) {
            count(
                $l,
                |c, o| mm::shift::<mm::Immediate, <$t as Lane>::Mm>(c, o, $f),
                |c, o| mm::shift::<mm::Register, <$t as Lane>::Mm>(c, o, $f),
                |c, o| mm::shift::<mm::Memory, <$t as Lane>::Mm>(c, o, $f),
            )
        } else {
            count(
                $l,
                |c, o| apply::shift::<Immediate, <$t as Lane>::Xmm>(c, o, $f),
                |c, o| apply::shift::<Register, <$t as Lane>::Xmm>(c, o, $f),
                |c, o| apply::shift::<Memory, <$t as Lane>::Xmm>(c, o, $f),
            )
        }
    };
}

/// PMOVSX, PMOVZX: `$n` lanes `$t`, which make a `$word`, to lanes `$r`.
macro_rules! extend {
    ($l:expr, [$t:ty; $n:literal] in $word:ty => $r:ty) => {
        source(
            $l,
            |c, o| {
                apply::widen::<Register, $word, <$r as Lane>::Xmm>(c, o, |_, b, _| {
                    shuffle::extend(cast::<$word, [$t; $n]>(b))
                })
            },
            |c, o| {
                apply::widen::<Memory, $word, <$r as Lane>::Xmm>(c, o, |_, b, _| {
                    shuffle::extend(cast::<$word, [$t; $n]>(b))
                })
            },
        )
    };
}

/// PINSRx of a `$t` into lanes `$t`, from a general register or memory.
macro_rules! insert {
    ($l:expr, $t:ty) => {
        source(
            $l,
            |c, o| apply::widen::<General, u64, <$t as Lane>::Xmm>(c, o, |a, b, i| shuffle::insert(a, b as $t, i)),
            |c, o| apply::widen::<Memory, $t, <$t as Lane>::Xmm>(c, o, |a, b, i| shuffle::insert(a, b, i)),
        )
    };
}

/// PEXTRx of a `$t` to a general register or memory.
macro_rules! extract {
    ($l:expr, $t:ty) => {
        op(
            $l,
            if $l.is_mem(0) {
                |c, o| apply::extract::<<$t as Lane>::Xmm, $t>(c, o, shuffle::pick)
            } else {
                |c, o| apply::general::<Register, <$t as Lane>::Xmm>(c, o, |a, i| u64::from(shuffle::pick(a, i)))
            },
        )
    };
}

/// A blend by the signs of XMM0.
macro_rules! blend_by_sign {
    ($l:expr, $v:ty, $f:expr) => {
        source(
            $l,
            |c, o| {
                let mask: $v = low(c, 0);
                apply::vector::<Register, $v, $v>(c, o, |a, b, _| $f(a, b, mask))
            },
            |c, o| {
                let mask: $v = low(c, 0);
                apply::vector::<Memory, $v, $v>(c, o, |a, b, _| $f(a, b, mask))
            },
        )
    };
}

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Paddb => lanes!(l, u8, u8::wrapping_add),
        Mnemonic::Paddw => lanes!(l, u16, u16::wrapping_add),
        Mnemonic::Paddd => lanes!(l, u32, u32::wrapping_add),
        Mnemonic::Paddq => lanes!(l, u64, u64::wrapping_add),
        Mnemonic::Paddsb => lanes!(l, i8, i8::saturating_add),
        Mnemonic::Paddsw => lanes!(l, i16, i16::saturating_add),
        Mnemonic::Paddusb => lanes!(l, u8, u8::saturating_add),
        Mnemonic::Paddusw => lanes!(l, u16, u16::saturating_add),
        Mnemonic::Psubb => lanes!(l, u8, u8::wrapping_sub),
        Mnemonic::Psubw => lanes!(l, u16, u16::wrapping_sub),
        Mnemonic::Psubd => lanes!(l, u32, u32::wrapping_sub),
        Mnemonic::Psubq => lanes!(l, u64, u64::wrapping_sub),
        Mnemonic::Psubsb => lanes!(l, i8, i8::saturating_sub),
        Mnemonic::Psubsw => lanes!(l, i16, i16::saturating_sub),
        Mnemonic::Psubusb => lanes!(l, u8, u8::saturating_sub),
        Mnemonic::Psubusw => lanes!(l, u16, u16::saturating_sub),

        Mnemonic::Pmullw => lanes!(l, u16, u16::wrapping_mul),
        Mnemonic::Pmulld => lanes!(l, u32, u32::wrapping_mul),
        Mnemonic::Pmulhw => lanes!(l, i16, multiply_high),
        Mnemonic::Pmulhuw => lanes!(l, u16, multiply_high_unsigned),
        Mnemonic::Pmulhrsw => lanes!(l, i16, multiply_high_rounded),
        Mnemonic::Pmuludq => lanes!(l, u64, multiply_even_unsigned),
        Mnemonic::Pmuldq => lanes!(l, i64, multiply_even),
        Mnemonic::Pmaddwd => both!(l, i16 => i32, |a, b, _| multiply_add(a, b)),
        Mnemonic::Pmaddubsw => both!(l, u8 => i16, |a, b, _| multiply_add_bytes(a, b)),
        Mnemonic::Psadbw => both!(l, u8 => u64, |a, b, _| sum_of_differences(a, b)),
        Mnemonic::Mpsadbw => source(
            l,
            |c, o| apply::vector::<Register, [u8; 16], [u16; 8]>(c, o, multiple_sums_of_differences),
            |c, o| apply::vector::<Memory, [u8; 16], [u16; 8]>(c, o, multiple_sums_of_differences),
        ),
        Mnemonic::Phminposuw => xmm!(l, u16 => u16, |_, b, _| minimum_position(b)),

        Mnemonic::Phaddw => both!(l, u16 => u16, |a, b, _| horizontal(a, b, u16::wrapping_add)),
        Mnemonic::Phaddd => both!(l, u32 => u32, |a, b, _| horizontal(a, b, u32::wrapping_add)),
        Mnemonic::Phaddsw => both!(l, i16 => i16, |a, b, _| horizontal(a, b, i16::saturating_add)),
        Mnemonic::Phsubw => both!(l, u16 => u16, |a, b, _| horizontal(a, b, u16::wrapping_sub)),
        Mnemonic::Phsubd => both!(l, u32 => u32, |a, b, _| horizontal(a, b, u32::wrapping_sub)),
        Mnemonic::Phsubsw => both!(l, i16 => i16, |a, b, _| horizontal(a, b, i16::saturating_sub)),

        Mnemonic::Pabsb => unary!(l, i8 => u8, i8::unsigned_abs),
        Mnemonic::Pabsw => unary!(l, i16 => u16, i16::unsigned_abs),
        Mnemonic::Pabsd => unary!(l, i32 => u32, i32::unsigned_abs),
        Mnemonic::Psignb => lanes!(l, i8, sign8),
        Mnemonic::Psignw => lanes!(l, i16, sign16),
        Mnemonic::Psignd => lanes!(l, i32, sign32),
        Mnemonic::Pavgb => lanes!(l, u8, average8),
        Mnemonic::Pavgw => lanes!(l, u16, average16),
        Mnemonic::Pminub => lanes!(l, u8, u8::min),
        Mnemonic::Pminuw => lanes!(l, u16, u16::min),
        Mnemonic::Pminud => lanes!(l, u32, u32::min),
        Mnemonic::Pminsb => lanes!(l, i8, i8::min),
        Mnemonic::Pminsw => lanes!(l, i16, i16::min),
        Mnemonic::Pminsd => lanes!(l, i32, i32::min),
        Mnemonic::Pmaxub => lanes!(l, u8, u8::max),
        Mnemonic::Pmaxuw => lanes!(l, u16, u16::max),
        Mnemonic::Pmaxud => lanes!(l, u32, u32::max),
        Mnemonic::Pmaxsb => lanes!(l, i8, i8::max),
        Mnemonic::Pmaxsw => lanes!(l, i16, i16::max),
        Mnemonic::Pmaxsd => lanes!(l, i32, i32::max),

        Mnemonic::Pcmpeqb => lanes!(l, u8, equal8),
        Mnemonic::Pcmpeqw => lanes!(l, u16, equal16),
        Mnemonic::Pcmpeqd => lanes!(l, u32, equal32),
        Mnemonic::Pcmpeqq => lanes!(l, u64, equal64),
        Mnemonic::Pcmpgtb => lanes!(l, i8, greater8),
        Mnemonic::Pcmpgtw => lanes!(l, i16, greater16),
        Mnemonic::Pcmpgtd => lanes!(l, i32, greater32),
        Mnemonic::Pcmpgtq => lanes!(l, i64, greater64),

        Mnemonic::Pand | Mnemonic::Andps | Mnemonic::Andpd => lanes!(l, u64, |a, b| a & b),
        Mnemonic::Por | Mnemonic::Orps | Mnemonic::Orpd => lanes!(l, u64, |a, b| a | b),
        Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd => lanes!(l, u64, |a, b| a ^ b),
        Mnemonic::Pandn | Mnemonic::Andnps | Mnemonic::Andnpd => both!(l, u64 => u64, |a, b, _| and_not(a, b)),
        Mnemonic::Ptest => source(l, compare::test::<Register>, compare::test::<Memory>),

        Mnemonic::Psllw => shift!(l, u16, left16),
        Mnemonic::Pslld => shift!(l, u32, left32),
        Mnemonic::Psllq => shift!(l, u64, left64),
        Mnemonic::Psrlw => shift!(l, u16, right16),
        Mnemonic::Psrld => shift!(l, u32, right32),
        Mnemonic::Psrlq => shift!(l, u64, right64),
        Mnemonic::Psraw => shift!(l, i16, arithmetic16),
        Mnemonic::Psrad => shift!(l, i32, arithmetic32),
        Mnemonic::Pslldq => op(l, |c, o| apply::vector::<Immediate, u128, u128>(c, o, |a, _, i| shuffle::left(a, i))),
        Mnemonic::Psrldq => op(l, |c, o| apply::vector::<Immediate, u128, u128>(c, o, |a, _, i| shuffle::right(a, i))),

        Mnemonic::Punpcklbw => unpack_low!(l, u8),
        Mnemonic::Punpcklwd => unpack_low!(l, u16),
        Mnemonic::Punpckldq => unpack_low!(l, u32),
        Mnemonic::Punpcklqdq | Mnemonic::Unpcklpd => xmm!(l, u64 => u64, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Punpckhbw => both!(l, u8 => u8, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Punpckhwd => both!(l, u16 => u16, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Punpckhdq => both!(l, u32 => u32, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Punpckhqdq | Mnemonic::Unpckhpd => xmm!(l, u64 => u64, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Unpcklps => xmm!(l, u32 => u32, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Unpckhps => xmm!(l, u32 => u32, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Packsswb => both!(l, i16 => u8, |a, b, _| pack(a, b, narrow_i8)),
        Mnemonic::Packuswb => both!(l, i16 => u8, |a, b, _| pack(a, b, narrow_u8)),
        Mnemonic::Packssdw => both!(l, i32 => u16, |a, b, _| pack(a, b, narrow_i16)),
        Mnemonic::Packusdw => xmm!(l, i32 => u16, |a, b, _| pack(a, b, narrow_u16)),

        Mnemonic::Pshufb => both!(l, u8 => u8, |a, b, _| shuffle::bytes(a, b)),
        Mnemonic::Pshufw => mmx!(l, u16 => u16, |_, b, i| shuffle::four(b, i)),
        Mnemonic::Pshufd => xmm!(l, u32 => u32, |_, b, i| shuffle::four(b, i)),
        Mnemonic::Pshuflw => xmm!(l, u16 => u16, |_, b, i| shuffle::low_words(b, i)),
        Mnemonic::Pshufhw => xmm!(l, u16 => u16, |_, b, i| shuffle::high_words(b, i)),
        Mnemonic::Shufps => xmm!(l, u32 => u32, shuffle::singles),
        Mnemonic::Shufpd => xmm!(l, u64 => u64, shuffle::doubles),
        Mnemonic::Palignr => both!(l, u8 => u8, shuffle::align),

        Mnemonic::Pblendw => xmm!(l, u16 => u16, shuffle::blend),
        Mnemonic::Blendps => xmm!(l, u32 => u32, shuffle::blend),
        Mnemonic::Blendpd => xmm!(l, u64 => u64, shuffle::blend),
        Mnemonic::Pblendvb => blend_by_sign!(l, [i8; 16], shuffle::blend_bytes),
        Mnemonic::Blendvps => blend_by_sign!(l, [i32; 4], shuffle::blend_singles),
        Mnemonic::Blendvpd => blend_by_sign!(l, [i64; 2], shuffle::blend_doubles),

        Mnemonic::Pmovzxbw => extend!(l, [u8; 8] in u64 => u16),
        Mnemonic::Pmovzxbd => extend!(l, [u8; 4] in u32 => u32),
        Mnemonic::Pmovzxbq => extend!(l, [u8; 2] in u16 => u64),
        Mnemonic::Pmovzxwd => extend!(l, [u16; 4] in u64 => u32),
        Mnemonic::Pmovzxwq => extend!(l, [u16; 2] in u32 => u64),
        Mnemonic::Pmovzxdq => extend!(l, [u32; 2] in u64 => u64),
        Mnemonic::Pmovsxbw => extend!(l, [i8; 8] in u64 => i16),
        Mnemonic::Pmovsxbd => extend!(l, [i8; 4] in u32 => i32),
        Mnemonic::Pmovsxbq => extend!(l, [i8; 2] in u16 => i64),
        Mnemonic::Pmovsxwd => extend!(l, [i16; 4] in u64 => i32),
        Mnemonic::Pmovsxwq => extend!(l, [i16; 2] in u32 => i64),
        Mnemonic::Pmovsxdq => extend!(l, [i32; 2] in u64 => i64),

        Mnemonic::Pinsrb => insert!(l, u8),
        Mnemonic::Pinsrw if is_mmx(l) => source(
            l,
            |c, o| mm::scalar::<mm::General, u16>(c, o, |a, b, i| cast(shuffle::insert::<u16, 4>(cast(a), b, i))),
            |c, o| mm::scalar::<mm::Memory, u16>(c, o, |a, b, i| cast(shuffle::insert::<u16, 4>(cast(a), b, i))),
        ),
        Mnemonic::Pinsrw => insert!(l, u16),
        Mnemonic::Pinsrd => insert!(l, u32),
        Mnemonic::Pinsrq => insert!(l, u64),
        Mnemonic::Insertps => source(
            l,
            |c, o| {
                apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, |a, b, i| {
                    shuffle::insert_single(a, shuffle::pick(b, i >> 6), i)
                })
            },
            |c, o| apply::widen::<Memory, u32, [u32; 4]>(c, o, shuffle::insert_single),
        ),
        Mnemonic::Pextrb => extract!(l, u8),
        Mnemonic::Pextrw if is_mmx(l) => {
            op(l, |c, o| mm::general::<[u16; 4]>(c, o, |a, i| u64::from(shuffle::pick(a, i))))
        }
        Mnemonic::Pextrw => extract!(l, u16),
        Mnemonic::Pextrd | Mnemonic::Extractps => extract!(l, u32),
        Mnemonic::Pextrq => extract!(l, u64),

        Mnemonic::Pmovmskb if is_mmx(l) => op(l, |c, o| mm::general::<[u8; 8]>(c, o, |a, _| byte_signs(&a))),
        Mnemonic::Pmovmskb => op(l, |c, o| apply::general::<Register, [u8; 16]>(c, o, |a, _| byte_signs(&a))),
        Mnemonic::Movmskps => op(l, |c, o| {
            apply::general::<Register, [u32; 4]>(c, o, |a, _| {
                a.iter().rev().fold(0, |signs, v| signs << 1 | u64::from(v >> 31))
            })
        }),
        Mnemonic::Movmskpd => {
            op(l, |c, o| apply::general::<Register, [u64; 2]>(c, o, |a, _| a[0] >> 63 | a[1] >> 63 << 1))
        }
        Mnemonic::Maskmovq => masked_store(l, mm::masked_store),
        Mnemonic::Maskmovdqu => masked_store(l, moves::masked_store),
        _ => return None,
    })
}

/// MASKMOVQ, MASKMOVDQU: the memory operand is implicit, at DS:rDI.
pub fn masked_store(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = l.op(exec);
    op.a = l.reg(1);
    op.b = l.reg(2);
    let segment = l.insn.memory_segment();
    let flat = l.size == CodeSize::Bits64 && !matches!(segment, Named::FS | Named::GS);
    op.base = reg(Named::RDI);
    op.seg = reg(segment) | if flat { FLAT } else { 0 };
    op.scale_drop = ((64 - l.address_bits()) as u8) << 2;
    op
}
