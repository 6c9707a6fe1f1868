//! SYSENTER and SYSEXIT ("Performing Fast Calls to System Procedures with the SYSENTER and SYSEXIT Instructions").

use x86_defs::control::{cr0, efer};
use x86_defs::rflags;
use x86_defs::segment::{index, rights};

use crate::core::SegmentRegister;
use crate::exec::segment::descriptor::canonical;
use crate::op::Done;
use crate::{Core, Leave, Op};

const FLAT_RIGHTS: u32 = rights::P | rights::S | rights::ACCESSED | rights::WRITABLE | rights::G;

/// The flat code segment of the fast system calls.
pub(super) fn code(selector: u16, dpl: u8, long: bool) -> SegmentRegister {
    let size = if long { rights::L } else { rights::DB };
    SegmentRegister {
        selector,
        base: 0,
        limit: u32::MAX,
        rights: FLAT_RIGHTS | rights::CODE | size | u32::from(dpl) << rights::DPL_SHIFT,
    }
}

/// The flat stack segment of the fast system calls.
pub(super) fn data(selector: u16, dpl: u8) -> SegmentRegister {
    SegmentRegister {
        selector,
        base: 0,
        limit: u32::MAX,
        rights: FLAT_RIGHTS | rights::DB | u32::from(dpl) << rights::DPL_SHIFT,
    }
}

/// SYSENTER.
pub fn sysenter(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    if core.cr0 & cr0::PE == 0 || core.msrs.sysenter_cs & 0xfffc == 0 {
        return Err(core.gp0());
    }
    let long = core.efer & efer::LMA != 0;
    let selector = core.msrs.sysenter_cs as u16 & !3;
    core.seg[index::CS] = code(selector, 0, long);
    core.seg[index::SS] = data(selector.wrapping_add(8), 0);
    let mask = if long { u64::MAX } else { 0xffff_ffff };
    core.gpr[4] = core.msrs.sysenter_esp & mask;
    core.rip = core.msrs.sysenter_eip & mask;
    core.set_rflags(core.rflags() & !(rflags::VM | rflags::IF | rflags::RF));
    core.update_mode();
    Err(Leave::Branch)
}

/// SYSEXIT to 32-bit code.
pub fn sysexit_32(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    privileged(core)?;
    let (rip, sp) = (core.gpr[2] & 0xffff_ffff, core.gpr[1] & 0xffff_ffff);
    leave(core, rip, sp, 16, false)
}

/// SYSEXIT to 64-bit code.
pub fn sysexit_64(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    privileged(core)?;
    let (rip, sp) = (core.gpr[2], core.gpr[1]);
    if !canonical(core, rip) || !canonical(core, sp) {
        return Err(core.gp0());
    }
    leave(core, rip, sp, 32, true)
}

fn privileged(core: &mut Core) -> Result<(), Leave> {
    let allowed = core.cr0 & cr0::PE != 0 && core.msrs.sysenter_cs & 0xfffc != 0 && core.mode.cpl == 0;
    if allowed { Ok(()) } else { Err(core.gp0()) }
}

fn leave(core: &mut Core, rip: u64, sp: u64, distance: u16, long: bool) -> Done {
    let selector = (core.msrs.sysenter_cs as u16).wrapping_add(distance);
    core.seg[index::CS] = code(selector | 3, 3, long);
    core.seg[index::SS] = data(selector.wrapping_add(8) | 3, 3);
    core.rip = rip;
    core.gpr[4] = sp;
    core.update_mode();
    Err(Leave::Branch)
}
