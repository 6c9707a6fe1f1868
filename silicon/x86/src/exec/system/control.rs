//! MOV to and from control registers, CLTS, LMSW, SMSW.

use silicon_memory::Word;
use x86_defs::control::{cr0, cr3, cr4};
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::primary;

use super::control_checks::{check_cr0, check_cr3, check_cr4, commit_cr0, commit_cr4, reload_pdptes};
use super::exits::privileged;
use crate::exec::segment::tables::user_mode_prevented;
use crate::mem::AccessKind;
use crate::op::{Done, FLAT};
use crate::vmx::ExitInfo;
use crate::{Core, Leave, Op};

/// Access types of the exit qualification ("Exit Qualification for Control-Register Accesses").
const FROM_CR: u64 = 1 << 4;
const CLTS: u64 = 2 << 4;
const LMSW: u64 = 3 << 4;
const LMSW_MEMORY: u64 = 1 << 6;

fn exit(core: &mut Core, op: &Op, number: u64, access: u64, register: u8) -> Leave {
    let qualification = number | access | u64::from(register) << 8;
    core.vmexit(op, ExitReason::ControlRegisterAccess, qualification)
}

fn source(core: &Core, op: &Op) -> u64 {
    let value = core.gpr[usize::from(op.b)];
    if core.mode.is_64() { value } else { value & 0xffff_ffff }
}

fn destination(core: &mut Core, op: &Op, value: u64) {
    core.gpr[usize::from(op.a)] = if core.mode.is_64() { value } else { value & 0xffff_ffff };
}

/// MOV CR0, r. `b`: register.
pub fn to_cr0(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = source(core, op);
    if core.cr0_write_exits(value) {
        return Err(exit(core, op, 0, 0, op.b));
    }
    write_cr0(core, value)
}

fn write_cr0(core: &mut Core, value: u64) -> Done {
    let new = core.cr0_merged(value);
    let new = check_cr0(core, new)?;
    reload_pdptes(core, new, core.cr4)?;
    commit_cr0(core, new);
    Err(Leave::End)
}

/// MOV r, CR0. `a`: register.
pub fn from_cr0(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = core.cr0_visible();
    destination(core, op, value);
    Ok(())
}

/// MOV r, CR2. `a`: register.
pub fn from_cr2(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = core.cr2;
    destination(core, op, value);
    Ok(())
}

/// MOV CR2, r. `b`: register.
pub fn to_cr2(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    core.cr2 = source(core, op);
    Ok(())
}

/// MOV r, CR3. `a`: register.
pub fn from_cr3(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    if core.vmx.controls.primary & primary::CR3_STORE_EXITING != 0 {
        return Err(exit(core, op, 3, FROM_CR, op.a));
    }
    let value = core.cr3;
    destination(core, op, value);
    Ok(())
}

/// MOV CR3, r. `b`: register.
pub fn to_cr3(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = source(core, op);
    if core.cr3_load_exits(value) {
        return Err(exit(core, op, 3, 0, op.b));
    }
    load_cr3(core, value)?;
    Err(Leave::End)
}

/// Loads CR3 as MOV does, with its checks and its effect on the TLB.
///
/// # Errors
/// #GP(0).
pub(crate) fn load_cr3(core: &mut Core, value: u64) -> Result<(), Leave> {
    let keep = check_cr3(core, value)?;
    if core.pae_paging(core.cr0, core.cr4) {
        core.load_pdptes(value)?;
    }
    core.cr3 = value & !cr3::KEEP_TRANSLATIONS;
    core.tlb_cr3_written(keep);
    core.mmu.leave_page();
    Ok(())
}

/// MOV r, CR4. `a`: register.
pub fn from_cr4(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = core.cr4_visible();
    destination(core, op, value);
    Ok(())
}

/// MOV CR4, r. `b`: register.
pub fn to_cr4(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = source(core, op);
    if core.cr4_write_exits(value) {
        return Err(exit(core, op, 4, 0, op.b));
    }
    let new = core.cr4_merged(value);
    check_cr4(core, new)?;
    reload_pdptes(core, core.cr0, new)?;
    commit_cr4(core, new);
    Err(Leave::End)
}

/// MOV r, CR8. `a`: register.
pub fn from_cr8(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let controls = core.vmx.controls.primary;
    if controls & primary::CR8_STORE_EXITING != 0 {
        return Err(exit(core, op, 8, FROM_CR, op.a));
    }
    if core.has_tpr_shadow() {
        let value = core.shadow_cr8();
        destination(core, op, value);
        return Ok(());
    }
    // Neither exit nor TPR shadow: the register of a local APIC that the modelled processor does not have.
    destination(core, op, 0);
    Ok(())
}

/// MOV CR8, r. `b`: register.
pub fn to_cr8(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = source(core, op);
    let controls = core.vmx.controls.primary;
    if controls & primary::CR8_LOAD_EXITING != 0 {
        return Err(exit(core, op, 8, 0, op.b));
    }
    if value & !0xf != 0 {
        return Err(core.gp0());
    }
    if core.has_tpr_shadow() {
        core.write_shadow_cr8(value);
    }
    Err(Leave::End)
}

/// CLTS.
pub fn clts(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    if core.clts_exits() {
        return Err(core.vmexit(op, ExitReason::ControlRegisterAccess, CLTS));
    }
    if core.vmx.controls.cr0_mask & cr0::TS == 0 {
        let new = core.cr0 & !cr0::TS;
        commit_cr0(core, new);
    }
    Err(Leave::End)
}

/// LMSW r16. `b`: register.
pub fn lmsw_register(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let value = core.get::<u16>(op.b);
    if core.lmsw_exits(value) {
        return Err(core.vmexit(op, ExitReason::ControlRegisterAccess, LMSW | u64::from(value) << 16));
    }
    lmsw(core, value)
}

/// LMSW m16.
pub fn lmsw_memory(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, 2, AccessKind::Read)?;
    let value: u16 = core.load_linear(linear, op.seg & !FLAT)?;
    if core.lmsw_exits(value) {
        return Err(core.vmexit_with(ExitInfo {
            reason: Some(ExitReason::ControlRegisterAccess),
            qualification: LMSW | LMSW_MEMORY | u64::from(value) << 16,
            guest_linear: linear,
            instruction_length: u32::from(op.len),
            ..ExitInfo::default()
        }));
    }
    lmsw(core, value)
}

fn lmsw(core: &mut Core, value: u16) -> Done {
    let writable = cr0::PE | cr0::MP | cr0::EM | cr0::TS;
    // PE can be set, not cleared.
    let value = (core.cr0 & !writable) | (u64::from(value) & writable) | (core.cr0 & cr0::PE);
    write_cr0(core, value)
}

/// SMSW r. `a`: register.
pub fn smsw_register<T: Word>(core: &mut Core, op: &Op) -> Done {
    user_mode_prevented(core)?;
    let value = core.cr0_visible();
    core.set(op.a, T::from_u64(value));
    Ok(())
}

/// SMSW m16.
pub fn smsw_memory(core: &mut Core, op: &Op) -> Done {
    user_mode_prevented(core)?;
    let value = core.cr0_visible() as u16;
    core.store(op, value)
}

/// Whether CR4 lets instructions of x87 and SSE state be used is looked at by their families; XGETBV asks here.
#[must_use]
pub fn osxsave(core: &Core) -> bool {
    core.cr4 & cr4::OSXSAVE != 0
}
