//! HLT, PAUSE, MONITOR, MWAIT.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{activity, primary};

use super::exits::privileged;
use crate::mem::AccessKind;
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

/// Bytes of a monitored line, as CPUID leaf 5 says.
const LINE: u64 = 64;

/// What MONITOR has armed: a line, and what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitored {
    linear: u64,
    content: [u64; LINE as usize / 8],
}

/// What the line at `linear` holds; `None` unless it is memory that can be read right now.
fn content(core: &Core, linear: u64) -> Option<[u64; LINE as usize / 8]> {
    let frame = core.mmu.fast_frame::<u8>(linear, core.mmu.need_read)?;
    Some(std::array::from_fn(|i| frame.load((linear + 8 * i as u64) & 0xfff)))
}

/// MONITOR: the address is that of a load of one byte.
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
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, 1, AccessKind::Read)?;
    core.load_linear::<u8>(linear, op.seg)?;
    let linear = linear & !(LINE - 1);
    core.monitor = content(core, linear).map(|content| Monitored { linear, content });
    Ok(())
}

/// MWAIT: waits while the line that MONITOR has armed holds what it held, to the end of the slice at most. The wait may
/// end at any time ("MWAIT for Address Range Monitoring"), and so nothing is lost by a store that changes nothing.
pub fn mwait(core: &mut Core, op: &Op) -> Done {
    if core.mode.cpl != 0 {
        return Err(core.ud());
    }
    if core.vmx.controls.primary & primary::MWAIT_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Mwait, 0));
    }
    // Extension: treat interrupts as break events even if masked.
    if core.gpr[1] as u32 & !1 != 0 {
        return Err(core.gp0());
    }
    let armed = core.monitor.take();
    let waits = armed.is_some_and(|armed| content(core, armed.linear) == Some(armed.content));
    if waits && !core.vmx.signals.any() {
        core.idle_until(core.deadline);
    }
    Err(Leave::End)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use x86_defs::exception::vector;
    use x86_defs::segment::{index, rights};

    use super::*;
    use crate::core::test::{self, poke};
    use crate::exec::run_test::run;
    use crate::model::Model;

    const MONITOR: &[u8] = &[0x0f, 0x01, 0xc8];
    const MWAIT: &[u8] = &[0x0f, 0x01, 0xc9];

    fn core() -> Core {
        let mut core = test::core();
        core.model = Arc::new(Model::parse("+monitor").unwrap());
        core.gpr[0] = 0x3008;
        core.set_deadline(10_000);
        core
    }

    #[test]
    fn mwait_waits_while_the_line_is_as_it_was_and_only_once() {
        let mut core = core();
        assert_eq!(run(&mut core, MWAIT), Ok(()));
        assert!(core.now_quarter_cycles() < 10_000, "nothing is armed");
        assert_eq!(run(&mut core, MONITOR), Ok(()));
        poke(&core, 0x3038, 1);
        assert_eq!(run(&mut core, MWAIT), Ok(()));
        assert!(core.now_quarter_cycles() < 10_000, "the line has changed");
        assert_eq!(run(&mut core, MONITOR), Ok(()));
        poke(&core, 0x3040, 1);
        assert_eq!(run(&mut core, MWAIT), Ok(()));
        assert_eq!(core.now_quarter_cycles(), 10_000, "that was the next line");
        core.set_deadline(20_000);
        assert_eq!(run(&mut core, MWAIT), Ok(()));
        assert_eq!(core.now_quarter_cycles(), 10_000, "the wait has disarmed it");
    }

    #[test]
    fn an_interrupt_that_is_pending_ends_the_wait() {
        let mut core = core();
        assert_eq!(run(&mut core, MONITOR), Ok(()));
        core.signal(crate::vmx::Signal::External(0x40));
        assert_eq!(run(&mut core, MWAIT), Ok(()));
        assert!(core.now_quarter_cycles() < 10_000);
    }

    #[test]
    fn extensions_that_do_not_exist_fault_and_user_mode_has_neither() {
        let mut core = core();
        for (bytes, ecx) in [(MONITOR, 1), (MWAIT, 2)] {
            core.gpr[1] = ecx;
            assert_eq!(run(&mut core, bytes), Err(Leave::Fault));
            assert_eq!(core.fault.vector, vector::GP);
        }
        core.seg[index::SS].rights |= rights::DPL;
        core.update_mode();
        for bytes in [MONITOR, MWAIT] {
            assert_eq!(run(&mut core, bytes), Err(Leave::Fault));
            assert_eq!(core.fault.vector, vector::UD);
        }
    }

    #[test]
    fn the_monitored_address_must_be_readable() {
        let mut core = core();
        core.gpr[0] = 0x8000_0000_0000;
        assert_eq!(run(&mut core, MONITOR), Err(Leave::Fault));
        assert_eq!(core.fault.vector, vector::GP);
        core.gpr[0] = test::MEMORY;
        assert_eq!(run(&mut core, MONITOR), Err(Leave::Fault));
        assert_eq!(core.fault.vector, vector::PF);
    }

    #[test]
    fn both_exit_on_demand_before_they_look_at_ecx() {
        let mut core = core();
        core.vmx.controls.primary = primary::MONITOR_EXITING | primary::MWAIT_EXITING;
        core.gpr[1] = u64::MAX;
        for (bytes, reason) in [(MONITOR, ExitReason::Monitor), (MWAIT, ExitReason::Mwait)] {
            assert_eq!(run(&mut core, bytes), Err(Leave::Exit));
            assert_eq!(core.vmx.exit.reason, Some(reason));
        }
    }
}
