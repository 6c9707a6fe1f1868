//! HLT, PAUSE, MONITOR, MWAIT.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{activity, primary};

use super::exits::privileged;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// HLT.
pub fn hlt(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    if core.vmx.controls.primary & primary::HLT_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Hlt, 0));
    }
    core.vmx.activity = activity::HLT;
    Err(Leave::End)
}

/// PAUSE. It is the last of its block, so that the time it is executed at is exact.
pub fn pause(core: &mut Core, op: &Op) -> Done {
    if core.pause_exits() { Err(core.vmexit(op, ExitReason::Pause, 0)) } else { Ok(()) }
}

/// MONITOR: without MONITOR exiting it does nothing, as MWAIT does not wait.
pub fn monitor(core: &mut Core, op: &Op) -> Done {
    if core.mode.cpl != 0 {
        return Err(core.ud());
    }
    if core.vmx.controls.primary & primary::MONITOR_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Monitor, 0));
    }
    if core.gpr[1] as u32 != 0 {
        return Err(core.gp0());
    }
    // The address is checked as a load of one byte would be.
    core.load::<u8>(op)?;
    Ok(())
}

/// MWAIT: the implementation may leave the optimised state at any time, and this one does so at once.
pub fn mwait(core: &mut Core, op: &Op) -> Done {
    if core.mode.cpl != 0 {
        return Err(core.ud());
    }
    if core.vmx.controls.primary & primary::MWAIT_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Mwait, 0));
    }
    // Extension: treat interrupts as break events even if masked.
    if core.gpr[1] as u32 & !1 != 0 { Err(core.gp0()) } else { Err(Leave::End) }
}
