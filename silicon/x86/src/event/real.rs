//! Delivery through the interrupt vector table ("Interrupt and Exception Handling" in "8086 Emulation").

use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::index;

use super::Injection;
use super::deliver::{pushed_flags, return_rip};
use crate::exec::segment::load::real_mode_segment;
use crate::exec::segment::stack::Stack;
use crate::{Core, Leave};

pub(super) fn deliver(core: &mut Core, event: &Injection) -> Result<(), Leave> {
    let entry = u64::from(event.vector) * 4;
    if entry + 3 > u64::from(core.idtr.limit) {
        return Err(core.raise_code(vector::GP, u32::from(event.vector) * 8 + 2));
    }
    let target: u32 = core.load_system(core.idtr.base.wrapping_add(entry) & 0xffff_ffff)?;
    let mut stack = Stack::current(core);
    stack.check_push(core, 6)?;
    let flags = pushed_flags(core, event);
    stack.push(core, 2, flags)?;
    stack.push(core, 2, u64::from(core.seg[index::CS].selector))?;
    stack.push(core, 2, return_rip(core, event))?;
    core.gpr[4] = stack.sp;
    core.seg[index::CS] = real_mode_segment(core, index::CS, (target >> 16) as u16);
    core.rip = u64::from(target as u16);
    let cleared = rflags::IF | rflags::TF | rflags::AC | rflags::RF;
    core.set_rflags(core.rflags() & !cleared);
    core.update_mode();
    Ok(())
}
