//! Packed integers of AVX and AVX2, and what does the same to floating-point registers: logic, blends, shuffles.

use bytemuck::cast;
use iced_x86::Mnemonic;

use super::{has_memory, is_wide, three, two};
use crate::exec::avx::apply::{
    across, blend, broadcast, extend_both, extract, general, shift, signs, stepped, vector, widen,
};
use crate::exec::avx::moves::test;
use crate::exec::avx::operand::{self, Immediate};
use crate::exec::avx::permute;
use crate::exec::sse::integer::*;
use crate::exec::sse::lane::{Lane, map, zip};
use crate::exec::sse::operand::{General, Memory, Register};
use crate::exec::sse::shuffle;
use crate::op::{Exec, Lowering, Op};

/// Lanes `$t` to lanes `$r` by `$f` of source 1, source 2 and immediate.
macro_rules! sources {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        three($l, forms!($l, vector, [<$t as Lane>::Xmm, <$r as Lane>::Xmm], $f))
    };
}

/// The same, where the high half takes the immediate from `$step` bits further up.
macro_rules! by_step {
    ($l:expr, $t:ty, $step:literal, $f:expr) => {
        three($l, forms!($l, stepped, [<$t as Lane>::Xmm, <$t as Lane>::Xmm], $step, $f))
    };
}

/// `$f` of each pair of lanes.
macro_rules! lanes {
    ($l:expr, $t:ty, $f:expr) => {
        sources!($l, $t => $t, |a, b, _| zip(a, b, $f))
    };
}

/// Lanes `$t` to lanes `$r` by `$f` of the only source and the immediate.
macro_rules! source {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        two($l, forms!($l, vector, [<$t as Lane>::Xmm, <$r as Lane>::Xmm], |_, b, i| $f(b, i)))
    };
}

/// `$f` of each lane of the only source.
macro_rules! unary {
    ($l:expr, $t:ty => $r:ty, $f:expr) => {
        source!($l, $t => $r, |b, _| map(b, $f))
    };
}

/// `$f` of source 1 and the count.
macro_rules! shifted {
    ($l:expr, $t:ty, $f:expr) => {
        three(
            $l,
            match (is_wide($l), $l.is_imm(2)) {
                (false, true) => |c, o| shift::<false, Immediate, <$t as Lane>::Xmm>(c, o, $f),
                (true, true) => |c, o| shift::<true, Immediate, <$t as Lane>::Xmm>(c, o, $f),
                _ => forms!($l, shift, [<$t as Lane>::Xmm], $f),
            },
        )
    };
}

/// `$f` of source 1 as a whole and the immediate.
macro_rules! shifted_bytes {
    ($l:expr, $f:expr) => {
        three(
            $l,
            if is_wide($l) {
                |c, o| vector::<true, Immediate, u128, u128>(c, o, |a, _, i| $f(a, i))
            } else {
                |c, o| vector::<false, Immediate, u128, u128>(c, o, |a, _, i| $f(a, i))
            },
        )
    };
}

/// VPMOVSX, VPMOVZX: `$n` lanes `$t`, which make a `$word`, to lanes `$r`; or two `$word` in a `$double`.
macro_rules! extend {
    ($l:expr, [$t:ty; $n:literal] in $word:ty, $double:ty => $r:ty) => {{
        type Lanes = <$r as Lane>::Xmm;
        let exec: Exec = match (is_wide($l), has_memory($l)) {
            (false, false) => {
                |c, o| widen::<Register, $word, Lanes>(c, o, |_, b, _| shuffle::extend(cast::<$word, [$t; $n]>(b)))
            }
            (false, true) => {
                |c, o| widen::<Memory, $word, Lanes>(c, o, |_, b, _| shuffle::extend(cast::<$word, [$t; $n]>(b)))
            }
            (true, false) => |c, o| extend_both::<Register, $double, [$t; $n], Lanes>(c, o, shuffle::extend),
            (true, true) => |c, o| extend_both::<Memory, $double, [$t; $n], Lanes>(c, o, shuffle::extend),
        };
        two($l, exec)
    }};
}

/// VPINSRx of a `$t` into lanes `$t`, from a general register or memory.
macro_rules! insert {
    ($l:expr, $t:ty) => {
        three(
            $l,
            if has_memory($l) {
                |c, o| widen::<Memory, $t, <$t as Lane>::Xmm>(c, o, |a, b, i| shuffle::insert(a, b, i))
            } else {
                |c, o| widen::<General, u64, <$t as Lane>::Xmm>(c, o, |a, b, i| shuffle::insert(a, b as $t, i))
            },
        )
    };
}

