//! Delivery through a legacy IDT, from protected mode and virtual-8086 mode ("Exception and Interrupt Handling").

use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};

use super::deliver::{pushed_flags, return_rip};
use super::{Gate, GateKind, Injection};
use crate::core::SegmentRegister;
use crate::core::mode::Operating;
use crate::exec::far::{TaskSwitch, task_switch};
use crate::exec::segment::descriptor::{Descriptor, gp, is_null, mark_accessed, np, require};
use crate::exec::segment::stack::{Stack, from_legacy_tss, inner_ss};
use crate::{Core, Leave};

/// Error code that names an entry of the IDT.
#[must_use]
pub(super) const fn idt_error(vector: u8) -> u32 {
    (vector as u32) << 3 | 2
}

/// The checks that gates of both formats share: DPL for software events, then presence.
pub(super) fn check_gate(core: &mut Core, event: &Injection, gate: Option<Gate>) -> Result<Gate, Leave> {
    let error = idt_error(event.vector);
    let Some(gate) = gate else { return Err(core.raise_code(vector::GP, error)) };
    // INT1 is not subject to the DPL check.
    let checked = matches!(event.kind, super::EventKind::SoftwareInterrupt | super::EventKind::SoftwareException);
    if checked && gate.dpl < core.mode.cpl {
        return Err(core.raise_code(vector::GP, error));
    }
    if !gate.present {
        return Err(core.raise_code(vector::NP, error));
    }
    Ok(gate)
}

pub(super) fn deliver(core: &mut Core, event: &Injection) -> Result<(), Leave> {
    let entry = u64::from(event.vector) * 8;
    if entry + 7 > u64::from(core.idtr.limit) {
        return Err(core.raise_code(vector::GP, idt_error(event.vector)));
    }
    let raw: u64 = core.load_system(core.idtr.base.wrapping_add(entry) & 0xffff_ffff)?;
    let gate = check_gate(core, event, Gate::legacy(Descriptor(raw)))?;
    if gate.kind == GateKind::Task {
        let length = if event.kind.is_software() { event.instruction_length } else { 0 };
        return Err(task_switch(core, TaskSwitch::IdtGate, gate.selector, length));
    }
    if is_null(gate.selector) {
        return Err(gp(core, 0));
    }
    let code = require(core, gate.selector)?;
    let d = code.descriptor;
    if !d.is_code() || d.dpl() > core.mode.cpl {
        return Err(gp(core, gate.selector));
    }
    if !d.present() {
        return Err(np(core, gate.selector));
    }
    let from_vm86 = core.mode.operating == Operating::Virtual8086;
    let inner = !d.is_conforming() && d.dpl() < core.mode.cpl;
    if from_vm86 && (!inner || d.dpl() != 0) {
        return Err(gp(core, gate.selector));
    }
    let cpl = if inner { d.dpl() } else { core.mode.cpl };

    let old = (core.seg[index::SS].selector, core.gpr[4]);
    let mut stack = if inner {
        let (selector, sp) = from_legacy_tss(core, cpl)?;
        Stack::new_legacy(inner_ss(core, selector, cpl)?, sp, cpl)
    } else {
        Stack::current(core)
    };
    let words = 3 + u64::from(event.error_code.is_some()) + if inner { 2 } else { 0 } + if from_vm86 { 4 } else { 0 };
    stack.check_push(core, words * u64::from(gate.bytes))?;
    if gate.offset > u64::from(d.limit()) {
        return Err(core.gp0());
    }
    mark_accessed(core, code)?;

    let bytes = gate.bytes;
    if from_vm86 {
        for index in [index::GS, index::FS, index::DS, index::ES] {
            stack.push(core, bytes, u64::from(core.seg[index].selector))?;
        }
    }
    if inner {
        stack.push(core, bytes, u64::from(old.0))?;
        stack.push(core, bytes, old.1)?;
    }
    stack.push(core, bytes, pushed_flags(core, event))?;
    stack.push(core, bytes, u64::from(core.seg[index::CS].selector))?;
    stack.push(core, bytes, return_rip(core, event))?;
    if let Some(code) = event.error_code {
        stack.push(core, bytes, u64::from(code))?;
    }

    if from_vm86 {
        for index in [index::GS, index::FS, index::DS, index::ES] {
            core.seg[index] = SegmentRegister { rights: rights::UNUSABLE, ..SegmentRegister::default() };
        }
    }
    core.seg[index::SS] = stack.ss;
    let mask = stack.mask;
    core.gpr[4] = (core.gpr[4] & !mask & 0xffff_ffff) | (stack.sp & mask);
    enter(core, gate, d, cpl);
    Ok(())
}

/// Loads CS, RIP and RFLAGS for the handler.
pub(super) fn enter(core: &mut Core, gate: Gate, code: Descriptor, cpl: u8) {
    debug_assert!(core.cr0 & cr0::PE != 0, "gates are of protected mode");
    core.seg[index::CS] = code.segment((gate.selector & !3) | u16::from(cpl));
    core.rip = gate.offset;
    let mut cleared = rflags::TF | rflags::VM | rflags::RF | rflags::NT;
    if gate.kind == GateKind::Interrupt {
        cleared |= rflags::IF;
    }
    core.set_rflags(core.rflags() & !cleared);
    core.update_mode();
}
