//! Stack instructions and near branches with 64-bit operands.

use crate::exec::branch::{Near64, Width};
use crate::exec::operand::Source;
use crate::op::{BLOCK_RIP, Done, Op};
use crate::{Core, Leave};

use super::{load_at, store_at};

const RSP: usize = 4;
const RBP: usize = 5;

#[inline(always)]
fn push_value(core: &mut Core, value: u64) -> Done {
    let new = core.gpr[RSP].wrapping_sub(8);
    store_at(core, new, value)?;
    core.gpr[RSP] = new;
    Ok(())
}

/// PUSH.
#[inline(always)]
pub fn push<S: Source>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<u64>(core, op)?;
    push_value(core, value)
}

/// POP register.
#[inline(always)]
pub fn pop(core: &mut Core, op: &Op) -> Done {
    let sp = core.gpr[RSP];
    let value = load_at::<u64>(core, sp)?;
    core.gpr[RSP] = sp.wrapping_add(8);
    core.set(op.a, value);
    Ok(())
}

/// LEAVE.
#[inline(always)]
pub fn leave(core: &mut Core, _: &Op) -> Done {
    let frame = core.gpr[RBP];
    let value = load_at::<u64>(core, frame)?;
    core.gpr[RSP] = frame.wrapping_add(8);
    core.gpr[RBP] = value;
    Ok(())
}

#[inline(always)]
fn go(core: &mut Core, target: u64) -> Done {
    core.rip = target;
    Err(Leave::Branch)
}

#[inline(always)]
fn call_target(core: &mut Core, op: &Op, target: u64) -> Done {
    let target = Near64::target(core, target)?;
    let back = core.gpr[BLOCK_RIP as usize].wrapping_add(op.next_off());
    push_value(core, back)?;
    go(core, target)
}

/// CALL of a relative target.
#[inline(always)]
pub fn call(core: &mut Core, op: &Op) -> Done {
    call_target(core, op, core.gpr[BLOCK_RIP as usize].wrapping_add(op.imm))
}

/// CALL through a register or memory.
#[inline(always)]
pub fn call_indirect<S: Source>(core: &mut Core, op: &Op) -> Done {
    let target = S::read::<u64>(core, op)?;
    call_target(core, op, target)
}

/// RET, which drops [`Op::imm`] more bytes.
#[inline(always)]
pub fn ret(core: &mut Core, op: &Op) -> Done {
    let sp = core.gpr[RSP];
    let target = load_at::<u64>(core, sp)?;
    let target = Near64::target(core, target)?;
    core.gpr[RSP] = sp.wrapping_add(8).wrapping_add(op.imm);
    go(core, target)
}