/// VPEXTRx of a `$t` to a general register or memory.
macro_rules! pick {
    ($l:expr, $t:ty) => {
        two(
            $l,
            if has_memory($l) {
                |c, o| extract::<<$t as Lane>::Xmm, $t>(c, o, shuffle::pick)
            } else {
                |c, o| general::<<$t as Lane>::Xmm>(c, o, |a, i| u64::from(shuffle::pick(a, i)))
            },
        )
    };
}

/// VPMOVMSKB and its kin: `$bits` bits a half.
macro_rules! signs {
    ($l:expr, $v:ty, $bits:literal, $f:expr) => {
        two(
            $l,
            if is_wide($l) {
                |c, o| signs::<true, $v>(c, o, $bits, $f)
            } else {
                |c, o| signs::<false, $v>(c, o, $bits, $f)
            },
        )
    };
}

/// VPBROADCASTx of a `$t`.
macro_rules! broadcast {
    ($l:expr, $t:ty) => {{
        type Lanes = <$t as Lane>::Xmm;
        const N: usize = 16 / size_of::<$t>();
        let exec: Exec = match (is_wide($l), has_memory($l)) {
            (false, false) => |c, o| broadcast::<false, Register, $t, Lanes>(c, o, |b| [b; N]),
            (false, true) => |c, o| broadcast::<false, Memory, $t, Lanes>(c, o, |b| [b; N]),
            (true, false) => |c, o| broadcast::<true, Register, $t, Lanes>(c, o, |b| [b; N]),
            (true, true) => |c, o| broadcast::<true, Memory, $t, Lanes>(c, o, |b| [b; N]),
        };
        two($l, exec)
    }};
}

/// A function of all 32 bytes, as `$t`, of `$place` operands.
macro_rules! across {
    ($l:expr, $place:ident, $t:ty, $f:expr) => {
        $place(
            $l,
            if has_memory($l) {
                |c, o| across::<operand::Memory, $t>(c, o, $f)
            } else {
                |c, o| across::<operand::Register, $t>(c, o, $f)
            },
        )
    };
}

/// Bits that count for VTESTPS.
const SINGLE_SIGNS: u128 = 0x8000_0000_8000_0000_8000_0000_8000_0000;
/// Bits that count for VTESTPD.
const DOUBLE_SIGNS: u128 = 0x8000_0000_0000_0000_8000_0000_0000_0000;

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    arithmetic(l).or_else(|| bitwise(l)).or_else(|| placed(l)).or_else(|| converted(l))
}

