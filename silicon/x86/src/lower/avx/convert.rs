//! Conversions, F16C.

use iced_x86::Mnemonic;
use silicon_float::sse::{
    f16_to_f32, f32_to_f16, f32_to_f64, f64_to_f32, from_i32, from_i64, to_i32, to_i32_truncated, to_i64,
    to_i64_truncated,
};
use silicon_float::{F32, F64, HalfImm, Mxcsr};

use super::{is_wide, three, two};
use crate::exec::avx::apply::float_vector;
use crate::exec::avx::convert::{narrow, store_halves, to_halves, widen, widen_low};
use crate::exec::avx::float::{general, scalar};
use crate::exec::avx::operand::{Memory, Register};
use crate::exec::sse::float::convert;
use crate::exec::sse::operand as scalars;
use crate::op::{Lowering, Op};

/// As many lanes of the same size.
macro_rules! same {
    ($l:expr, $v:ty => $w:ty, $f:expr) => {
        match (is_wide($l), $l.is_mem(1)) {
            (false, false) => {
                two($l, |c, o| float_vector::<false, Register, $v, $w>(c, o, |_: $v, b, _, m| convert(b, m, $f)))
            }
            (false, true) => {
                two($l, |c, o| float_vector::<false, Memory, $v, $w>(c, o, |_: $v, b, _, m| convert(b, m, $f)))
            }
            (true, false) => {
                two($l, |c, o| float_vector::<true, Register, $v, $w>(c, o, |_: $v, b, _, m| convert(b, m, $f)))
            }
            (true, true) => {
                two($l, |c, o| float_vector::<true, Memory, $v, $w>(c, o, |_: $v, b, _, m| convert(b, m, $f)))
            }
        }
    };
}

/// To lanes of half the size: 16 bytes, `$v`, to 8, `$w`; or 32 to 16.
macro_rules! narrower {
    ($l:expr, $v:ty => $w:ty, $f:expr) => {
        match ($l.bits(1) == 256, $l.is_mem(1)) {
            (false, false) => two($l, |c, o| narrow::<false, Register, $v, $w>(c, o, |b, m| convert(b, m, $f))),
            (false, true) => two($l, |c, o| narrow::<false, Memory, $v, $w>(c, o, |b, m| convert(b, m, $f))),
            (true, false) => two($l, |c, o| narrow::<true, Register, $v, $w>(c, o, |b, m| convert(b, m, $f))),
            (true, true) => two($l, |c, o| narrow::<true, Memory, $v, $w>(c, o, |b, m| convert(b, m, $f))),
        }
    };
}

/// To lanes of twice the size: 8 bytes, `$v`, to 16, `$w`; or 16 to 32.
macro_rules! wider {
    ($l:expr, $v:ty => $w:ty, $f:expr) => {
        match (is_wide($l), $l.is_mem(1)) {
            (false, false) => two($l, |c, o| widen_low::<scalars::Register, $v, $w>(c, o, |b, m| convert(b, m, $f))),
            (false, true) => two($l, |c, o| widen_low::<scalars::Memory, $v, $w>(c, o, |b, m| convert(b, m, $f))),
            (true, false) => two($l, |c, o| widen::<Register, [$v; 2], $w>(c, o, |b, m| b.map(|b| convert(b, m, $f)))),
            (true, true) => two($l, |c, o| widen::<Memory, [$v; 2], $w>(c, o, |b, m| b.map(|b| convert(b, m, $f)))),
        }
    };
}

/// The lowest lane, with source 2 in `$register` or memory.
macro_rules! lowest {
    ($l:expr, $register:ident, $t:ty => $r:ty, $f:expr) => {
        if $l.is_mem(2) {
            three($l, |c, o| scalar::<scalars::Memory, $t, $r>(c, o, |_, b, _, m| $f(b, m)))
        } else {
            three($l, |c, o| scalar::<scalars::$register, $t, $r>(c, o, |_, b, _, m| $f(b, m)))
        }
    };
}

