//! Delivery in IA-32e mode ("Exception and Interrupt Handling in 64-bit Mode").

use x86_defs::exception::vector;
use x86_defs::segment::{index, rights};

use super::deliver::{pushed_flags, return_rip};
use super::protected::{check_gate, enter, idt_error};
use super::{Gate, Injection};
use crate::exec::segment::descriptor::{Descriptor, canonical, gp, is_null, mark_accessed, np, require};
use crate::exec::segment::stack::{Stack, from_tss64, null_ss};
use crate::{Core, Leave};

/// Offsets in the 64-bit TSS.
const RSP0: u64 = 4;
const IST1: u64 = 36;

pub(super) fn deliver(core: &mut Core, event: &Injection) -> Result<(), Leave> {
    let entry = u64::from(event.vector) * 16;
    if entry + 15 > u64::from(core.idtr.limit) {
        return Err(core.raise_code(vector::GP, idt_error(event.vector)));
    }
    let at = core.idtr.base.wrapping_add(entry);
    let low: u64 = core.load_system(at)?;
    let high: u64 = core.load_system(at.wrapping_add(8))?;
    let gate = check_gate(core, event, Gate::ia32e(Descriptor(low), high))?;
    if is_null(gate.selector) {
        return Err(gp(core, 0));
    }
    let code = require(core, gate.selector)?;
    let d = code.descriptor;
    if !d.is_code() || d.dpl() > core.mode.cpl || !d.has(rights::L) || d.has(rights::DB) {
        return Err(gp(core, gate.selector));
    }
    if !d.present() {
        return Err(np(core, gate.selector));
    }
    let inner = !d.is_conforming() && d.dpl() < core.mode.cpl;
    let cpl = if inner { d.dpl() } else { core.mode.cpl };
    let top = if gate.ist != 0 {
        from_tss64(core, IST1 + u64::from(gate.ist - 1) * 8)?
    } else if inner {
        from_tss64(core, RSP0 + u64::from(cpl) * 8)?
    } else {
        core.gpr[4]
    };
    if !canonical(core, gate.offset) {
        return Err(core.gp0());
    }
    let ss = if inner { null_ss(cpl) } else { core.seg[index::SS] };
    let mut stack = Stack::new_64(ss, top & !15, cpl);
    stack.check_push(core, 40 + if event.error_code.is_some() { 8 } else { 0 })?;
    mark_accessed(core, code)?;

    stack.push(core, 8, u64::from(core.seg[index::SS].selector))?;
    stack.push(core, 8, core.gpr[4])?;
    stack.push(core, 8, pushed_flags(core, event))?;
    stack.push(core, 8, u64::from(core.seg[index::CS].selector))?;
    stack.push(core, 8, return_rip(core, event))?;
    if let Some(code) = event.error_code {
        stack.push(core, 8, u64::from(code))?;
    }
    core.seg[index::SS] = stack.ss;
    core.gpr[4] = stack.sp;
    enter(core, gate, d, cpl);
    Ok(())
}
