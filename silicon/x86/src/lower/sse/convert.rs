//! Conversions.

use bytemuck::cast;
use iced_x86::Mnemonic;
use silicon_float::sse::{
    f32_to_f64, f64_to_f32, from_i32, from_i64, to_i32, to_i32_truncated, to_i64, to_i64_truncated,
};
use silicon_float::{F32, F64};

use super::source;
use crate::exec::mmx::apply as mm;
use crate::exec::sse::apply;
use crate::exec::sse::float::convert;
use crate::exec::sse::operand::{General, Memory, Register};
use crate::op::{Lowering, Op};

/// All lanes of the source.
macro_rules! packed {
    ($l:expr, $v:ty => $w:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::float_vector::<Register, $v, $w>(c, o, |_, b, _, m| convert(b, m, $f)),
            |c, o| apply::float_vector::<Memory, $v, $w>(c, o, |_, b, _, m| convert(b, m, $f)),
        )
    };
}

/// The low half of the source, lanes `$v`, to the whole destination.
macro_rules! half {
    ($l:expr, $v:ty => $w:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::float_scalar::<Register, u64, $w>(c, o, |_, b, _, m| convert(cast::<u64, $v>(b), m, $f)),
            |c, o| apply::float_scalar::<Memory, u64, $w>(c, o, |_, b, _, m| convert(cast::<u64, $v>(b), m, $f)),
        )
    };
}

/// A scalar from `$register` or memory to the low bytes of the destination.
macro_rules! scalar {
    ($l:expr, $register:ty, $t:ty => $r:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::float_scalar::<$register, $t, $r>(c, o, |_, b, _, m| $f(b, m)),
            |c, o| apply::float_scalar::<Memory, $t, $r>(c, o, |_, b, _, m| $f(b, m)),
        )
    };
}

/// A scalar to a general register.
macro_rules! general {
    ($l:expr, $t:ty, $f:ty, $to32:ident, $to64:ident) => {
        if $l.bits(0) == 64 {
            source(
                $l,
                |c, o| apply::float_general::<Register, $t, u64>(c, o, |b, m| $to64::<$f>(b, m) as u64),
                |c, o| apply::float_general::<Memory, $t, u64>(c, o, |b, m| $to64::<$f>(b, m) as u64),
            )
        } else {
            source(
                $l,
                |c, o| apply::float_general::<Register, $t, u32>(c, o, |b, m| $to32::<$f>(b, m) as u32),
                |c, o| apply::float_general::<Memory, $t, u32>(c, o, |b, m| $to32::<$f>(b, m) as u32),
            )
        }
    };
}

/// A general register, or memory of its size, to a scalar.
macro_rules! from_general {
    ($l:expr, $f:ty => $r:ty) => {
        if $l.bits(1) == 64 {
            scalar!($l, General, u64 => $r, |b: u64, m: &mut _| from_i64::<$f>(b as i64, m))
        } else {
            scalar!($l, General, u32 => $r, |b: u32, m: &mut _| from_i32::<$f>(b as i32, m))
        }
    };
}

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Cvtdq2ps => packed!(l, [i32; 4] => [u32; 4], from_i32::<F32>),
        Mnemonic::Cvtps2dq => packed!(l, [u32; 4] => [i32; 4], to_i32::<F32>),
        Mnemonic::Cvttps2dq => packed!(l, [u32; 4] => [i32; 4], to_i32_truncated::<F32>),
        Mnemonic::Cvtpd2dq => packed!(l, [u64; 2] => [i32; 4], to_i32::<F64>),
        Mnemonic::Cvttpd2dq => packed!(l, [u64; 2] => [i32; 4], to_i32_truncated::<F64>),
        Mnemonic::Cvtpd2ps => packed!(l, [u64; 2] => [u32; 4], f64_to_f32),
        Mnemonic::Cvtdq2pd => half!(l, [i32; 2] => [u64; 2], from_i32::<F64>),
        Mnemonic::Cvtps2pd => half!(l, [u32; 2] => [u64; 2], f32_to_f64),

        Mnemonic::Cvtss2sd => scalar!(l, Register, u32 => u64, f32_to_f64),
        Mnemonic::Cvtsd2ss => scalar!(l, Register, u64 => u32, f64_to_f32),
        Mnemonic::Cvtsi2ss => from_general!(l, F32 => u32),
        Mnemonic::Cvtsi2sd => from_general!(l, F64 => u64),
        Mnemonic::Cvtss2si => general!(l, u32, F32, to_i32, to_i64),
        Mnemonic::Cvttss2si => general!(l, u32, F32, to_i32_truncated, to_i64_truncated),
        Mnemonic::Cvtsd2si => general!(l, u64, F64, to_i32, to_i64),
        Mnemonic::Cvttsd2si => general!(l, u64, F64, to_i32_truncated, to_i64_truncated),

        Mnemonic::Cvtpi2ps => source(
            l,
            |c, o| mm::float_from::<mm::Register, [u32; 2]>(c, o, |b, m| convert(b, m, from_i32::<F32>)),
            |c, o| mm::float_from::<mm::Memory, [u32; 2]>(c, o, |b, m| convert(b, m, from_i32::<F32>)),
        ),
        Mnemonic::Cvtpi2pd => source(
            l,
            |c, o| mm::float_from::<mm::Register, [u64; 2]>(c, o, |b, m| convert(b, m, from_i32::<F64>)),
            |c, o| mm::doubles_from_memory(c, o, |b, m| convert(b, m, from_i32::<F64>)),
        ),
        Mnemonic::Cvtps2pi => source(
            l,
            |c, o| mm::singles_to::<Register>(c, o, |b, m| convert(b, m, to_i32::<F32>)),
            |c, o| mm::singles_to::<Memory>(c, o, |b, m| convert(b, m, to_i32::<F32>)),
        ),
        Mnemonic::Cvttps2pi => source(
            l,
            |c, o| mm::singles_to::<Register>(c, o, |b, m| convert(b, m, to_i32_truncated::<F32>)),
            |c, o| mm::singles_to::<Memory>(c, o, |b, m| convert(b, m, to_i32_truncated::<F32>)),
        ),
        Mnemonic::Cvtpd2pi => source(
            l,
            |c, o| mm::doubles_to::<Register>(c, o, |b, m| convert(b, m, to_i32::<F64>)),
            |c, o| mm::doubles_to::<Memory>(c, o, |b, m| convert(b, m, to_i32::<F64>)),
        ),
        Mnemonic::Cvttpd2pi => source(
            l,
            |c, o| mm::doubles_to::<Register>(c, o, |b, m| convert(b, m, to_i32_truncated::<F64>)),
            |c, o| mm::doubles_to::<Memory>(c, o, |b, m| convert(b, m, to_i32_truncated::<F64>)),
        ),
        _ => return None,
    })
}
