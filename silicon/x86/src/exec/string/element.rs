//! One element of a string.

use silicon_memory::Word;
use x86_defs::rflags;

use super::bulk;
use crate::exec::alu::{Alu, Sub};
use crate::mem::AccessKind;
use crate::op::Op;
use crate::{Core, Leave};

pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;

/// A string instruction on elements `T` with addresses of size `A`.
pub trait Once {
    /// Does one element and moves the pointers, or fails and changes nothing.
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave>;

    /// Does up to `most` (not zero) elements upwards in one piece, pointers included, and gives how many. None where
    /// they must go one by one. A comparison stops after the first element whose ZF is not `go_on`.
    fn bulk<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, go_on: Option<bool>) -> Result<u64, Leave>;
}

pub struct Movs;
pub struct Stos;
pub struct Lods;
pub struct Cmps;
pub struct Scas;

/// Distance to the next element.
#[inline(always)]
fn stride<T: Word>(core: &Core) -> u64 {
    if core.rflags_rest & rflags::DF == 0 { T::BYTES } else { T::BYTES.wrapping_neg() }
}

/// Moves a pointer by `distance` bytes in its address size.
#[inline(always)]
pub fn advance<A: Word>(core: &mut Core, slot: u8, distance: u64) {
    let next = core.get::<A>(slot).to_u64().wrapping_add(distance);
    core.set(slot, A::from_u64(next));
}

/// Linear address of the element that register `slot` points to.
#[inline(always)]
pub fn linear<T: Word, A: Word>(core: &mut Core, seg: u8, slot: u8, kind: AccessKind) -> Result<u64, Leave> {
    let offset = core.get::<A>(slot).to_u64();
    core.linear(seg, offset, T::BYTES, kind)
}

#[inline(always)]
fn load<T: Word, A: Word>(core: &mut Core, seg: u8, slot: u8) -> Result<T, Leave> {
    let at = linear::<T, A>(core, seg, slot, AccessKind::Read)?;
    core.load_linear(at, seg)
}

#[inline(always)]
fn store<T: Word, A: Word>(core: &mut Core, seg: u8, value: T) -> Result<(), Leave> {
    let at = linear::<T, A>(core, seg, RDI, AccessKind::Write)?;
    core.store_linear(at, seg, value)
}

impl Once for Movs {
    #[inline(always)]
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave> {
        let value = load::<T, A>(core, op.seg, RSI)?;
        store::<T, A>(core, op.b, value)?;
        let stride = stride::<T>(core);
        advance::<A>(core, RSI, stride);
        advance::<A>(core, RDI, stride);
        Ok(())
    }

    fn bulk<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, _: Option<bool>) -> Result<u64, Leave> {
        bulk::copy::<T, A>(core, op, most)
    }
}

impl Once for Stos {
    #[inline(always)]
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave> {
        let value = core.get::<T>(RAX);
        store::<T, A>(core, op.b, value)?;
        let stride = stride::<T>(core);
        advance::<A>(core, RDI, stride);
        Ok(())
    }

    fn bulk<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, _: Option<bool>) -> Result<u64, Leave> {
        bulk::fill::<T, A>(core, op, most)
    }
}

impl Once for Lods {
    #[inline(always)]
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave> {
        let value = load::<T, A>(core, op.seg, RSI)?;
        core.set(RAX, value);
        let stride = stride::<T>(core);
        advance::<A>(core, RSI, stride);
        Ok(())
    }

    fn bulk<T: Word, A: Word>(_: &mut Core, _: &Op, _: u64, _: Option<bool>) -> Result<u64, Leave> {
        Ok(0)
    }
}

impl Once for Cmps {
    #[inline(always)]
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave> {
        let a = load::<T, A>(core, op.seg, RSI)?;
        let b = load::<T, A>(core, op.b, RDI)?;
        Sub::apply::<T>(&mut core.flags, a.to_u64(), b.to_u64());
        let stride = stride::<T>(core);
        advance::<A>(core, RSI, stride);
        advance::<A>(core, RDI, stride);
        Ok(())
    }

    fn bulk<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, go_on: Option<bool>) -> Result<u64, Leave> {
        bulk::compare::<T, A>(core, op, most, go_on)
    }
}

impl Once for Scas {
    #[inline(always)]
    fn step<T: Word, A: Word>(core: &mut Core, op: &Op) -> Result<(), Leave> {
        let a = core.get::<T>(RAX);
        let b = load::<T, A>(core, op.b, RDI)?;
        Sub::apply::<T>(&mut core.flags, a.to_u64(), b.to_u64());
        let stride = stride::<T>(core);
        advance::<A>(core, RDI, stride);
        Ok(())
    }

    fn bulk<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, go_on: Option<bool>) -> Result<u64, Leave> {
        bulk::scan::<T, A>(core, op, most, go_on)
    }
}
