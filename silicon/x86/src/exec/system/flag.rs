//! CLI, STI, CLAC, STAC.

use x86_defs::rflags;

use crate::core::mode::Operating;
use crate::exec::far::iret::iopl;
use crate::op::Done;
use crate::{Core, Leave, Op};

fn may_change_if(core: &mut Core) -> Result<(), Leave> {
    if core.mode.cpl > iopl(core) && core.mode.operating != Operating::Real { Err(core.gp0()) } else { Ok(()) }
}

/// CLI.
pub fn cli(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    may_change_if(core)?;
    core.rflags_rest &= !rflags::IF;
    Err(Leave::End)
}

/// STI.
pub fn sti(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    may_change_if(core)?;
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
    core.update_mode();
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
