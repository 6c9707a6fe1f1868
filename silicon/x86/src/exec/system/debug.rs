//! MOV to and from debug registers.

use x86_defs::control::cr4;
use x86_defs::exception::vector;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::primary;

use super::exits::privileged;
use crate::core::Fault;
use crate::event::{dr6, dr7};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Direction of the exit qualification ("Exit Qualification for MOV DR").
const FROM_DR: u64 = 1 << 4;

/// The register that the instruction means: DR4 and DR5 are DR6 and DR7 without debug extensions.
fn resolve(core: &mut Core, op: &Op, number: u8, qualification: u64) -> Result<usize, Leave> {
    let aliased = matches!(number, 4 | 5);
    if number > 7 {
        return Err(core.ud());
    }
    // The exit comes before the checks of CR4.DE and privilege ("Relative Priority of Faults and VM Exits").
    if core.vmx.controls.primary & primary::MOV_DR_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::MovDr, qualification));
    }
    if aliased && core.cr4 & cr4::DE != 0 {
        return Err(core.ud());
    }
    privileged(core)?;
    if core.dr[7] & dr7::GD != 0 {
        core.fault = Fault { vector: vector::DB, error_code: None, address: dr6::BD };
        return Err(Leave::Fault);
    }
    Ok(usize::from(if aliased { number + 2 } else { number }))
}

/// MOV r, DR. `a`: register, `b`: debug register.
pub fn from_dr(core: &mut Core, op: &Op) -> Done {
    let number = resolve(core, op, op.b, u64::from(op.b) | FROM_DR | u64::from(op.a) << 8)?;
    let value = match number {
        6 => (core.dr[6] & !(1 << 12)) | dr6::FIXED,
        7 => core.dr[7] | dr7::FIXED,
        n => core.dr[n],
    };
    core.gpr[usize::from(op.a)] = if core.mode.is_64() { value } else { value & 0xffff_ffff };
    Ok(())
}

/// MOV DR, r. `a`: debug register, `b`: register.
pub fn to_dr(core: &mut Core, op: &Op) -> Done {
    let number = resolve(core, op, op.a, u64::from(op.a) | u64::from(op.b) << 8)?;
    let long = core.mode.is_64();
    let value = core.gpr[usize::from(op.b)];
    let value = if long { value } else { value & 0xffff_ffff };
    if number >= 6 && value >> 32 != 0 {
        return Err(core.gp0());
    }
    core.dr[number] = match number {
        6 => (value & 0xe00f) | dr6::FIXED,
        7 => (value & 0xffff_2bff) | dr7::FIXED,
        _ => value,
    };
    Err(Leave::End)
}