fn arithmetic(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vpaddb => lanes!(l, u8, u8::wrapping_add),
        Mnemonic::Vpaddw => lanes!(l, u16, u16::wrapping_add),
        Mnemonic::Vpaddd => lanes!(l, u32, u32::wrapping_add),
        Mnemonic::Vpaddq => lanes!(l, u64, u64::wrapping_add),
        Mnemonic::Vpaddsb => lanes!(l, i8, i8::saturating_add),
        Mnemonic::Vpaddsw => lanes!(l, i16, i16::saturating_add),
        Mnemonic::Vpaddusb => lanes!(l, u8, u8::saturating_add),
        Mnemonic::Vpaddusw => lanes!(l, u16, u16::saturating_add),
        Mnemonic::Vpsubb => lanes!(l, u8, u8::wrapping_sub),
        Mnemonic::Vpsubw => lanes!(l, u16, u16::wrapping_sub),
        Mnemonic::Vpsubd => lanes!(l, u32, u32::wrapping_sub),
        Mnemonic::Vpsubq => lanes!(l, u64, u64::wrapping_sub),
        Mnemonic::Vpsubsb => lanes!(l, i8, i8::saturating_sub),
        Mnemonic::Vpsubsw => lanes!(l, i16, i16::saturating_sub),
        Mnemonic::Vpsubusb => lanes!(l, u8, u8::saturating_sub),
        Mnemonic::Vpsubusw => lanes!(l, u16, u16::saturating_sub),

        Mnemonic::Vpmullw => lanes!(l, u16, u16::wrapping_mul),
        Mnemonic::Vpmulld => lanes!(l, u32, u32::wrapping_mul),
        Mnemonic::Vpmulhw => lanes!(l, i16, multiply_high),
        Mnemonic::Vpmulhuw => lanes!(l, u16, multiply_high_unsigned),
        Mnemonic::Vpmulhrsw => lanes!(l, i16, multiply_high_rounded),
        Mnemonic::Vpmuludq => lanes!(l, u64, multiply_even_unsigned),
        Mnemonic::Vpmuldq => lanes!(l, i64, multiply_even),
        Mnemonic::Vpmaddwd => sources!(l, i16 => i32, |a, b, _| multiply_add(a, b)),
        Mnemonic::Vpmaddubsw => sources!(l, u8 => i16, |a, b, _| multiply_add_bytes(a, b)),
        Mnemonic::Vpsadbw => sources!(l, u8 => u64, |a, b, _| sum_of_differences(a, b)),
        Mnemonic::Vmpsadbw => three(l, forms!(l, stepped, [[u8; 16], [u16; 8]], 3, multiple_sums_of_differences)),
        Mnemonic::Vphminposuw => source!(l, u16 => u16, |b, _| minimum_position(b)),
        Mnemonic::Vphaddw => sources!(l, u16 => u16, |a, b, _| horizontal(a, b, u16::wrapping_add)),
        Mnemonic::Vphaddd => sources!(l, u32 => u32, |a, b, _| horizontal(a, b, u32::wrapping_add)),
        Mnemonic::Vphaddsw => sources!(l, i16 => i16, |a, b, _| horizontal(a, b, i16::saturating_add)),
        Mnemonic::Vphsubw => sources!(l, u16 => u16, |a, b, _| horizontal(a, b, u16::wrapping_sub)),
        Mnemonic::Vphsubd => sources!(l, u32 => u32, |a, b, _| horizontal(a, b, u32::wrapping_sub)),
        Mnemonic::Vphsubsw => sources!(l, i16 => i16, |a, b, _| horizontal(a, b, i16::saturating_sub)),

        Mnemonic::Vpabsb => unary!(l, i8 => u8, i8::unsigned_abs),
        Mnemonic::Vpabsw => unary!(l, i16 => u16, i16::unsigned_abs),
        Mnemonic::Vpabsd => unary!(l, i32 => u32, i32::unsigned_abs),
        Mnemonic::Vpsignb => lanes!(l, i8, sign8),
        Mnemonic::Vpsignw => lanes!(l, i16, sign16),
        Mnemonic::Vpsignd => lanes!(l, i32, sign32),
        Mnemonic::Vpavgb => lanes!(l, u8, average8),
        Mnemonic::Vpavgw => lanes!(l, u16, average16),
        Mnemonic::Vpminub => lanes!(l, u8, u8::min),
        Mnemonic::Vpminuw => lanes!(l, u16, u16::min),
        Mnemonic::Vpminud => lanes!(l, u32, u32::min),
        Mnemonic::Vpminsb => lanes!(l, i8, i8::min),
        Mnemonic::Vpminsw => lanes!(l, i16, i16::min),
        Mnemonic::Vpminsd => lanes!(l, i32, i32::min),
        Mnemonic::Vpmaxub => lanes!(l, u8, u8::max),
        Mnemonic::Vpmaxuw => lanes!(l, u16, u16::max),
        Mnemonic::Vpmaxud => lanes!(l, u32, u32::max),
        Mnemonic::Vpmaxsb => lanes!(l, i8, i8::max),
        Mnemonic::Vpmaxsw => lanes!(l, i16, i16::max),
        Mnemonic::Vpmaxsd => lanes!(l, i32, i32::max),

        Mnemonic::Vpcmpeqb => lanes!(l, u8, equal8),
        Mnemonic::Vpcmpeqw => lanes!(l, u16, equal16),
        Mnemonic::Vpcmpeqd => lanes!(l, u32, equal32),
        Mnemonic::Vpcmpeqq => lanes!(l, u64, equal64),
        Mnemonic::Vpcmpgtb => lanes!(l, i8, greater8),
        Mnemonic::Vpcmpgtw => lanes!(l, i16, greater16),
        Mnemonic::Vpcmpgtd => lanes!(l, i32, greater32),
        Mnemonic::Vpcmpgtq => lanes!(l, i64, greater64),
        _ => return None,
    })
}

