//! Shifts and rotates ("Shift and Rotate Instructions").
//!
//! The count is cut to 5 bits (6 for 64-bit operands); a count of zero leaves the flags alone. What the manual leaves
//! undefined: OF for counts other than 1 follows the formula for 1, AF of shifts is 0, and 16-bit SHLD and SHRD by more
//! than 16 go on with the destination's own bits.

use silicon_memory::Word;

use super::operand::{Place, RegB, Source, bits, signed};
use crate::core::Flags;
use crate::op::{Done, Op};
use crate::{Core, Leave};

const RCX: u8 = 1;

/// The count in CL.
pub struct Cl;
impl Source for Cl {
    #[inline(always)]
    fn read<T: Word>(core: &mut Core, _: &Op) -> Result<T, Leave> {
        Ok(T::from_u64(u64::from(core.get::<u8>(RCX))))
    }
}

/// A shift or rotate of the zero-extended `a` by `count`, which is not zero and less than 32 (64 bits: 64).
pub trait Shift {
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64;
}

pub struct Shl;
pub struct Shr;
pub struct Sar;
pub struct Rol;
pub struct Ror;
pub struct Rcl;
pub struct Rcr;

#[inline(always)]
fn top<T: Word>(value: u64) -> bool {
    value >> (bits::<T>() - 1) & 1 != 0
}

/// The two top bits differ.
#[inline(always)]
fn top_two_differ<T: Word>(value: u64) -> bool {
    top::<T>(value ^ value << 1)
}

impl Shift for Shl {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let out = if bits::<T>() == 64 { a >> (64 - count) } else { a << count >> bits::<T>() };
        let r = a << count;
        let cf = out & 1 != 0;
        flags.result_with::<T>(r, cf, cf != top::<T>(r));
        r
    }
}

impl Shift for Shr {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let r = a >> count;
        flags.result_with::<T>(r, a >> (count - 1) & 1 != 0, top_two_differ::<T>(r));
        r
    }
}

impl Shift for Sar {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let a = signed(T::from_u64(a));
        let r = (a >> count) as u64;
        flags.result_with::<T>(r, a >> (count - 1) & 1 != 0, false);
        r
    }
}

#[inline(always)]
fn rotate_left<T: Word>(a: u64, count: u32) -> u64 {
    let count = count & (bits::<T>() - 1);
    // (The mask keeps a rotation by zero from shifting by the whole width.)
    a << count | a >> ((bits::<T>() - count) & (bits::<T>() - 1))
}

impl Shift for Rol {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let r = rotate_left::<T>(a, count);
        let cf = r & 1 != 0;
        flags.set_cf_of(cf, cf != top::<T>(r));
        r
    }
}

impl Shift for Ror {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let r = rotate_left::<T>(a, bits::<T>() - (count & (bits::<T>() - 1)));
        flags.set_cf_of(top::<T>(r), top_two_differ::<T>(r));
        r
    }
}

/// Rotates the operand with CF as its bit above the top, left by `count`.
#[inline(always)]
fn rotate_through_carry<T: Word>(flags: &Flags, a: u64, count: u32) -> (u64, bool) {
    let width = bits::<T>() + 1;
    let count = count % width;
    let whole = u128::from(flags.cf()) << bits::<T>() | u128::from(a);
    let r = whole << count | whole >> (width - count);
    (r as u64, r >> bits::<T>() & 1 != 0)
}

impl Shift for Rcl {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let (r, cf) = rotate_through_carry::<T>(flags, a, count);
        flags.set_cf_of(cf, cf != top::<T>(r));
        r
    }
}

impl Shift for Rcr {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, count: u32) -> u64 {
        let width = bits::<T>() + 1;
        let (r, cf) = rotate_through_carry::<T>(flags, a, width - count % width);
        flags.set_cf_of(cf, top_two_differ::<T>(r));
        r
    }
}

#[inline(always)]
fn count_mask<T: Word>() -> u32 {
    if T::BYTES == 8 { 63 } else { 31 }
}

/// `place = place O count`.
#[inline(always)]
pub fn shift<O: Shift, P: Place, C: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let count = u32::from(C::read::<u8>(core, op)?) & count_mask::<T>();
    P::update::<T>(core, op, |core, a| {
        if count == 0 { a } else { T::from_u64(O::apply::<T>(&mut core.flags, a.to_u64(), count)) }
    })
}

/// SHLD and SHRD, with the filling bits in [`Op::b`].
pub trait Double {
    fn apply<T: Word>(flags: &mut Flags, a: u64, fill: u64, count: u32) -> u64;
}

pub struct Shld;
pub struct Shrd;

impl Double for Shld {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, fill: u64, count: u32) -> u64 {
        let n = bits::<T>();
        let (wide_a, wide_fill) = (u128::from(a), u128::from(fill));
        // From the top: a, fill, and (16 bits only) a again.
        let whole = if n == 64 { wide_a << 64 | wide_fill } else { wide_a << (2 * n) | wide_fill << n | wide_a };
        let below = if n == 64 { 64 } else { 2 * n };
        let r = ((whole << count) >> below) as u64;
        let cf = whole >> (below + n - count) & 1 != 0;
        flags.result_with::<T>(r, cf, cf != top::<T>(r));
        r
    }
}

impl Double for Shrd {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, fill: u64, count: u32) -> u64 {
        let n = bits::<T>();
        let (wide_a, wide_fill) = (u128::from(a), u128::from(fill));
        let again = if n == 64 { 0 } else { wide_a << (2 * n) };
        let whole = again | wide_fill << n | wide_a;
        let r = (whole >> count) as u64;
        let cf = whole >> (count - 1) & 1 != 0;
        flags.result_with::<T>(r, cf, top_two_differ::<T>(r));
        r
    }
}

/// `place = place O (register b, count)`.
pub fn double<O: Double, P: Place, C: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let count = u32::from(C::read::<u8>(core, op)?) & count_mask::<T>();
    let fill = RegB::read::<T>(core, op)?.to_u64();
    P::update::<T>(core, op, |core, a| {
        if count == 0 { a } else { T::from_u64(O::apply::<T>(&mut core.flags, a.to_u64(), fill, count)) }
    })
}

/// SHLX, SHRX, SARX and RORX: no flags. The count comes from register `imm` (RORX: is the immediate).
pub fn shift_without_flags<O: Shift, S: Source, T: Word, const IMMEDIATE: bool>(core: &mut Core, op: &Op) -> Done {
    let a = S::read::<T>(core, op)?;
    let count = if IMMEDIATE { op.imm as u32 } else { core.get::<u32>(op.imm as u8) };
    let count = count & count_mask::<T>();
    let mut unused = Flags::default();
    let r = if count == 0 { a } else { T::from_u64(O::apply::<T>(&mut unused, a.to_u64(), count)) };
    core.set(op.a, r);
    Ok(())
}
