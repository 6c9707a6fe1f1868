//! CPUID, RDPID, XGETBV, XSETBV, GETSEC.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::control::osxsave;
use super::exits::privileged;
use crate::model::Feature;
use crate::op::Done;
use crate::{Core, Op};

/// CPUID.
pub fn cpuid(core: &mut Core, op: &Op) -> Done {
    Err(core.vmexit(op, ExitReason::Cpuid, 0))
}

/// RDPID. `a`: register.
pub fn rdpid(core: &mut Core, op: &Op) -> Done {
    if core.vmx.controls.secondary & secondary::ENABLE_RDTSCP == 0 {
        return Err(core.ud());
    }
    core.gpr[usize::from(op.a)] = core.msrs.tsc_aux;
    Ok(())
}

/// XGETBV: XCR0, or with ECX = 1 what of it is in use.
pub fn xgetbv(core: &mut Core, _: &Op) -> Done {
    if !osxsave(core) {
        return Err(core.ud());
    }
    let value = match core.gpr[1] as u32 {
        0 => core.xcr0,
        1 if core.model.has(Feature::Xgetbv1) => core.xcr0 & core.xinuse_with_mxcsr(),
        _ => return Err(core.gp0()),
    };
    core.gpr[0] = value & 0xffff_ffff;
    core.gpr[2] = value >> 32;
    Ok(())
}

/// XSETBV exits unconditionally; the hypervisor sets XCR0 with [`Core::set_xcr0`].
pub fn xsetbv(core: &mut Core, op: &Op) -> Done {
    if !osxsave(core) {
        return Err(core.ud());
    }
    privileged(core)?;
    Err(core.vmexit(op, ExitReason::Xsetbv, 0))
}

/// GETSEC: #UD without CR4.SMXE, else it exits.
pub fn getsec(core: &mut Core, op: &Op) -> Done {
    if core.cr4 & x86_defs::control::cr4::SMXE == 0 {
        return Err(core.ud());
    }
    Err(core.vmexit(op, ExitReason::Getsec, 0))
}
