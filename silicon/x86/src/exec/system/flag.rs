//! CLI, STI, CLAC, STAC.

use x86_defs::control::cr4;
use x86_defs::rflags;

use crate::core::mode::Operating;
use crate::exec::far::iret::iopl;
use crate::exec::far::vme::has_virtual_if;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Which interrupt flag the program changes: IF, or VIF where it may not.
fn interrupt_flag(core: &mut Core) -> Result<u64, Leave> {
    if core.mode.cpl <= iopl(core) || core.mode.operating == Operating::Real {
        Ok(rflags::IF)
    } else if has_virtual_if(core) {
        Ok(rflags::VIF)
    } else {
        Err(core.gp0())
    }
}

/// CLI.
pub fn cli(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    let flag = interrupt_flag(core)?;
    // Nothing can become deliverable by it, so the block goes on.
    core.rflags_rest &= !flag;
    Ok(())
}

/// STI.
pub fn sti(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    if interrupt_flag(core)? == rflags::VIF {
        if core.rflags_rest & rflags::VIP != 0 {
            return Err(core.gp0());
        }
        core.rflags_rest |= rflags::VIF;
        return Err(Leave::End);
    }
    if core.rflags_rest & rflags::IF == 0 {
        core.rflags_rest |= rflags::IF;
        core.events.sti_shadow = true;
    }
    Err(Leave::End)
}

fn set_ac(core: &mut Core, set: u64) -> Done {
    // Without SMAP the instructions do not exist; its presence is looked at when they are decoded.
    if core.mode.cpl != 0 || core.mode.operating == Operating::Virtual8086 {
        return Err(core.ud());
    }
    core.rflags_rest = (core.rflags_rest & !rflags::AC) | set;
    // All that follows from AC at CPL 0; kernels do this around every access to user memory.
    core.mode.privilege = if set == 0 && core.cr4 & cr4::SMAP != 0 { 1 } else { 2 };
    core.mmu.set_privilege(core.mode.privilege);
    Ok(())
}

/// CLAC.
pub fn clac(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    set_ac(core, 0)
}

/// STAC.
pub fn stac(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    set_ac(core, rflags::AC)
}