fn bitwise(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vpand | Mnemonic::Vandps | Mnemonic::Vandpd => lanes!(l, u64, |a, b| a & b),
        Mnemonic::Vpor | Mnemonic::Vorps | Mnemonic::Vorpd => lanes!(l, u64, |a, b| a | b),
        Mnemonic::Vpxor | Mnemonic::Vxorps | Mnemonic::Vxorpd => lanes!(l, u64, |a, b| a ^ b),
        Mnemonic::Vpandn | Mnemonic::Vandnps | Mnemonic::Vandnpd => sources!(l, u64 => u64, |a, b, _| and_not(a, b)),
        Mnemonic::Vptest => two(l, forms!(l, test, [], u128::MAX)),
        Mnemonic::Vtestps => two(l, forms!(l, test, [], SINGLE_SIGNS)),
        Mnemonic::Vtestpd => two(l, forms!(l, test, [], DOUBLE_SIGNS)),

        Mnemonic::Vpsllw => shifted!(l, u16, left16),
        Mnemonic::Vpslld => shifted!(l, u32, left32),
        Mnemonic::Vpsllq => shifted!(l, u64, left64),
        Mnemonic::Vpsrlw => shifted!(l, u16, right16),
        Mnemonic::Vpsrld => shifted!(l, u32, right32),
        Mnemonic::Vpsrlq => shifted!(l, u64, right64),
        Mnemonic::Vpsraw => shifted!(l, i16, arithmetic16),
        Mnemonic::Vpsrad => shifted!(l, i32, arithmetic32),
        Mnemonic::Vpslldq => shifted_bytes!(l, shuffle::left),
        Mnemonic::Vpsrldq => shifted_bytes!(l, shuffle::right),
        Mnemonic::Vpsllvd => lanes!(l, u32, permute::left32),
        Mnemonic::Vpsllvq => lanes!(l, u64, permute::left64),
        Mnemonic::Vpsrlvd => lanes!(l, u32, permute::right32),
        Mnemonic::Vpsrlvq => lanes!(l, u64, permute::right64),
        Mnemonic::Vpsravd => lanes!(l, u32, permute::arithmetic32),
        _ => return None,
    })
}

