//! Handlers made of pure functions.
//!
//! `f` gets the destination, the source and the immediate, where the instruction has one.

use bytemuck::Pod;
use silicon_float::Mxcsr;
use silicon_memory::Word;

use super::operand::{Source, get, low, set, set_low};
use crate::op::Done;
use crate::{Core, Op};

/// `xmm = f(xmm, source, imm)`.
#[inline(always)]
pub fn vector<S: Source, V: Pod, W: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, V, u8) -> W) -> Done {
    core.check_sse()?;
    let b = S::vector::<V>(core, op)?;
    let result = f(get(core, op.a), b, op.imm as u8);
    set(core, op.a, result);
    Ok(())
}

/// `xmm = f(xmm, count)`, with the count in the low 64 bits of the source.
#[inline(always)]
pub fn shift<S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u64) -> V) -> Done {
    core.check_sse()?;
    let [count, _] = S::vector::<[u64; 2]>(core, op)?;
    let result = f(get(core, op.a), count);
    set(core, op.a, result);
    Ok(())
}

/// The whole register from a scalar: `xmm = f(xmm, source, imm)`.
#[inline(always)]
pub fn widen<S: Source, T: Word + Pod, W: Pod>(core: &mut Core, op: &Op, f: impl Fn(W, T, u8) -> W) -> Done {
    core.check_sse()?;
    let b = S::scalar::<T>(core, op)?;
    let result = f(get(core, op.a), b, op.imm as u8);
    set(core, op.a, result);
    Ok(())
}

/// A general register from a vector: `r32 = f(source, imm)`.
#[inline(always)]
pub fn general<S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u8) -> u64) -> Done {
    core.check_sse()?;
    let b = S::vector::<V>(core, op)?;
    core.set(op.a, f(b, op.imm as u8));
    Ok(())
}

/// Stores a part of register `op.b`: `m = f(xmm, imm)`.
#[inline(always)]
pub fn extract<V: Pod, T: Word>(core: &mut Core, op: &Op, f: impl Fn(V, u8) -> T) -> Done {
    core.check_sse()?;
    let value = f(get(core, op.b), op.imm as u8);
    core.store(op, value)
}

/// Floating point, all lanes: `xmm = f(xmm, source, imm, mxcsr)`.
#[inline(always)]
pub fn float_vector<S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, V, u8, &mut Mxcsr) -> W,
) -> Done {
    core.check_sse()?;
    let b = S::vector::<V>(core, op)?;
    let a = get(core, op.a);
    let result = core.simd(|mxcsr| f(a, b, op.imm as u8, mxcsr))?;
    set(core, op.a, result);
    Ok(())
}

/// Floating point, scalar: the low bytes of the register are `f(xmm, source, imm, mxcsr)`, the rest stays.
#[inline(always)]
pub fn float_scalar<S: Source, T: Word + Pod, R: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(T, T, u8, &mut Mxcsr) -> R,
) -> Done {
    core.check_sse()?;
    let b = S::scalar::<T>(core, op)?;
    let a = low(core, op.a);
    let result = core.simd(|mxcsr| f(a, b, op.imm as u8, mxcsr))?;
    set_low(core, op.a, result);
    Ok(())
}

/// Floating point to a general register: `r = f(source, mxcsr)`.
#[inline(always)]
pub fn float_general<S: Source, T: Word + Pod, R: Word>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(T, &mut Mxcsr) -> R,
) -> Done {
    core.check_sse()?;
    let b = S::scalar::<T>(core, op)?;
    let result = core.simd(|mxcsr| f(b, mxcsr))?;
    core.set(op.a, result);
    Ok(())
}
