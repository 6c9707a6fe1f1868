//! Scalar floating point, of which the low bytes are computed, the rest of the XMM register comes from source 1, and what is
//! above becomes zero; and dot products.

use bytemuck::{Pod, bytes_of, bytes_of_mut, pod_read_unaligned};
use silicon_float::{Float, Mxcsr, Signalling, sse};
use silicon_memory::Word;

use super::operand::{self, get, set, set_low, vvvv};
use crate::exec::sse::compare::report;
use crate::exec::sse::dot::Dot;
use crate::exec::sse::operand::{Source, low};
use crate::op::Done;
use crate::{Core, Op};

/// The low bytes of the destination are `f(source 1, source 2, imm, mxcsr)`, the rest is that of source 1.
#[inline(always)]
pub fn scalar<S: Source, T: Word + Pod, R: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(R, T, u8, &mut Mxcsr) -> R,
) -> Done {
    core.check_avx()?;
    let b = S::scalar::<T>(core, op)?;
    let [mut whole, _] = get::<u128>(core, vvvv(op));
    let a = pod_read_unaligned(&bytes_of(&whole)[..size_of::<R>()]);
    let result = core.simd(|mxcsr| f(a, b, op.imm as u8, mxcsr))?;
    bytes_of_mut(&mut whole)[..size_of::<R>()].copy_from_slice(bytes_of(&result));
    set_low(core, op.a, whole);
    Ok(())
}

/// VCOMISS, VCOMISD; VUCOMISS, VUCOMISD when quiet.
#[inline(always)]
pub fn compare<S: Source, F, T>(core: &mut Core, op: &Op, signalling: Signalling) -> Done
where
    T: Word + Pod,
    F: Float<Bits = T>,
{
    core.check_avx()?;
    let b = S::scalar::<T>(core, op)?;
    let a = low(core, op.a);
    let order = core.simd(|mxcsr| sse::comi::<F>(a, b, signalling, mxcsr))?;
    report(core, order);
    Ok(())
}

/// A general register: `r = f(source, mxcsr)`.
#[inline(always)]
pub fn general<S: Source, T: Word + Pod, R: Word>(core: &mut Core, op: &Op, f: impl Fn(T, &mut Mxcsr) -> R) -> Done {
    core.check_avx()?;
    let b = S::scalar::<T>(core, op)?;
    let result = core.simd(|mxcsr| f(b, mxcsr))?;
    core.set(op.a, result);
    Ok(())
}

/// VDPPS and VDPPD of 128 bits.
#[inline(always)]
pub fn product<S: operand::Source, V: Pod>(core: &mut Core, op: &Op, f: Dot<V, 1>) -> Done {
    core.check_avx()?;
    let b = S::half::<V>(core, op)?;
    let [a, _] = get(core, vvvv(op));
    let [result] = core.simd_steps(|mxcsr| f([a], [b], op.imm as u8, mxcsr))?;
    set_low(core, op.a, result);
    Ok(())
}

/// VDPPS of 256 bits.
#[inline(always)]
pub fn product_wide<S: operand::Source, V: Pod>(core: &mut Core, op: &Op, f: Dot<V, 2>) -> Done {
    core.check_avx()?;
    let b = S::both::<V>(core, op)?;
    let a = get(core, vvvv(op));
    let result = core.simd_steps(|mxcsr| f(a, b, op.imm as u8, mxcsr))?;
    set(core, op.a, result);
    Ok(())
}