fn placed(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vpunpcklbw => sources!(l, u8 => u8, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Vpunpcklwd => sources!(l, u16 => u16, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Vpunpckldq | Mnemonic::Vunpcklps => sources!(l, u32 => u32, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Vpunpcklqdq | Mnemonic::Vunpcklpd => sources!(l, u64 => u64, |a, b, _| shuffle::unpack_low(a, b)),
        Mnemonic::Vpunpckhbw => sources!(l, u8 => u8, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Vpunpckhwd => sources!(l, u16 => u16, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Vpunpckhdq | Mnemonic::Vunpckhps => sources!(l, u32 => u32, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Vpunpckhqdq | Mnemonic::Vunpckhpd => sources!(l, u64 => u64, |a, b, _| shuffle::unpack_high(a, b)),
        Mnemonic::Vpacksswb => sources!(l, i16 => u8, |a, b, _| pack(a, b, narrow_i8)),
        Mnemonic::Vpackuswb => sources!(l, i16 => u8, |a, b, _| pack(a, b, narrow_u8)),
        Mnemonic::Vpackssdw => sources!(l, i32 => u16, |a, b, _| pack(a, b, narrow_i16)),
        Mnemonic::Vpackusdw => sources!(l, i32 => u16, |a, b, _| pack(a, b, narrow_u16)),

        Mnemonic::Vpshufb => sources!(l, u8 => u8, |a, b, _| shuffle::bytes(a, b)),
        Mnemonic::Vpshufd => source!(l, u32 => u32, shuffle::four),
        Mnemonic::Vpshuflw => source!(l, u16 => u16, shuffle::low_words),
        Mnemonic::Vpshufhw => source!(l, u16 => u16, shuffle::high_words),
        Mnemonic::Vshufps => sources!(l, u32 => u32, shuffle::singles),
        Mnemonic::Vshufpd => by_step!(l, u64, 2, shuffle::doubles),
        Mnemonic::Vpalignr => sources!(l, u8 => u8, shuffle::align),
        Mnemonic::Vpermilps if l.is_imm(2) => source!(l, u32 => u32, shuffle::four),
        Mnemonic::Vpermilps => sources!(l, u32 => u32, |a, b, _| permute::singles(a, b)),
        Mnemonic::Vpermilpd if l.is_imm(2) => {
            two(l, forms!(l, stepped, [[u64; 2], [u64; 2]], 2, |_, b, i| shuffle::doubles(b, b, i)))
        }
        Mnemonic::Vpermilpd => sources!(l, u64 => u64, |a, b, _| permute::doubles(a, b)),
        Mnemonic::Vpermd | Mnemonic::Vpermps => across!(l, three, [u32; 8], |a, b, _| permute::eight(a, b)),
        Mnemonic::Vpermq | Mnemonic::Vpermpd => across!(l, two, [u64; 4], |_, b, i| permute::four(b, i)),
        Mnemonic::Vperm2f128 | Mnemonic::Vperm2i128 => across!(l, three, [u128; 2], permute::halves),

        Mnemonic::Vpblendw => sources!(l, u16 => u16, shuffle::blend),
        Mnemonic::Vblendps | Mnemonic::Vpblendd => by_step!(l, u32, 4, shuffle::blend),
        Mnemonic::Vblendpd => by_step!(l, u64, 2, shuffle::blend),
        Mnemonic::Vpblendvb => three(l, forms!(l, blend, [[i8; 16]], shuffle::blend_bytes)),
        Mnemonic::Vblendvps => three(l, forms!(l, blend, [[i32; 4]], shuffle::blend_singles)),
        Mnemonic::Vblendvpd => three(l, forms!(l, blend, [[i64; 2]], shuffle::blend_doubles)),
        _ => return None,
    })
}

fn converted(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vpmovzxbw => extend!(l, [u8; 8] in u64, u128 => u16),
        Mnemonic::Vpmovzxbd => extend!(l, [u8; 4] in u32, u64 => u32),
        Mnemonic::Vpmovzxbq => extend!(l, [u8; 2] in u16, u32 => u64),
        Mnemonic::Vpmovzxwd => extend!(l, [u16; 4] in u64, u128 => u32),
        Mnemonic::Vpmovzxwq => extend!(l, [u16; 2] in u32, u64 => u64),
        Mnemonic::Vpmovzxdq => extend!(l, [u32; 2] in u64, u128 => u64),
        Mnemonic::Vpmovsxbw => extend!(l, [i8; 8] in u64, u128 => i16),
        Mnemonic::Vpmovsxbd => extend!(l, [i8; 4] in u32, u64 => i32),
        Mnemonic::Vpmovsxbq => extend!(l, [i8; 2] in u16, u32 => i64),
        Mnemonic::Vpmovsxwd => extend!(l, [i16; 4] in u64, u128 => i32),
        Mnemonic::Vpmovsxwq => extend!(l, [i16; 2] in u32, u64 => i64),
        Mnemonic::Vpmovsxdq => extend!(l, [i32; 2] in u64, u128 => i64),

        Mnemonic::Vpbroadcastb => broadcast!(l, u8),
        Mnemonic::Vpbroadcastw => broadcast!(l, u16),
        Mnemonic::Vpbroadcastd | Mnemonic::Vbroadcastss => broadcast!(l, u32),
        Mnemonic::Vpbroadcastq | Mnemonic::Vbroadcastsd => broadcast!(l, u64),

        Mnemonic::Vpinsrb => insert!(l, u8),
        Mnemonic::Vpinsrw => insert!(l, u16),
        Mnemonic::Vpinsrd => insert!(l, u32),
        Mnemonic::Vpinsrq => insert!(l, u64),
        Mnemonic::Vinsertps if has_memory(l) => {
            three(l, |c, o| widen::<Memory, u32, [u32; 4]>(c, o, shuffle::insert_single))
        }
        Mnemonic::Vinsertps => three(l, |c, o| {
            vector::<false, operand::Register, [u32; 4], [u32; 4]>(c, o, |a, b, i| {
                shuffle::insert_single(a, shuffle::pick(b, i >> 6), i)
            })
        }),
        Mnemonic::Vpextrb => pick!(l, u8),
        Mnemonic::Vpextrw => pick!(l, u16),
        Mnemonic::Vpextrd | Mnemonic::Vextractps => pick!(l, u32),
        Mnemonic::Vpextrq => pick!(l, u64),

        Mnemonic::Vpmovmskb => signs!(l, [u8; 16], 16, |a| byte_signs(&a)),
        Mnemonic::Vmovmskps => {
            signs!(l, [u32; 4], 4, |a| { a.iter().rev().fold(0, |signs, v| signs << 1 | u64::from(v >> 31)) })
        }
        Mnemonic::Vmovmskpd => signs!(l, [u64; 2], 2, |a| a[0] >> 63 | a[1] >> 63 << 1),
        _ => return None,
    })
}
