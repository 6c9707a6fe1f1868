//! Comparisons that set the arithmetic flags.

use bytemuck::Pod;
use silicon_float::{Float, Ordering4, Signalling, sse};
use silicon_memory::Word;
use x86_defs::rflags;

use super::operand::{Source, get, low};
use crate::op::Done;
use crate::{Core, Op};

/// COMISS, COMISD; UCOMISS, UCOMISD when quiet.
#[inline(always)]
pub fn scalars<S: Source, F, T>(core: &mut Core, op: &Op, signalling: Signalling) -> Done
where
    T: Word + Pod,
    F: Float<Bits = T>,
{
    core.check_sse()?;
    let b = S::scalar::<T>(core, op)?;
    let a = low(core, op.a);
    let order = core.simd(|mxcsr| sse::comi::<F>(a, b, signalling, mxcsr))?;
    report(core, order);
    Ok(())
}

/// Sets the arithmetic flags to the result of a comparison.
#[inline(always)]
pub fn report(core: &mut Core, order: Ordering4) {
    core.flags.set_bits(match order {
        Ordering4::Unordered => rflags::ZF | rflags::PF | rflags::CF,
        Ordering4::Less => rflags::CF,
        Ordering4::Equal => rflags::ZF,
        Ordering4::Greater => 0,
    });
}

/// PTEST.
#[inline(always)]
pub fn test<S: Source>(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let b = S::vector::<u128>(core, op)?;
    let a: u128 = get(core, op.a);
    let zf = if a & b == 0 { rflags::ZF } else { 0 };
    let cf = if !a & b == 0 { rflags::CF } else { 0 };
    core.flags.set_bits(zf | cf);
    Ok(())
}
