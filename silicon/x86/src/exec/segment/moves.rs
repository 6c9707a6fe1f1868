//! MOV, PUSH and POP of segment registers, LDS, LES, LFS, LGS and LSS.

use silicon_memory::Word;
use x86_defs::segment::index;

use super::load::{commit, data_segment};
use crate::mem::AccessKind;
use crate::op::{Done, FLAT};
use crate::{Core, Leave, Op};

/// Segment register `a` becomes that of `selector`. SS ends the block: it opens a shadow and may change the stack size.
fn load(core: &mut Core, segment: usize, selector: u16) -> Done {
    let register = data_segment(core, segment, selector)?;
    commit(core, segment, register);
    Ok(())
}

fn finish(core: &mut Core, segment: usize) -> Done {
    if segment == index::SS {
        // A shadow does not extend another one.
        core.events.mov_ss_shadow = true;
        Err(Leave::End)
    } else {
        Ok(())
    }
}

/// MOV Sreg, r16. `a`: segment, `b`: register.
pub fn mov_from_register(core: &mut Core, op: &Op) -> Done {
    let segment = usize::from(op.a);
    let selector = core.get::<u16>(op.b);
    load(core, segment, selector)?;
    finish(core, segment)
}

/// MOV Sreg, m16. `a`: segment.
pub fn mov_from_memory(core: &mut Core, op: &Op) -> Done {
    let segment = usize::from(op.a);
    let selector = core.load::<u16>(op)?;
    load(core, segment, selector)?;
    finish(core, segment)
}

/// MOV r, Sreg. `a`: register, `b`: segment. The selector is zero-extended to the register's size.
pub fn mov_to_register<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[usize::from(op.b)].selector;
    core.set(op.a, T::from_u64(u64::from(selector)));
    Ok(())
}

/// MOV m16, Sreg. `b`: segment.
pub fn mov_to_memory(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[usize::from(op.b)].selector;
    core.store(op, selector)
}

/// PUSH Sreg. `a`: segment.
pub fn push<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[usize::from(op.a)].selector;
    core.push(T::from_u64(u64::from(selector)))
}

/// POP Sreg. `a`: segment.
pub fn pop<T: Word>(core: &mut Core, op: &Op) -> Done {
    let segment = usize::from(op.a);
    let sp = core.gpr[4];
    let value: T = core.pop()?;
    let popped = core.gpr[4];
    core.gpr[4] = sp;
    load(core, segment, value.to_u64() as u16)?;
    core.gpr[4] = popped;
    finish(core, segment)
}

/// LDS, LES, LFS, LGS, LSS. `a`: register, `b`: segment.
pub fn load_far_pointer<T: Word>(core: &mut Core, op: &Op) -> Done {
    let segment = usize::from(op.b);
    let (selector, offset) = far_pointer::<T>(core, op)?;
    load(core, segment, selector)?;
    core.set(op.a, T::from_u64(offset));
    finish(core, segment)
}

/// The far pointer in the memory operand: (selector, offset).
///
/// # Errors
/// What the loads raise.
pub fn far_pointer<T: Word>(core: &mut Core, op: &Op) -> Result<(u16, u64), Leave> {
    let offset: T = load_at(core, op, 0)?;
    let selector: u16 = load_at(core, op, T::BYTES)?;
    Ok((selector, offset.to_u64()))
}

/// Loads from `delta` bytes behind the start of the memory operand.
///
/// # Errors
/// What the load raises.
pub fn load_at<T: Word>(core: &mut Core, op: &Op, delta: u64) -> Result<T, Leave> {
    let linear = linear_at(core, op, delta, T::BYTES, AccessKind::Read)?;
    core.load_linear(linear, op.seg & !FLAT)
}

/// Stores `delta` bytes behind the start of the memory operand.
///
/// # Errors
/// What the store raises.
pub fn store_at<T: Word>(core: &mut Core, op: &Op, delta: u64, value: T) -> Result<(), Leave> {
    let linear = linear_at(core, op, delta, T::BYTES, AccessKind::Write)?;
    core.store_linear(linear, op.seg & !FLAT, value)
}

/// Linear address `delta` bytes behind the start of the memory operand.
///
/// # Errors
/// Segment checks.
pub fn linear_at(core: &mut Core, op: &Op, delta: u64, bytes: u64, kind: AccessKind) -> Result<u64, Leave> {
    let drop = op.scale_drop >> 2;
    let offset = core.address(op).wrapping_add(delta) << drop >> drop;
    core.linear(op.seg, offset, bytes, kind)
}
