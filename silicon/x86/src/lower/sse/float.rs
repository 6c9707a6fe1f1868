//! Floating-point arithmetic.

use iced_x86::{Code, Mnemonic};
use silicon_float::sse::{add, div, max, min, mul, rcp, rsqrt, sqrt, sub};
use silicon_float::{F32, F64, Signalling};

use super::source;
use crate::exec::sse::dot::{dot32, dot64, product};
use crate::exec::sse::float::{add_sub, compare32, compare64, horizontal, lanes, round};
use crate::exec::sse::lane::map;
use crate::exec::sse::operand::{Memory, Register};
use crate::exec::sse::{apply, compare};
use crate::op::{Lowering, Op};

/// All lanes: `$f` of destination, source, immediate and MXCSR, on arrays.
macro_rules! packed {
    ($l:expr, $v:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::float_vector::<Register, $v, $v>(c, o, $f),
            |c, o| apply::float_vector::<Memory, $v, $v>(c, o, $f),
        )
    };
}

/// The lowest lane.
macro_rules! scalar {
    ($l:expr, $t:ty, $f:expr) => {
        source(
            $l,
            |c, o| apply::float_scalar::<Register, $t, $t>(c, o, $f),
            |c, o| apply::float_scalar::<Memory, $t, $t>(c, o, $f),
        )
    };
}

macro_rules! ps {
    ($l:expr, $f:ident) => {
        packed!($l, [u32; 4], |a, b, _, m| lanes(a, b, m, $f::<F32>))
    };
}

macro_rules! pd {
    ($l:expr, $f:ident) => {
        packed!($l, [u64; 2], |a, b, _, m| lanes(a, b, m, $f::<F64>))
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
        source(
            $l,
            |c, o| compare::scalars::<Register, $f, $t>(c, o, $signalling),
            |c, o| compare::scalars::<Memory, $f, $t>(c, o, $signalling),
        )
    };
}

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.mnemonic() {
        Mnemonic::Addps => ps!(l, add),
        Mnemonic::Addpd => pd!(l, add),
        Mnemonic::Addss => ss!(l, add),
        Mnemonic::Addsd => sd!(l, add),
        Mnemonic::Subps => ps!(l, sub),
        Mnemonic::Subpd => pd!(l, sub),
        Mnemonic::Subss => ss!(l, sub),
        Mnemonic::Subsd => sd!(l, sub),
        Mnemonic::Mulps => ps!(l, mul),
        Mnemonic::Mulpd => pd!(l, mul),
        Mnemonic::Mulss => ss!(l, mul),
        Mnemonic::Mulsd => sd!(l, mul),
        Mnemonic::Divps => ps!(l, div),
        Mnemonic::Divpd => pd!(l, div),
        Mnemonic::Divss => ss!(l, div),
        Mnemonic::Divsd => sd!(l, div),
        Mnemonic::Minps => ps!(l, min),
        Mnemonic::Minpd => pd!(l, min),
        Mnemonic::Minss => ss!(l, min),
        Mnemonic::Minsd => sd!(l, min),
        Mnemonic::Maxps => ps!(l, max),
        Mnemonic::Maxpd => pd!(l, max),
        Mnemonic::Maxss => ss!(l, max),
        Mnemonic::Maxsd => sd!(l, max),

        Mnemonic::Sqrtps => packed!(l, [u32; 4], |_, b, _, m| map_with(b, m, sqrt::<F32>)),
        Mnemonic::Sqrtpd => packed!(l, [u64; 2], |_, b, _, m| map_with(b, m, sqrt::<F64>)),
        Mnemonic::Sqrtss => scalar!(l, u32, |_, b, _, m| sqrt::<F32>(b, m)),
        Mnemonic::Sqrtsd => scalar!(l, u64, |_, b, _, m| sqrt::<F64>(b, m)),
        Mnemonic::Rcpps => packed!(l, [u32; 4], |_, b, _, _| map(b, rcp)),
        Mnemonic::Rcpss => scalar!(l, u32, |_, b, _, _| rcp(b)),
        Mnemonic::Rsqrtps => packed!(l, [u32; 4], |_, b, _, _| map(b, rsqrt)),
        Mnemonic::Rsqrtss => scalar!(l, u32, |_, b, _, _| rsqrt(b)),
        Mnemonic::Roundps => packed!(l, [u32; 4], |_, b, i, m| map_with(b, m, |v, m| round::<F32>(v, i, m))),
        Mnemonic::Roundpd => packed!(l, [u64; 2], |_, b, i, m| map_with(b, m, |v, m| round::<F64>(v, i, m))),
        Mnemonic::Roundss => scalar!(l, u32, |_, b, i, m| round::<F32>(b, i, m)),
        Mnemonic::Roundsd => scalar!(l, u64, |_, b, i, m| round::<F64>(b, i, m)),

        Mnemonic::Addsubps => packed!(l, [u32; 4], |a, b, _, m| add_sub::<F32, 4>(a, b, m)),
        Mnemonic::Addsubpd => packed!(l, [u64; 2], |a, b, _, m| add_sub::<F64, 2>(a, b, m)),
        Mnemonic::Haddps => packed!(l, [u32; 4], |a, b, _, m| horizontal(a, b, m, add::<F32>)),
        Mnemonic::Haddpd => packed!(l, [u64; 2], |a, b, _, m| horizontal(a, b, m, add::<F64>)),
        Mnemonic::Hsubps => packed!(l, [u32; 4], |a, b, _, m| horizontal(a, b, m, sub::<F32>)),
        Mnemonic::Hsubpd => packed!(l, [u64; 2], |a, b, _, m| horizontal(a, b, m, sub::<F64>)),
        Mnemonic::Dpps => {
            source(l, |c, o| product::<Register, _>(c, o, dot32), |c, o| product::<Memory, _>(c, o, dot32))
        }
        Mnemonic::Dppd => {
            source(l, |c, o| product::<Register, _>(c, o, dot64), |c, o| product::<Memory, _>(c, o, dot64))
        }

        Mnemonic::Comiss => comi!(l, F32, u32, Signalling::Signalling),
        Mnemonic::Comisd => comi!(l, F64, u64, Signalling::Signalling),
        Mnemonic::Ucomiss => comi!(l, F32, u32, Signalling::Quiet),
        Mnemonic::Ucomisd => comi!(l, F64, u64, Signalling::Quiet),
        Mnemonic::Cmpps => packed!(l, [u32; 4], |a, b, i, m| lanes(a, b, m, |x, y, m| compare32(x, y, i & 7, m))),
        Mnemonic::Cmppd => packed!(l, [u64; 2], |a, b, i, m| lanes(a, b, m, |x, y, m| compare64(x, y, i & 7, m))),
        Mnemonic::Cmpss => scalar!(l, u32, |a, b, i, m| compare32(a, b, i & 7, m)),
        // The mnemonic is also that of the string instruction.
        Mnemonic::Cmpsd if l.insn.code() == Code::Cmpsd_xmm_xmmm64_imm8 => {
            scalar!(l, u64, |a, b, i, m| compare64(a, b, i & 7, m))
        }
        _ => return None,
    })
}

/// `f` of each lane.
#[inline(always)]
fn map_with<T: Copy + Default, const N: usize>(
    b: [T; N],
    mxcsr: &mut silicon_float::Mxcsr,
    f: impl Fn(T, &mut silicon_float::Mxcsr) -> T,
) -> [T; N] {
    crate::exec::sse::float::convert(b, mxcsr, f)
}
