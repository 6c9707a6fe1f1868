//! Chained execution: each op goes on with the next one itself, by a call in tail position.
//!
//! A loop over the ops of a block has one indirect call for all instructions, and a check of each one's result. A
//! chain has one indirect jump an instruction, at the end of its own code, where the host's branch predictor sees
//! which instruction it was; what an instruction gives is known inside of its code. The compiler makes jumps of the calls
//! where it optimises. Where it does not, the calls nest as deep as a block is long, which is bounded
//! ([`crate::code::MOST_INSTRUCTIONS`]): nothing relies on the jumps but speed.
//!
//! A chained form holds the simple case alone: memory that the fast look-up answers, a branch target that is canonical.
//! Everything else is left to [`once`], which executes the op's complete form: a handler that fails has changed
//! nothing, so it can be executed again from the start. This keeps all slow code, and the stack frame it needs, out of the
//! way. Chained forms are for 64-bit mode.

pub mod stack;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use silicon_memory::Word;

use super::alu::{self, Alu};
use super::branch::{Near64, jcc};
use super::operand::{Place, Source};
use crate::op::{Done, FLAT, Op, Rest, Stop};
use crate::{Core, Leave};

/// What a chained form answers to what it leaves to [`once`].
pub const NOT_SIMPLE: Leave = Leave::Again;

/// Goes on with the next op of the block.
#[inline(always)]
pub fn next(core: &mut Core, mut rest: Rest<'_>) -> Stop {
    match rest.next() {
        Some(op) => (op.chain)(core, op, rest),
        None => Stop::END,
    }
}

/// Executes the complete form of an op, and goes on.
#[inline(never)]
pub fn once(core: &mut Core, op: &Op, rest: Rest<'_>) -> Stop {
    match (op.exec)(core, op) {
        Ok(()) => next(core, rest),
        Err(left) => Stop::new(left, op.idx),
    }
}

/// The chained form of a handler that goes on with the next instruction. It must change nothing when it fails.
#[macro_export]
macro_rules! chained {
    ($f:expr) => {{
        let chain: $crate::op::Chain = |core, op, rest| match $f(core, op) {
            Ok(()) => $crate::exec::chain::next(core, rest),
            Err(_) => $crate::exec::chain::once(core, op, rest),
        };
        chain
    }};
}

/// The chained form of a branch, the last op of its block.
#[macro_export]
macro_rules! chained_branch {
    ($f:expr) => {{
        let chain: $crate::op::Chain = |core, op, rest| match $f(core, op) {
            Ok(()) => $crate::op::Stop::END,
            Err($crate::op::Leave::Branch) => $crate::op::Stop::BRANCH,
            Err(_) => $crate::exec::chain::once(core, op, rest),
        };
        chain
    }};
}

/// CMP or TEST, and the Jcc of 64-bit mode after it, which is the last op of the block. Each stays an op of its own
/// wherever the block is not executed as a whole.
pub fn compare_and_branch<const CODE: u8, O: Alu, A: Source, B: Source, T: Word>(
    core: &mut Core,
    op: &Op,
    mut rest: Rest<'_>,
) -> Stop {
    if alu::compare::<O, A, B, T>(core, op).is_err() {
        return once(core, op, rest);
    }
    let Some(branch) = rest.next() else { return Stop::END };
    match jcc::<CODE, Near64>(core, branch) {
        Ok(()) => Stop::END,
        Err(Leave::Branch) => Stop::BRANCH,
        Err(_) => once(core, branch, rest),
    }
}

/// How the address of a memory operand is made, in 64-bit mode with 64-bit addresses.
pub trait Address {
    fn linear(core: &Core, op: &Op) -> u64;
}

/// Base and displacement in a segment without a base.
pub struct Based;
/// Base, scaled index and displacement in any segment.
pub struct Indexed;

impl Address for Based {
    #[inline(always)]
    fn linear(core: &Core, op: &Op) -> u64 {
        core.gpr[(op.base & 31) as usize].wrapping_add(i64::from(op.disp) as u64)
    }
}

impl Address for Indexed {
    #[inline(always)]
    fn linear(core: &Core, op: &Op) -> u64 {
        let index = core.gpr[(op.index & 31) as usize] << (op.scale_drop & 3);
        let offset = Based::linear(core, op).wrapping_add(index);
        // FS and GS alone have a base.
        if op.seg & FLAT != 0 { offset } else { core.seg[(op.seg & 7) as usize].base.wrapping_add(offset) }
    }
}

/// The memory operand, where the fast look-up has its page.
pub struct FastMem<A>(PhantomData<A>);

#[inline(always)]
fn load_at<T: Word>(core: &Core, linear: u64) -> Result<T, Leave> {
    match core.mmu.fast_frame::<T>(linear, core.mmu.need_read) {
        Some(frame) => Ok(frame.load(linear)),
        None => Err(NOT_SIMPLE),
    }
}

#[inline(always)]
fn store_at<T: Word>(core: &Core, linear: u64, value: T) -> Done {
    match core.mmu.fast_frame::<T>(linear, core.mmu.need_write) {
        Some(frame) => {
            frame.store(linear, value);
            Ok(())
        }
        None => Err(NOT_SIMPLE),
    }
}

impl<A: Address> Source for FastMem<A> {
    #[inline(always)]
    fn read<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        load_at(core, A::linear(core, op))
    }
}

impl<A: Address> Place for FastMem<A> {
    #[inline(always)]
    fn update<T: Word>(core: &mut Core, op: &Op, f: impl FnOnce(&mut Core, T) -> T) -> Done {
        let linear = A::linear(core, op);
        match core.mmu.fast_frame::<T>(linear, core.mmu.need_write) {
            Some(frame) => {
                let new = f(core, frame.load(linear));
                frame.store(linear, new);
                Ok(())
            }
            None => Err(NOT_SIMPLE),
        }
    }
}

/// MOV memory, source.
#[inline(always)]
pub fn to_mem<A: Address, S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?;
    store_at(core, A::linear(core, op), value)
}

/// SETcc memory.
#[inline(always)]
pub fn set_mem<const CODE: u8, A: Address>(core: &mut Core, op: &Op) -> Done {
    let value = u8::from(core.flags.condition::<CODE>());
    store_at(core, A::linear(core, op), value)
}
