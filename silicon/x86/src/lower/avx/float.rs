//! Floating-point arithmetic and comparisons.

use iced_x86::Mnemonic;
use silicon_float::sse::{add, div, max, min, mul, rcp, rsqrt, sqrt, sub};
use silicon_float::{F32, F64, Signalling};

use super::{is_wide, three, two};
use crate::exec::avx::apply::float_vector;
use crate::exec::avx::float::{compare, product, product_wide, scalar};
use crate::exec::avx::operand::{Memory, Register};
use crate::exec::sse::dot::{dot32, dot64};
use crate::exec::sse::float::{add_sub, compare32, compare64, convert, horizontal, lanes, round};
use crate::exec::sse::lane::map;
use crate::exec::sse::operand as scalars;
use crate::op::{Lowering, Op};

/// `$place` of the handler for the width and for where operand `$at`, the last source, is. All lanes of a half are `$f` of
/// source 1, source 2, immediate and MXCSR, on arrays.
macro_rules! packed {
    ($l:expr, $place:ident, $at:literal, $v:ty, $f:expr) => {
        match (is_wide($l), $l.is_mem($at)) {
            (false, false) => $place($l, |c, o| float_vector::<false, Register, $v, $v>(c, o, $f)),
            (false, true) => $place($l, |c, o| float_vector::<false, Memory, $v, $v>(c, o, $f)),
            (true, false) => $place($l, |c, o| float_vector::<true, Register, $v, $v>(c, o, $f)),
            (true, true) => $place($l, |c, o| float_vector::<true, Memory, $v, $v>(c, o, $f)),
        }
    };
}

/// Two sources.
macro_rules! binary {
    ($l:expr, $v:ty, $f:expr) => {
        packed!($l, three, 2, $v, $f)
    };
}

/// One source.
macro_rules! unary {
    ($l:expr, $v:ty, $f:expr) => {
        packed!($l, two, 1, $v, |_, b, i, m| $f(b, i, m))
    };
}

/// The lowest lane.
macro_rules! scalar {
    ($l:expr, $t:ty, $f:expr) => {
        if $l.is_mem(2) {
            three($l, |c, o| scalar::<scalars::Memory, $t, $t>(c, o, $f))
        } else {
            three($l, |c, o| scalar::<scalars::Register, $t, $t>(c, o, $f))
        }
    };
}

macro_rules! ps {
    ($l:expr, $f:ident) => {
        binary!($l, [u32; 4], |a, b, _, m| lanes(a, b, m, $f::<F32>))
    };
}

macro_rules! pd {
    ($l:expr, $f:ident) => {
        binary!($l, [u64; 2], |a, b, _, m| lanes(a, b, m, $f::<F64>))
    };
}

macro_rules! ss {
    ($l:expr, $f:ident) => {
        scalar!($l, u32, |a, b, _, m| $f::<F32>(a, b, m))
    };
}

macro_rules! sd {
    ($l:expr, $f:ident) => {
        scalar!($l, u64, |a, b, _, m| $f::<F64>(a, b, m))
    };
}

macro_rules! comi {
    ($l:expr, $f:ty, $t:ty, $signalling:expr) => {
        if $l.is_mem(1) {
            two($l, |c, o| compare::<scalars::Memory, $f, $t>(c, o, $signalling))
        } else {
            two($l, |c, o| compare::<scalars::Register, $f, $t>(c, o, $signalling))
        }
    };
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    arithmetic(l).or_else(|| others(l))
}

fn arithmetic(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vaddps => ps!(l, add),
        Mnemonic::Vaddpd => pd!(l, add),
        Mnemonic::Vaddss => ss!(l, add),
        Mnemonic::Vaddsd => sd!(l, add),
        Mnemonic::Vsubps => ps!(l, sub),
        Mnemonic::Vsubpd => pd!(l, sub),
        Mnemonic::Vsubss => ss!(l, sub),
        Mnemonic::Vsubsd => sd!(l, sub),
        Mnemonic::Vmulps => ps!(l, mul),
        Mnemonic::Vmulpd => pd!(l, mul),
        Mnemonic::Vmulss => ss!(l, mul),
        Mnemonic::Vmulsd => sd!(l, mul),
        Mnemonic::Vdivps => ps!(l, div),
        Mnemonic::Vdivpd => pd!(l, div),
        Mnemonic::Vdivss => ss!(l, div),
        Mnemonic::Vdivsd => sd!(l, div),
        Mnemonic::Vminps => ps!(l, min),
        Mnemonic::Vminpd => pd!(l, min),
        Mnemonic::Vminss => ss!(l, min),
        Mnemonic::Vminsd => sd!(l, min),
        Mnemonic::Vmaxps => ps!(l, max),
        Mnemonic::Vmaxpd => pd!(l, max),
        Mnemonic::Vmaxss => ss!(l, max),
        Mnemonic::Vmaxsd => sd!(l, max),
        _ => return None,
    })
}

