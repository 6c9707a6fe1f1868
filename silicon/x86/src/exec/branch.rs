//! Near branches ("Control Transfer Instructions").
//!
//! A branch checks its target before anything changes: it must be canonical in 64-bit mode and within the limit of CS
//! otherwise. The displacement of a relative target counts from the start of the block.

use silicon_memory::Word;
use x86_defs::segment::index;

use super::operand::Source;
use crate::op::{BLOCK_RIP, Done, Op};
use crate::{Core, Leave};

const RCX: u8 = 1;

/// The operand size of a branch, which cuts its target.
pub trait Width {
    /// A return address on the stack.
    type Address: Word;
    /// `target` as RIP, or #GP(0).
    fn target(core: &mut Core, target: u64) -> Result<u64, Leave>;
}

/// 16-bit operand size, not in 64-bit mode.
pub struct Near16;
/// 32-bit operand size, not in 64-bit mode.
pub struct Near32;
/// 64-bit mode.
pub struct Near64;

#[inline(always)]
fn within_limit(core: &mut Core, target: u64) -> Result<u64, Leave> {
    if target > u64::from(core.seg[index::CS].limit) { Err(core.gp0()) } else { Ok(target) }
}

impl Width for Near16 {
    type Address = u16;
    #[inline(always)]
    fn target(core: &mut Core, target: u64) -> Result<u64, Leave> {
        within_limit(core, target & 0xffff)
    }
}

impl Width for Near32 {
    type Address = u32;
    #[inline(always)]
    fn target(core: &mut Core, target: u64) -> Result<u64, Leave> {
        within_limit(core, target & 0xffff_ffff)
    }
}

#[cold]
fn far_canonical(core: &mut Core, target: u64) -> Result<u64, Leave> {
    if core.is_canonical(target) { Ok(target) } else { Err(core.gp0()) }
}

impl Width for Near64 {
    type Address = u64;
    #[inline(always)]
    fn target(core: &mut Core, target: u64) -> Result<u64, Leave> {
        // Canonical with 48 bits is canonical with 57.
        if ((target << 16) as i64 >> 16) as u64 == target { Ok(target) } else { far_canonical(core, target) }
    }
}

#[inline(always)]
fn relative<W: Width>(core: &mut Core, op: &Op) -> Result<u64, Leave> {
    W::target(core, core.gpr[BLOCK_RIP as usize].wrapping_add(op.imm))
}

#[inline(always)]
fn go(core: &mut Core, target: u64) -> Done {
    core.rip = target;
    Err(Leave::Branch)
}

/// Jcc.
#[inline(always)]
pub fn jcc<const CODE: u8, W: Width>(core: &mut Core, op: &Op) -> Done {
    if !core.flags.condition::<CODE>() {
        return Ok(());
    }
    let target = relative::<W>(core, op)?;
    go(core, target)
}

/// JMP to a relative target.
#[inline(always)]
pub fn jmp<W: Width>(core: &mut Core, op: &Op) -> Done {
    let target = relative::<W>(core, op)?;
    go(core, target)
}

/// JMP through a register or memory.
#[inline(always)]
pub fn jmp_indirect<S: Source, W: Width>(core: &mut Core, op: &Op) -> Done {
    let target = S::read::<W::Address>(core, op)?.to_u64();
    let target = W::target(core, target)?;
    go(core, target)
}

#[inline(always)]
fn call_target<W: Width>(core: &mut Core, op: &Op, target: u64) -> Done {
    let back = core.next_rip(op);
    core.push(W::Address::from_u64(back))?;
    go(core, target)
}

/// CALL of a relative target.
pub fn call<W: Width>(core: &mut Core, op: &Op) -> Done {
    let target = relative::<W>(core, op)?;
    call_target::<W>(core, op, target)
}

/// CALL through a register or memory.
pub fn call_indirect<S: Source, W: Width>(core: &mut Core, op: &Op) -> Done {
    let target = S::read::<W::Address>(core, op)?.to_u64();
    let target = W::target(core, target)?;
    call_target::<W>(core, op, target)
}

/// RET, which drops [`Op::imm`] more bytes.
pub fn ret<W: Width>(core: &mut Core, op: &Op) -> Done {
    let sp = core.gpr[4];
    let popped = core.pop::<W::Address>()?.to_u64();
    let target = match W::target(core, popped) {
        Ok(target) => target,
        Err(leave) => {
            core.gpr[4] = sp;
            return Err(leave);
        }
    };
    let mask = core.mode.stack_mask;
    core.gpr[4] = (sp & !mask) | (core.gpr[4].wrapping_add(op.imm) & mask);
    go(core, target)
}

/// What a loop looks at beside its counter.
pub trait LoopCondition {
    fn holds(core: &Core) -> bool;
}
/// LOOP.
pub struct Always;
/// LOOPE.
pub struct WhileEqual;
/// LOOPNE.
pub struct WhileNotEqual;

impl LoopCondition for Always {
    fn holds(_: &Core) -> bool {
        true
    }
}
impl LoopCondition for WhileEqual {
    fn holds(core: &Core) -> bool {
        core.flags.zf()
    }
}
impl LoopCondition for WhileNotEqual {
    fn holds(core: &Core) -> bool {
        !core.flags.zf()
    }
}

/// LOOP, LOOPE and LOOPNE with a counter of the address size `A`.
pub fn loop_while<C: LoopCondition, A: Word, W: Width>(core: &mut Core, op: &Op) -> Done {
    let count = A::from_u64(core.get::<A>(RCX).to_u64().wrapping_sub(1));
    if count.to_u64() == 0 || !C::holds(core) {
        core.set(RCX, count);
        return Ok(());
    }
    let target = relative::<W>(core, op)?;
    core.set(RCX, count);
    go(core, target)
}

/// JCXZ, JECXZ and JRCXZ.
pub fn jump_if_count_zero<A: Word, W: Width>(core: &mut Core, op: &Op) -> Done {
    if core.get::<A>(RCX).to_u64() != 0 {
        return Ok(());
    }
    let target = relative::<W>(core, op)?;
    go(core, target)
}
