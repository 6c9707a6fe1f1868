//! Checks of the code segment that a far transfer goes to.

use x86_defs::segment::{index, rights};

use crate::core::SegmentRegister;
use crate::core::mode::Operating;
use crate::exec::segment::descriptor::{
    Descriptor, Located, canonical, gp, is_null, mark_accessed, np, require, rpl, system_type,
};
use crate::exec::segment::load::{Target, real_mode_segment, vm86_segment};
use crate::{Core, Leave, Op};

use super::{TaskSwitch, task_switch};

/// Where a far JMP or CALL goes.
pub(super) enum Destination {
    /// The same privilege level.
    Same { cs: SegmentRegister, rip: u64 },
    /// CALL through a gate to a more privileged level.
    Inner { code: Located, gate: CallGate },
    /// CALL through a gate at the same level; the gate decides the size of the words on the stack.
    Gate { cs: SegmentRegister, gate: CallGate },
}

/// A call gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallGate {
    pub selector: u16,
    pub offset: u64,
    /// Bytes of each word on the stack.
    pub bytes: u8,
    /// Words to copy to the new stack.
    pub parameters: u8,
}

/// Which instruction goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Jump,
    Call,
}

impl Core {
    /// Whether segmentation is that of the 8086.
    pub(super) fn is_8086(&self) -> bool {
        matches!(self.mode.operating, Operating::Real | Operating::Virtual8086)
    }
}

/// What `descriptor` code is in the present mode.
pub(super) fn kind(core: &Core, descriptor: Descriptor) -> Target {
    if core.mode.is_ia32e() && descriptor.has(rights::L) { Target::Code64 } else { Target::Legacy }
}

/// #GP(selector) for code that claims to be 64-bit and 32-bit.
pub(super) fn check_size(core: &mut Core, descriptor: Descriptor, selector: u16) -> Result<(), Leave> {
    if core.mode.is_ia32e() && descriptor.has(rights::L | rights::DB) { Err(gp(core, selector)) } else { Ok(()) }
}

/// #GP(0) where `rip` is outside of the segment.
pub(super) fn check_rip(core: &mut Core, descriptor: Descriptor, rip: u64) -> Result<(), Leave> {
    let fits = match kind(core, descriptor) {
        Target::Code64 => canonical(core, rip),
        Target::Legacy => rip <= u64::from(descriptor.limit()),
    };
    if fits { Ok(()) } else { Err(core.gp0()) }
}

/// CS for a far transfer in real-address or virtual-8086 mode.
pub(super) fn cs_8086(core: &mut Core, selector: u16, rip: u64) -> Result<SegmentRegister, Leave> {
    let cs = if core.mode.operating == Operating::Real {
        real_mode_segment(core, index::CS, selector)
    } else {
        vm86_segment(selector)
    };
    if rip > u64::from(cs.limit) { Err(core.gp0()) } else { Ok(cs) }
}

/// Resolves the target of a far JMP or CALL.
pub(super) fn resolve(core: &mut Core, op: &Op, by: By, selector: u16, offset: u64) -> Result<Destination, Leave> {
    if core.is_8086() {
        let cs = cs_8086(core, selector, offset)?;
        return Ok(Destination::Same { cs, rip: offset });
    }
    if is_null(selector) {
        return Err(core.gp0());
    }
    let located = require(core, selector)?;
    let d = located.descriptor;
    let cpl = core.mode.cpl;
    let Some(kind) = d.system_type() else {
        if !d.is_code() {
            return Err(gp(core, selector));
        }
        check_size(core, d, selector)?;
        let allowed = if d.is_conforming() { d.dpl() <= cpl } else { rpl(selector) <= cpl && d.dpl() == cpl };
        if !allowed {
            return Err(gp(core, selector));
        }
        if !d.present() {
            return Err(np(core, selector));
        }
        check_rip(core, d, offset)?;
        mark_accessed(core, located)?;
        let cs = d.segment((selector & !3) | u16::from(cpl));
        return Ok(Destination::Same { cs, rip: offset });
    };
    let ia32e = core.mode.is_ia32e();
    let is_gate = kind == system_type::CALL_GATE || (kind == system_type::CALL_GATE16 && !ia32e);
    let is_task =
        !ia32e && matches!(kind, system_type::TASK_GATE | system_type::TSS16_AVAILABLE | system_type::TSS_AVAILABLE);
    if !(is_gate || is_task) || d.dpl() < cpl || d.dpl() < rpl(selector) {
        return Err(gp(core, selector));
    }
    if !d.present() {
        return Err(np(core, selector));
    }
    if is_task {
        let source = if by == By::Jump { TaskSwitch::Jump } else { TaskSwitch::Call };
        let tss = if kind == system_type::TASK_GATE { d.gate_selector() } else { selector };
        return Err(task_switch(core, source, tss, op.len));
    }
    through_gate(core, by, selector, d)
}

fn through_gate(core: &mut Core, by: By, selector: u16, d: Descriptor) -> Result<Destination, Leave> {
    let ia32e = core.mode.is_ia32e();
    let mut gate =
        CallGate { selector: d.gate_selector(), offset: d.gate_offset(), bytes: 4, parameters: d.gate_low_bits() };
    if ia32e {
        gate.offset |= crate::exec::segment::descriptor::require_high(core, selector)? << 32;
        gate.bytes = 8;
        gate.parameters = 0;
    } else if d.system_type() == Some(system_type::CALL_GATE16) {
        gate.offset &= 0xffff;
        gate.bytes = 2;
    }
    if is_null(gate.selector) {
        return Err(core.gp0());
    }
    let cpl = core.mode.cpl;
    let code = require(core, gate.selector)?;
    let d = code.descriptor;
    let size_fits = !ia32e || (d.has(rights::L) && !d.has(rights::DB));
    if !d.is_code() || d.dpl() > cpl || !size_fits {
        return Err(gp(core, gate.selector));
    }
    if by == By::Jump && !d.is_conforming() && d.dpl() != cpl {
        return Err(gp(core, gate.selector));
    }
    if !d.present() {
        return Err(np(core, gate.selector));
    }
    check_rip(core, d, gate.offset)?;
    if !d.is_conforming() && d.dpl() < cpl {
        return Ok(Destination::Inner { code, gate });
    }
    mark_accessed(core, code)?;
    let cs = d.segment((gate.selector & !3) | u16::from(cpl));
    Ok(if by == By::Jump { Destination::Same { cs, rip: gate.offset } } else { Destination::Gate { cs, gate } })
}

/// A far pointer operand: the operand of ptr16:16 and ptr16:32 forms is in `imm`, selector in bits 47:32.
pub(super) const fn immediate_pointer(op: &Op) -> (u16, u64) {
    ((op.imm >> 32) as u16, op.imm & 0xffff_ffff)
}