fn others(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vsqrtps => unary!(l, [u32; 4], |b, _, m| convert(b, m, sqrt::<F32>)),
        Mnemonic::Vsqrtpd => unary!(l, [u64; 2], |b, _, m| convert(b, m, sqrt::<F64>)),
        Mnemonic::Vsqrtss => scalar!(l, u32, |_, b, _, m| sqrt::<F32>(b, m)),
        Mnemonic::Vsqrtsd => scalar!(l, u64, |_, b, _, m| sqrt::<F64>(b, m)),
        Mnemonic::Vrcpps => unary!(l, [u32; 4], |b, _, _| map(b, rcp)),
        Mnemonic::Vrcpss => scalar!(l, u32, |_, b, _, _| rcp(b)),
        Mnemonic::Vrsqrtps => unary!(l, [u32; 4], |b, _, _| map(b, rsqrt)),
        Mnemonic::Vrsqrtss => scalar!(l, u32, |_, b, _, _| rsqrt(b)),
        Mnemonic::Vroundps => unary!(l, [u32; 4], |b, i, m| convert(b, m, |v, m| round::<F32>(v, i, m))),
        Mnemonic::Vroundpd => unary!(l, [u64; 2], |b, i, m| convert(b, m, |v, m| round::<F64>(v, i, m))),
        Mnemonic::Vroundss => scalar!(l, u32, |_, b, i, m| round::<F32>(b, i, m)),
        Mnemonic::Vroundsd => scalar!(l, u64, |_, b, i, m| round::<F64>(b, i, m)),

        Mnemonic::Vaddsubps => binary!(l, [u32; 4], |a, b, _, m| add_sub::<F32, 4>(a, b, m)),
        Mnemonic::Vaddsubpd => binary!(l, [u64; 2], |a, b, _, m| add_sub::<F64, 2>(a, b, m)),
        Mnemonic::Vhaddps => binary!(l, [u32; 4], |a, b, _, m| horizontal(a, b, m, add::<F32>)),
        Mnemonic::Vhaddpd => binary!(l, [u64; 2], |a, b, _, m| horizontal(a, b, m, add::<F64>)),
        Mnemonic::Vhsubps => binary!(l, [u32; 4], |a, b, _, m| horizontal(a, b, m, sub::<F32>)),
        Mnemonic::Vhsubpd => binary!(l, [u64; 2], |a, b, _, m| horizontal(a, b, m, sub::<F64>)),
        Mnemonic::Vdpps => match (is_wide(l), l.is_mem(2)) {
            (false, false) => three(l, |c, o| product::<Register, _>(c, o, dot32)),
            (false, true) => three(l, |c, o| product::<Memory, _>(c, o, dot32)),
            (true, false) => three(l, |c, o| product_wide::<Register, _>(c, o, dot32)),
            (true, true) => three(l, |c, o| product_wide::<Memory, _>(c, o, dot32)),
        },
        Mnemonic::Vdppd if l.is_mem(2) => three(l, |c, o| product::<Memory, _>(c, o, dot64)),
        Mnemonic::Vdppd => three(l, |c, o| product::<Register, _>(c, o, dot64)),

        Mnemonic::Vcomiss => comi!(l, F32, u32, Signalling::Signalling),
        Mnemonic::Vcomisd => comi!(l, F64, u64, Signalling::Signalling),
        Mnemonic::Vucomiss => comi!(l, F32, u32, Signalling::Quiet),
        Mnemonic::Vucomisd => comi!(l, F64, u64, Signalling::Quiet),
        Mnemonic::Vcmpps => binary!(l, [u32; 4], |a, b, i, m| lanes(a, b, m, |x, y, m| compare32(x, y, i, m))),
        Mnemonic::Vcmppd => binary!(l, [u64; 2], |a, b, i, m| lanes(a, b, m, |x, y, m| compare64(x, y, i, m))),
        Mnemonic::Vcmpss => scalar!(l, u32, compare32),
        Mnemonic::Vcmpsd => scalar!(l, u64, compare64),
        _ => return None,
    })
}
