//! Dot products: a multiplication and one or two additions, each of which faults by itself.
//!
//! "Unmasked exceptions" of DPPS and DPPD are found "separately for each add and multiply operation" (Intel SDM volume 2,
//! "DPPS—Dot Product of Packed Single Precision Floating-Point Values"): a step is done in all lanes, and where it faults
//! the ones after it are not done; MXCSR has the flags of the steps before.

use bytemuck::Pod;
use silicon_float::{F32, F64, Mxcsr, SimdException, sse};

use super::lane::each;
use super::operand::{Source, get, set};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// What a dot product is, for all 16-byte parts of the operands: `f(source 1, source 2, imm, mxcsr)`.
pub type Dot<V, const N: usize> = fn([V; N], [V; N], u8, &mut Mxcsr) -> Result<[V; N], SimdException>;

/// DPPS.
pub fn dot32<const N: usize>(
    a: [[u32; 4]; N],
    b: [[u32; 4]; N],
    imm: u8,
    mxcsr: &mut Mxcsr,
) -> Result<[[u32; 4]; N], SimdException> {
    let selected = |i: usize| imm >> (4 + i) & 1 != 0;
    let products: [[u32; 4]; N] = mxcsr.instruction(|m| {
        std::array::from_fn(|n| {
            std::array::from_fn(|i| if selected(i) { sse::mul::<F32>(a[n][i], b[n][i], m) } else { 0 })
        })
    })?;
    let pairs =
        mxcsr.instruction(|m| products.map(|[p, q, r, s]| [sse::add::<F32>(p, q, m), sse::add::<F32>(r, s, m)]))?;
    let sums = mxcsr.instruction(|m| pairs.map(|[low, high]| sse::add::<F32>(low, high, m)))?;
    Ok(sums.map(|sum| each(|i| if imm >> i & 1 != 0 { sum } else { 0 })))
}

/// DPPD.
pub fn dot64<const N: usize>(
    a: [[u64; 2]; N],
    b: [[u64; 2]; N],
    imm: u8,
    mxcsr: &mut Mxcsr,
) -> Result<[[u64; 2]; N], SimdException> {
    let selected = |i: usize| imm >> (4 + i) & 1 != 0;
    let products: [[u64; 2]; N] = mxcsr.instruction(|m| {
        std::array::from_fn(|n| {
            std::array::from_fn(|i| if selected(i) { sse::mul::<F64>(a[n][i], b[n][i], m) } else { 0 })
        })
    })?;
    let sums = mxcsr.instruction(|m| products.map(|[p, q]| sse::add::<F64>(p, q, m)))?;
    Ok(sums.map(|sum| each(|i| if imm >> i & 1 != 0 { sum } else { 0 })))
}

impl Core {
    /// Does the steps of one floating-point instruction under MXCSR, each an [`Mxcsr::instruction`] of its own.
    pub fn simd_steps<R>(&mut self, steps: impl FnOnce(&mut Mxcsr) -> Result<R, SimdException>) -> Result<R, Leave> {
        let mut mxcsr = Mxcsr(self.fpu.mxcsr);
        let result = steps(&mut mxcsr);
        self.fpu.mxcsr = mxcsr.0;
        result.map_err(|_| self.simd_exception())
    }
}

/// `xmm = f(xmm, source, imm, mxcsr)`.
#[inline(always)]
pub fn product<S: Source, V: Pod>(core: &mut Core, op: &Op, f: Dot<V, 1>) -> Done {
    core.check_sse()?;
    let b = S::vector::<V>(core, op)?;
    let a = get(core, op.a);
    let [result] = core.simd_steps(|mxcsr| f([a], [b], op.imm as u8, mxcsr))?;
    set(core, op.a, result);
    Ok(())
}
