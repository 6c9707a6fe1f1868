//! RDMSR and WRMSR.

use x86_defs::vmx::ExitReason;

use super::exits::privileged;
use super::msr_values::{read, write};
use crate::op::Done;
use crate::vmx::Direction;
use crate::{Core, Leave, Op};

/// RDMSR.
pub fn rdmsr(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let number = core.gpr[1] as u32;
    if core.msr_exits(number, Direction::Read) {
        return Err(core.vmexit(op, ExitReason::Rdmsr, 0));
    }
    let value = core.read_virtual_x2apic(number).or_else(|| read(core, number));
    let Some(value) = value else { return Err(core.gp0()) };
    core.gpr[0] = value & 0xffff_ffff;
    core.gpr[2] = value >> 32;
    Err(Leave::End)
}

/// WRMSR.
pub fn wrmsr(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let number = core.gpr[1] as u32;
    if core.msr_exits(number, Direction::Write) {
        return Err(core.vmexit(op, ExitReason::Wrmsr, 0));
    }
    let value = (core.gpr[0] & 0xffff_ffff) | core.gpr[2] << 32;
    let written = core.write_virtual_x2apic(number, value).unwrap_or_else(|| write(core, number, value));
    match written {
        Some(()) => Err(Leave::End),
        None => Err(core.gp0()),
    }
}