/// A scalar to a general register.
macro_rules! to_general {
    ($l:expr, $t:ty, $f:ty, $to32:ident, $to64:ident) => {
        match ($l.bits(0) == 64, $l.is_mem(1)) {
            (true, false) => {
                two($l, |c, o| general::<scalars::Register, $t, u64>(c, o, |b, m| $to64::<$f>(b, m) as u64))
            }
            (true, true) => two($l, |c, o| general::<scalars::Memory, $t, u64>(c, o, |b, m| $to64::<$f>(b, m) as u64)),
            (false, false) => {
                two($l, |c, o| general::<scalars::Register, $t, u32>(c, o, |b, m| $to32::<$f>(b, m) as u32))
            }
            (false, true) => two($l, |c, o| general::<scalars::Memory, $t, u32>(c, o, |b, m| $to32::<$f>(b, m) as u32)),
        }
    };
}

/// A general register, or memory of its size, to a scalar.
macro_rules! from_general {
    ($l:expr, $f:ty => $r:ty) => {
        if $l.bits(2) == 64 {
            lowest!($l, General, u64 => $r, |b: u64, m: &mut _| from_i64::<$f>(b as i64, m))
        } else {
            lowest!($l, General, u32 => $r, |b: u32, m: &mut _| from_i32::<$f>(b as i32, m))
        }
    };
}

/// VCVTPS2PH of one half.
#[inline(always)]
fn halves(v: [u32; 4], imm: u8, mxcsr: &mut Mxcsr) -> [u16; 4] {
    convert(v, mxcsr, |lane, m| f32_to_f16(lane, HalfImm(imm), m))
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Vcvtdq2ps => same!(l, [i32; 4] => [u32; 4], from_i32::<F32>),
        Mnemonic::Vcvtps2dq => same!(l, [u32; 4] => [i32; 4], to_i32::<F32>),
        Mnemonic::Vcvttps2dq => same!(l, [u32; 4] => [i32; 4], to_i32_truncated::<F32>),
        Mnemonic::Vcvtpd2dq => narrower!(l, [u64; 2] => [i32; 2], to_i32::<F64>),
        Mnemonic::Vcvttpd2dq => narrower!(l, [u64; 2] => [i32; 2], to_i32_truncated::<F64>),
        Mnemonic::Vcvtpd2ps => narrower!(l, [u64; 2] => [u32; 2], f64_to_f32),
        Mnemonic::Vcvtdq2pd => wider!(l, [i32; 2] => [u64; 2], from_i32::<F64>),
        Mnemonic::Vcvtps2pd => wider!(l, [u32; 2] => [u64; 2], f32_to_f64),
        Mnemonic::Vcvtph2ps => wider!(l, [u16; 4] => [u32; 4], f16_to_f32),
        Mnemonic::Vcvtps2ph => match (l.bits(1) == 256, l.is_mem(0)) {
            (false, false) => two(l, |c, o| to_halves::<false>(c, o, halves)),
            (false, true) => two(l, |c, o| store_halves::<false>(c, o, halves)),
            (true, false) => two(l, |c, o| to_halves::<true>(c, o, halves)),
            (true, true) => two(l, |c, o| store_halves::<true>(c, o, halves)),
        },

        Mnemonic::Vcvtss2sd => lowest!(l, Register, u32 => u64, f32_to_f64),
        Mnemonic::Vcvtsd2ss => lowest!(l, Register, u64 => u32, f64_to_f32),
        Mnemonic::Vcvtsi2ss => from_general!(l, F32 => u32),
        Mnemonic::Vcvtsi2sd => from_general!(l, F64 => u64),
        Mnemonic::Vcvtss2si => to_general!(l, u32, F32, to_i32, to_i64),
        Mnemonic::Vcvttss2si => to_general!(l, u32, F32, to_i32_truncated, to_i64_truncated),
        Mnemonic::Vcvtsd2si => to_general!(l, u64, F64, to_i32, to_i64),
        Mnemonic::Vcvttsd2si => to_general!(l, u64, F64, to_i32_truncated, to_i64_truncated),
        _ => return None,
    })
}
