//! Handlers made of pure functions, for MMX registers.

use bytemuck::Pod;
use silicon_float::Mxcsr;
use silicon_memory::Word;

use crate::exec::sse::operand::{Source as XmmSource, low, set, set_low};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// A source of eight bytes or fewer.
pub trait Source {
    fn scalar<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave>;
}

/// MMX register `op.b`.
pub struct Register;
/// Memory.
pub struct Memory;
/// The low half from memory: PUNPCKLBW, PUNPCKLWD and PUNPCKLDQ read four bytes.
pub struct LowMemory;
/// The immediate.
pub struct Immediate;
/// General register `op.b`.
pub struct General;

impl Source for Register {
    #[inline(always)]
    fn scalar<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(T::from_u64(core.mm(op.b)))
    }
}

impl Source for Memory {
    #[inline(always)]
    fn scalar<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        core.load(op)
    }
}

impl Source for LowMemory {
    #[inline(always)]
    fn scalar<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        core.load::<u32>(op).map(|low| T::from_u64(low.into()))
    }
}

impl Source for Immediate {
    #[inline(always)]
    fn scalar<T: Word>(_: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(T::from_u64(op.imm))
    }
}

impl Source for General {
    #[inline(always)]
    fn scalar<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(core.get(op.b))
    }
}

/// `mm = f(mm, source, imm)`; `T` is what is read of the source.
#[inline(always)]
pub fn scalar<S: Source, T: Word>(core: &mut Core, op: &Op, f: impl Fn(u64, T, u8) -> u64) -> Done {
    core.check_mmx()?;
    let b = S::scalar::<T>(core, op)?;
    let result = f(core.mm(op.a), b, op.imm as u8);
    core.set_mm(op.a, result);
    Ok(())
}

/// `mm = f(mm, source, imm)` on lanes.
#[inline(always)]
pub fn vector<S: Source, V: Pod, W: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, V, u8) -> W) -> Done {
    scalar::<S, u64>(core, op, |a, b, imm| bytemuck::cast(f(bytemuck::cast(a), bytemuck::cast(b), imm)))
}

/// `mm = f(mm, count)`.
#[inline(always)]
pub fn shift<S: Source, V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u64) -> V) -> Done {
    scalar::<S, u64>(core, op, |a, count, _| bytemuck::cast(f(bytemuck::cast(a), count)))
}

/// `r32 = f(mm, imm)`.
#[inline(always)]
pub fn general<V: Pod>(core: &mut Core, op: &Op, f: impl Fn(V, u8) -> u64) -> Done {
    core.check_mmx()?;
    let result = f(bytemuck::cast(core.mm(op.b)), op.imm as u8);
    core.enter_mmx();
    core.set(op.a, result);
    Ok(())
}

/// MOVD, MOVQ to a general register.
#[inline(always)]
pub fn to_general<T: Word>(core: &mut Core, op: &Op) -> Done {
    core.check_mmx()?;
    core.enter_mmx();
    core.set(op.a, T::from_u64(core.mm(op.b)));
    Ok(())
}

/// MOVD, MOVQ, MOVNTQ to memory.
#[inline(always)]
pub fn store<T: Word>(core: &mut Core, op: &Op) -> Done {
    core.check_mmx()?;
    let value = T::from_u64(core.mm(op.b));
    core.store(op, value)?;
    core.enter_mmx();
    Ok(())
}

/// MASKMOVQ.
pub fn masked_store(core: &mut Core, op: &Op) -> Done {
    core.check_mmx()?;
    let (bytes, mask) = (core.mm(op.a).to_le_bytes(), core.mm(op.b).to_le_bytes());
    crate::exec::sse::moves::store_bytes(core, op, &bytes, &mask)?;
    core.enter_mmx();
    Ok(())
}

/// Both kinds of registers: all checks of SSE, then those of MMX.
#[inline(always)]
fn check(core: &mut Core) -> Result<(), Leave> {
    core.check_sse()?;
    core.check_mmx()
}

/// MOVDQ2Q.
pub fn from_xmm(core: &mut Core, op: &Op) -> Done {
    check(core)?;
    let value = low(core, op.b);
    core.set_mm(op.a, value);
    Ok(())
}

/// MOVQ2DQ.
pub fn to_xmm(core: &mut Core, op: &Op) -> Done {
    check(core)?;
    let value = core.mm(op.b);
    core.enter_mmx();
    set(core, op.a, [value, 0]);
    Ok(())
}

/// CVTPI2PS, CVTPI2PD from a register: the low bytes of the XMM register are `f(source, mxcsr)`.
#[inline(always)]
pub fn float_from<S: Source, R: Pod>(core: &mut Core, op: &Op, f: impl Fn([i32; 2], &mut Mxcsr) -> R) -> Done {
    check(core)?;
    let b = S::scalar::<u64>(core, op)?;
    let result = core.simd(|mxcsr| f(bytemuck::cast(b), mxcsr))?;
    core.enter_mmx();
    set_low(core, op.a, result);
    Ok(())
}

/// CVTPI2PD from memory, which leaves x87 and MMX alone.
pub fn doubles_from_memory(core: &mut Core, op: &Op, f: impl Fn([i32; 2], &mut Mxcsr) -> [u64; 2]) -> Done {
    core.check_sse()?;
    let b = core.load::<u64>(op)?;
    let result = core.simd(|mxcsr| f(bytemuck::cast(b), mxcsr))?;
    set(core, op.a, result);
    Ok(())
}

/// CVTPS2PI, CVTTPS2PI.
#[inline(always)]
pub fn singles_to<S: XmmSource>(core: &mut Core, op: &Op, f: impl Fn([u32; 2], &mut Mxcsr) -> [i32; 2]) -> Done {
    check(core)?;
    let b = S::scalar::<u64>(core, op)?;
    let result = core.simd(|mxcsr| f(bytemuck::cast(b), mxcsr))?;
    core.set_mm(op.a, bytemuck::cast(result));
    Ok(())
}

/// CVTPD2PI, CVTTPD2PI.
#[inline(always)]
pub fn doubles_to<S: XmmSource>(core: &mut Core, op: &Op, f: impl Fn([u64; 2], &mut Mxcsr) -> [i32; 2]) -> Done {
    check(core)?;
    let b = S::vector::<[u64; 2]>(core, op)?;
    let result = core.simd(|mxcsr| f(b, mxcsr))?;
    core.set_mm(op.a, bytemuck::cast(result));
    Ok(())
}
