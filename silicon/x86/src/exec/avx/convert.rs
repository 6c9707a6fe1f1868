//! Conversions whose result is wider or narrower than their source.

use bytemuck::Pod;
use silicon_float::Mxcsr;

use super::operand::{Source, get, set, set_low};
use crate::exec::sse;
use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Op};

/// Both halves of the destination from 16 bytes of the source: `ymm = f(xmm or m128, mxcsr)`.
#[inline(always)]
pub fn widen<S: Source, V: Pod, W: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, &mut Mxcsr) -> [W; 2]) -> Done {
    core.check_avx()?;
    let b = S::half::<V>(core, op)?;
    let result = core.simd(|mxcsr| f(b, mxcsr))?;
    set(core, op.a, result);
    Ok(())
}

/// The low half of the destination from 8 bytes of the source: `xmm = f(xmm or m64, mxcsr)`.
#[inline(always)]
pub fn widen_low<S: sse::operand::Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, &mut Mxcsr) -> W,
) -> Done {
    core.check_avx()?;
    let b = bytemuck::cast(S::scalar::<u64>(core, op)?);
    let result = core.simd(|mxcsr| f(b, mxcsr))?;
    set_low(core, op.a, result);
    Ok(())
}

/// The low half of the destination from 16 or, when `WIDE`, 32 bytes of the source. `f` converts one half to 8 bytes.
#[inline(always)]
pub fn narrow<const WIDE: bool, S: Source, V: Pod, W: Pod>(
    core: &mut Core,
    op: &Op,
    f: impl Fn(V, &mut Mxcsr) -> W,
) -> Done {
    core.check_avx()?;
    let result = if WIDE {
        let [b0, b1] = S::both::<V>(core, op)?;
        core.simd(|mxcsr| [f(b0, mxcsr), f(b1, mxcsr)].map(bytemuck::cast::<W, u64>))?
    } else {
        let b = S::half::<V>(core, op)?;
        core.simd(|mxcsr| [bytemuck::cast::<W, u64>(f(b, mxcsr)), 0])?
    };
    set_low(core, op.a, result);
    Ok(())
}

/// VCVTPS2PH to a register: `f` converts one half to 8 bytes.
#[inline(always)]
pub fn to_halves<const WIDE: bool>(core: &mut Core, op: &Op, f: impl Fn([u32; 4], u8, &mut Mxcsr) -> [u16; 4]) -> Done {
    use super::operand::Register;
    narrow::<WIDE, Register, [u32; 4], [u16; 4]>(core, op, |v, mxcsr| f(v, op.imm as u8, mxcsr))
}

/// VCVTPS2PH to memory: a store that faults comes before what the conversion raises.
#[inline(always)]
pub fn store_halves<const WIDE: bool>(
    core: &mut Core,
    op: &Op,
    f: impl Fn([u32; 4], u8, &mut Mxcsr) -> [u16; 4],
) -> Done {
    core.check_avx()?;
    let imm = op.imm as u8;
    let [a0, a1] = get(core, op.b);
    let bytes = if WIDE { 16 } else { 8 };
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, bytes, AccessKind::Write)?;
    core.check_store(linear, op.seg, bytes)?;
    if WIDE {
        let result = core.simd(|mxcsr| [f(a0, imm, mxcsr), f(a1, imm, mxcsr)])?;
        core.store_linear::<u128>(linear, op.seg, bytemuck::cast(result))
    } else {
        let result = core.simd(|mxcsr| f(a0, imm, mxcsr))?;
        core.store_linear::<u64>(linear, op.seg, bytemuck::cast(result))
    }
}
