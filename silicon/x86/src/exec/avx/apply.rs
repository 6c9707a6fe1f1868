//! Handlers made of pure functions of 16-byte vectors, as [`crate::exec::sse::apply`] makes them for SSE.
//!
//! `f` gets source 1 (VEX.vvvv), source 2 and the immediate. With `WIDE`, it makes each half of the result of the halves
//! of the sources; without, the high half of the destination becomes zero.

use bytemuck::{Pod, cast};
use silicon_float::Mxcsr;
use silicon_memory::Word;

use super::operand::{Source, get, is4, set, set_low, vvvv};
use crate::exec::sse::operand as sse;
use crate::op::Done;
use crate::{Core, Op};

/// `destination = f(source 1, source 2, imm)`.
#[inline(always)]
pub fn vector<const WIDE: bool, S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, V, u8) -> W,
) -> Done {
    stepped::<WIDE, S, V, W>(core, op, 0, f)
}

/// The same, where the high half has an immediate of its own, `step` bits further up.
#[inline(always)]
pub fn stepped<const WIDE: bool, S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    step: u32,
    f: impl Fn(V, V, u8) -> W,
) -> Done {
    core.check_avx()?;
    let imm = op.imm as u8;
    if WIDE {
        let [b0, b1] = S::both::<V>(core, op)?;
        let [a0, a1] = get(core, vvvv(op));
        set(core, op.a, [f(a0, b0, imm), f(a1, b1, imm >> step)]);
    } else {
        let b = S::half::<V>(core, op)?;
        let [a, _] = get(core, vvvv(op));
        set_low(core, op.a, f(a, b, imm));
    }
    Ok(())
}

/// `destination = f(source 1, source 2, mask)`, with the mask in the register of the immediate.
#[inline(always)]
pub fn blend<const WIDE: bool, S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, V, V) -> V) -> Done {
    core.check_avx()?;
    let [mask0, mask1] = get(core, is4(op));
    if WIDE {
        let [b0, b1] = S::both::<V>(core, op)?;
        let [a0, a1] = get(core, vvvv(op));
        set(core, op.a, [f(a0, b0, mask0), f(a1, b1, mask1)]);
    } else {
        let b = S::half::<V>(core, op)?;
        let [a, _] = get(core, vvvv(op));
        set_low(core, op.a, f(a, b, mask0));
    }
    Ok(())
}

/// `destination = f(source 1, count)`, with the count in the low 64 bits of source 2, whatever the width.
#[inline(always)]
pub fn shift<const WIDE: bool, S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u64) -> V) -> Done {
    core.check_avx()?;
    let [count, _] = S::half::<[u64; 2]>(core, op)?;
    let [low, high] = get(core, vvvv(op));
    if WIDE {
        set(core, op.a, [f(low, count), f(high, count)]);
    } else {
        set_low(core, op.a, f(low, count));
    }
    Ok(())
}

/// All 32 bytes at once: `destination = f(source 1, source 2, imm)`.
#[inline(always)]
pub fn across<S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, V, u8) -> V) -> Done {
    core.check_avx()?;
    let b = S::both::<u128>(core, op)?;
    let a = get::<u128>(core, vvvv(op));
    let result = f(cast(a), cast(b), op.imm as u8);
    set::<u128>(core, op.a, cast(result));
    Ok(())
}

/// Source 2 in one half, picked by the immediate, of source 1: VINSERTF128, VINSERTI128.
#[inline(always)]
pub fn insert_half<S: Source>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let b = S::half::<u128>(core, op)?;
    let mut result = get(core, vvvv(op));
    result[(op.imm & 1) as usize] = b;
    set(core, op.a, result);
    Ok(())
}

/// The low half from a scalar: `destination = f(source 1, source 2, imm)`.
#[inline(always)]
pub fn widen<S: sse::Source, T: Word + Pod, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, T, u8) -> V) -> Done {
    core.check_avx()?;
    let b = S::scalar::<T>(core, op)?;
    let [a, _] = get(core, vvvv(op));
    set_low(core, op.a, f(a, b, op.imm as u8));
    Ok(())
}

/// Each half is `f` of the same scalar.
#[inline(always)]
pub fn broadcast<const WIDE: bool, S: sse::Source, T: Word + Pod, V: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(T) -> V,
) -> Done {
    core.check_avx()?;
    let b = S::scalar::<T>(core, op)?;
    if WIDE {
        set(core, op.a, [f(b); 2]);
    } else {
        set_low(core, op.a, f(b));
    }
    Ok(())
}

/// Each half is `f` of one half of a source of two `T`: VPMOVSX, VPMOVZX of 256 bits.
#[inline(always)]
pub fn extend_both<S: sse::Source, D: Word + Pod, T: Pod, V: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(T) -> V,
) -> Done {
    core.check_avx()?;
    let [low, high] = cast::<D, [T; 2]>(S::scalar::<D>(core, op)?);
    set(core, op.a, [f(low), f(high)]);
    Ok(())
}

/// A general register from a vector: `r = f(source, imm)`.
#[inline(always)]
pub fn general<V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u8) -> u64) -> Done {
    core.check_avx()?;
    let [b, _] = get(core, op.b);
    core.set(op.a, f(b, op.imm as u8));
    Ok(())
}

/// Masks of the halves, `bits` bits each, to a general register.
#[inline(always)]
pub fn signs<const WIDE: bool, V: Pod>(core: &mut Core, op: &Op, bits: u32, f: impl Fn(V) -> u64) -> Done {
    core.check_avx()?;
    let [low, high] = get(core, op.b);
    core.set(op.a, f(low) | if WIDE { f(high) << bits } else { 0 });
    Ok(())
}

/// Stores a part of register `op.b`: `m = f(register, imm)`.
#[inline(always)]
pub fn extract<V: Pod, T: Word>(core: &mut Core, op: &Op, f: impl Fn(V, u8) -> T) -> Done {
    core.check_avx()?;
    let [b, _] = get(core, op.b);
    core.store(op, f(b, op.imm as u8))
}

/// Floating point: `destination = f(source 1, source 2, imm, mxcsr)`, by half when `WIDE`.
#[inline(always)]
pub fn float_vector<const WIDE: bool, S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, V, u8, &mut Mxcsr) -> W,
) -> Done {
    core.check_avx()?;
    let imm = op.imm as u8;
    if WIDE {
        let [b0, b1] = S::both::<V>(core, op)?;
        let [a0, a1] = get(core, vvvv(op));
        let result = core.simd(|mxcsr| [f(a0, b0, imm, mxcsr), f(a1, b1, imm, mxcsr)])?;
        set(core, op.a, result);
    } else {
        let b = S::half::<V>(core, op)?;
        let [a, _] = get(core, vvvv(op));
        let result = core.simd(|mxcsr| f(a, b, imm, mxcsr))?;
        set_low(core, op.a, result);
    }
    Ok(())
}
