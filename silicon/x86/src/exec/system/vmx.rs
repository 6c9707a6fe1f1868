//! VMX instructions of the guest: all exit ("Instructions That Cause VM Exits Unconditionally").
//!
//! `imm`: VM-exit instruction information; `a`: exit reason.

use x86_defs::control::{cr4, efer};
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;

use super::exits::{displacement, vmexit_info};
use crate::core::mode::Operating;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// VMCALL exits in every mode and at every privilege level.
pub fn vmcall(core: &mut Core, op: &Op) -> Done {
    Err(core.vmexit(op, ExitReason::Vmcall, 0))
}

/// VMFUNC: no VMX instruction for the hypervisor, but a service of the processor to the guest.
pub fn vmfunc(core: &mut Core, op: &Op) -> Done {
    core.vm_function(op)
}

/// #UD outside of protected and 64-bit mode.
fn check_mode(core: &mut Core) -> Result<(), Leave> {
    let compatibility = core.efer & efer::LMA != 0 && !core.seg[index::CS].has(rights::L);
    if matches!(core.mode.operating, Operating::Real | Operating::Virtual8086) || compatibility {
        Err(core.ud())
    } else {
        Ok(())
    }
}

/// Every other VMX instruction but VMXON.
pub fn vmx_instruction(core: &mut Core, op: &Op) -> Done {
    check_mode(core)?;
    exit(core, op)
}

/// VMXON, which CR4.VMXE must allow.
pub fn vmxon(core: &mut Core, op: &Op) -> Done {
    if core.cr4 & cr4::VMXE == 0 {
        return Err(core.ud());
    }
    check_mode(core)?;
    exit(core, op)
}

fn exit(core: &mut Core, op: &Op) -> Done {
    let Some(reason) = ExitReason::from_number(u16::from(op.a)) else { return Err(core.ud()) };
    let information = op.imm as u32;
    let has_memory = op.imm >> 32 & 1 != 0;
    let qualification = if has_memory { displacement(core, op) } else { 0 };
    Err(vmexit_info(core, op, reason, qualification, information))
}
