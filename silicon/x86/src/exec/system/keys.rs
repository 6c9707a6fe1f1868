//! RDPKRU and WRPKRU.

use x86_defs::control::cr4;

use crate::op::Done;
use crate::{Core, Leave, Op};

fn available(core: &mut Core) -> Result<(), Leave> {
    if core.cr4 & cr4::PKE == 0 {
        return Err(core.ud());
    }
    if core.gpr[1] as u32 != 0 { Err(core.gp0()) } else { Ok(()) }
}

/// RDPKRU.
pub fn rdpkru(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    available(core)?;
    core.gpr[0] = core.pkru.into();
    core.gpr[2] = 0;
    Ok(())
}

/// WRPKRU.
pub fn wrpkru(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    available(core)?;
    if core.gpr[2] as u32 != 0 {
        return Err(core.gp0());
    }
    core.set_pkru(core.gpr[0] as u32);
    Ok(())
}
