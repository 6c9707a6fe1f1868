//! The repeat prefixes.

use silicon_memory::Word;
use x86_defs::rflags;
use x86_defs::vmx::controls::primary;

use super::element::{Once, RCX};
use crate::cost;
use crate::op::{Done, Op};
use crate::{Core, Leave};

/// Elements that one execution does one by one: what an interrupt may have to wait for.
const MOST_SINGLE: u64 = 64;

/// When a repetition goes on, beside its count.
pub trait Repetition {
    /// The ZF that it needs; `None` for any.
    const GO_ON: Option<bool>;
}
/// REP.
pub struct Rep;
/// REPE: while equal.
pub struct Repe;
/// REPNE: while not equal.
pub struct Repne;

impl Repetition for Rep {
    const GO_ON: Option<bool> = None;
}
impl Repetition for Repe {
    const GO_ON: Option<bool> = Some(true);
}
impl Repetition for Repne {
    const GO_ON: Option<bool> = Some(false);
}

/// A string instruction without a prefix.
pub fn once<S: Once, T: Word, A: Word>(core: &mut Core, op: &Op) -> Done {
    S::step::<T, A>(core, op)
}

/// One chunk of a repeated string instruction.
pub fn repeat<S: Once, R: Repetition, T: Word, A: Word>(core: &mut Core, op: &Op) -> Done {
    let mut left = core.get::<A>(RCX).to_u64();
    if left == 0 {
        return Ok(());
    }
    // Emulation of a device access carries its stores out after each element; single-stepping and the monitor trap stop
    // after each.
    let mut single = MOST_SINGLE;
    let traced = core.rflags_rest & rflags::TF != 0 || core.vmx.controls.primary & primary::MONITOR_TRAP_FLAG != 0;
    if core.mmu.mmio.active || traced {
        single = 1;
    } else if core.rflags_rest & rflags::DF == 0 {
        let done = S::bulk::<T, A>(core, op, left, R::GO_ON)?;
        if done > 0 {
            core.stall += (done * T::BYTES).div_ceil(32) * cost::STRING_BULK;
            left -= done;
            core.set(RCX, A::from_u64(left));
            return finish::<R>(core, left);
        }
        // What stops the bulk is usually over after one element that lies across two pages.
        single = 8;
    }
    while single > 0 && left > 0 {
        S::step::<T, A>(core, op)?;
        core.stall += cost::STRING_ELEMENT;
        left -= 1;
        single -= 1;
        core.set(RCX, A::from_u64(left));
        if R::GO_ON.is_some_and(|zf| core.flags.zf() != zf) {
            return Ok(());
        }
    }
    finish::<R>(core, left)
}

#[inline(always)]
fn finish<R: Repetition>(core: &Core, left: u64) -> Done {
    if left == 0 || R::GO_ON.is_some_and(|zf| core.flags.zf() != zf) { Ok(()) } else { Err(Leave::Again) }
}
