//! Handlers made of pure functions of 16-byte vectors, as [`crate::exec::sse::apply`] makes them for SSE.

use bytemuck::Pod;
use silicon_float::Mxcsr;

use super::operand::{Source, get, set, set_low, vvvv};
use crate::op::Done;
use crate::{Core, Op};

/// `destination = f(source 1, source 2, imm)`, by half when `WIDE`.
#[inline(always)]
pub fn vector<const WIDE: bool, S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, V, u8) -> W,
) -> Done {
    core.check_avx()?;
    let imm = op.imm as u8;
    if WIDE {
        let [b0, b1] = S::both::<V>(core, op)?;
        let [a0, a1] = get(core, vvvv(op));
        set(core, op.a, [f(a0, b0, imm), f(a1, b1, imm)]);
    } else {
        let b = S::half::<V>(core, op)?;
        let [a, _] = get(core, vvvv(op));
        set_low(core, op.a, f(a, b, imm));
    }
    Ok(())
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
