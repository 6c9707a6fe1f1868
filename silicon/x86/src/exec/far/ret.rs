//! RET far.

use silicon_memory::Word;
use x86_defs::segment::index;

use super::target::{check_rip, check_size, cs_8086, kind};
use crate::exec::segment::descriptor::{Descriptor, gp, is_null, mark_accessed, np, require, rpl};
use crate::exec::segment::load::{commit, drop_inner_segments, outer_ss};
use crate::exec::segment::stack::Stack;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// The code segment that a return goes to, checked: present, at the privilege level of its selector, `rip` inside.
pub(super) fn return_code(core: &mut Core, selector: u16, rip: u64) -> Result<Descriptor, Leave> {
    if is_null(selector) {
        return Err(core.gp0());
    }
    let located = require(core, selector)?;
    let d = located.descriptor;
    let level = rpl(selector);
    let fits = if d.is_conforming() { d.dpl() <= level } else { d.dpl() == level };
    if !d.is_code() || level < core.mode.cpl || !fits {
        return Err(gp(core, selector));
    }
    check_size(core, d, selector)?;
    if !d.present() {
        return Err(np(core, selector));
    }
    check_rip(core, d, rip)?;
    mark_accessed(core, located)?;
    Ok(d)
}

/// RET far. `imm`: bytes of parameters to release.
pub fn ret<T: Word>(core: &mut Core, op: &Op) -> Done {
    let bytes = T::BYTES as u8;
    let parameters = op.imm & 0xffff;
    let mut stack = Stack::current(core);
    let rip = stack.pop(core, bytes)?;
    let selector = stack.pop(core, bytes)? as u16;
    if core.is_8086() {
        let cs = cs_8086(core, selector, rip)?;
        stack.release(parameters);
        core.gpr[4] = stack.sp;
        commit(core, index::CS, cs);
        core.rip = rip;
        return Err(Leave::Branch);
    }
    let d = return_code(core, selector, rip)?;
    let level = rpl(selector);
    stack.release(parameters);
    if level == core.mode.cpl {
        core.gpr[4] = stack.sp;
        commit(core, index::CS, d.segment(selector));
        core.rip = rip;
        return Err(Leave::Branch);
    }
    let sp = stack.pop(core, bytes)?;
    let ss_selector = stack.pop(core, bytes)? as u16;
    let to = kind(core, d);
    let ss = outer_ss(core, ss_selector, level, to)?;
    core.seg[index::CS] = d.segment(selector);
    core.seg[index::SS] = ss;
    core.update_mode();
    set_outer_sp(core, sp, bytes);
    let mut outer = Stack::current(core);
    outer.release(parameters);
    core.gpr[4] = outer.sp;
    drop_inner_segments(core);
    core.rip = rip;
    Err(Leave::Branch)
}

/// Loads the stack pointer of an outer level: SP where that is all the stack segment uses.
pub(super) fn set_outer_sp(core: &mut Core, sp: u64, bytes: u8) {
    let mask = core.mode.stack_mask;
    core.gpr[4] = if bytes == 2 || mask == 0xffff { (core.gpr[4] & !0xffff) | (sp & 0xffff) } else { sp & mask };
}
