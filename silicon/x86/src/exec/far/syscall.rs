//! SYSCALL and SYSRET ("Fast System Calls in 64-Bit Mode").

use x86_defs::control::efer;
use x86_defs::rflags;
use x86_defs::segment::index;

use super::sysenter::{code, data};
use crate::exec::segment::descriptor::canonical;
use crate::op::Done;
use crate::{Core, Leave, Op};

fn available(core: &mut Core) -> Result<(), Leave> {
    if !core.mode.is_64() || core.efer & efer::SCE == 0 { Err(core.ud()) } else { Ok(()) }
}

/// SYSCALL.
pub fn syscall(core: &mut Core, op: &Op) -> Done {
    available(core)?;
    let flags = core.rflags();
    core.gpr[1] = core.next_rip(op);
    core.gpr[11] = flags & !rflags::RF;
    let selector = (core.msrs.star >> 32) as u16 & !3;
    core.seg[index::CS] = code(selector, 0, true);
    core.seg[index::SS] = data(selector.wrapping_add(8), 0);
    core.rip = core.msrs.lstar;
    core.events.no_step = flags & core.msrs.fmask & rflags::TF != 0;
    core.set_rflags(flags & !(core.msrs.fmask | rflags::RF));
    core.update_mode();
    Err(Leave::Branch)
}

/// SYSRET to 64-bit code.
pub fn sysret_64(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    privileged(core)?;
    let rip = core.gpr[1];
    if !canonical(core, rip) {
        return Err(core.gp0());
    }
    let selector = (core.msrs.star >> 48) as u16;
    back(core, rip, selector.wrapping_add(16), true);
    Err(Leave::Branch)
}

/// SYSRET to compatibility mode.
pub fn sysret_32(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    privileged(core)?;
    let rip = core.gpr[1] & 0xffff_ffff;
    let selector = (core.msrs.star >> 48) as u16;
    back(core, rip, selector, false);
    Err(Leave::Branch)
}

fn privileged(core: &mut Core) -> Result<(), Leave> {
    available(core)?;
    if core.mode.cpl != 0 { Err(core.gp0()) } else { Ok(()) }
}

fn back(core: &mut Core, rip: u64, cs: u16, long: bool) {
    let star = (core.msrs.star >> 48) as u16;
    core.seg[index::CS] = code(cs | 3, 3, long);
    core.seg[index::SS] = data(star.wrapping_add(8) | 3, 3);
    core.rip = rip;
    let kept = rflags::DEFINED & !(rflags::RF | rflags::VM);
    core.set_rflags(core.gpr[11] & kept);
    core.update_mode();
}
