//! What is looked at between blocks: time, windows, shadows, traps.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{activity, pin, primary};

use super::{Outcome, Processor};
use crate::core::{Clock, Core};
use crate::op::Leave;
use crate::vmx::ExitInfo;

/// In real time the TSC is looked at this often: 8192 modelled cycles.
const REAL_TIME_SLICE: u64 = 4 * 8192;

impl Processor {
    /// Lets the budget run down to the next moment at which something may have to happen.
    pub(super) fn limit_budget(&mut self, until: u64) {
        let core = &mut self.core;
        let now = core.now_quarter_cycles();
        let mut deadline = until;
        if let Some(tsc) = core.vmx.preemption_deadline() {
            let at = match &core.clock {
                Clock::Virtual { .. } => tsc.saturating_mul(4),
                Clock::Real(_) => now + REAL_TIME_SLICE,
            };
            deadline = deadline.min(at);
        }
        core.set_deadline(deadline.max(now));
    }

    /// The budget is used up: the preemption timer, or the end of the slice.
    pub(super) fn time_is_up(&mut self, until: u64) -> Option<Outcome> {
        if let Some(tsc) = self.core.vmx.preemption_deadline()
            && self.core.timer_tsc() >= tsc
        {
            self.core.exit_at_boundary(ExitReason::PreemptionTimer);
            return Some(Outcome::Exit);
        }
        if self.core.now_quarter_cycles() >= until {
            return Some(Outcome::Paused);
        }
        self.limit_budget(until);
        None
    }

    /// Traps, windows and external events, in the order of their priority. `Err`: a VM-exit is recorded. Leaves
    /// `attention` set when the next instruction must be executed alone.
    pub(super) fn attend(&mut self) -> Result<(), Outcome> {
        let core = &mut self.core;
        let controls = core.vmx.controls;
        if core.vmx.monitor_trap_pending {
            core.vmx.monitor_trap_pending = false;
            core.exit_at_boundary(ExitReason::MonitorTrapFlag);
            return Err(Outcome::Exit);
        }
        core.sync_watch();
        core.collect_hits();
        if core.pending_debug() && core.deliver_debug_trap().is_err() {
            return Err(Outcome::Exit);
        }
        let shadow = core.events.sti_shadow || core.events.mov_ss_shadow;
        if controls.primary & primary::NMI_WINDOW_EXITING != 0 && !core.events.nmi_blocked && !shadow {
            core.exit_at_boundary(ExitReason::NmiWindow);
            return Err(Outcome::Exit);
        }
        if core.events.external_pending && controls.pin & pin::EXTERNAL_INTERRUPT_EXITING != 0 {
            core.exit_at_boundary(ExitReason::ExternalInterrupt);
            return Err(Outcome::Exit);
        }
        if controls.primary & primary::INTERRUPT_WINDOW_EXITING != 0 && core.interrupts_open() {
            core.exit_at_boundary(ExitReason::InterruptWindow);
            return Err(Outcome::Exit);
        }
        if core.vmx.activity != activity::ACTIVE {
            // Nothing above has woken it: the processor waits for the end of the slice.
            let deadline = core.deadline;
            core.idle_until(deadline);
            return Ok(());
        }
        core.events.attention =
            shadow || core.self_modify || core.debug_active() || controls.primary & primary::MONITOR_TRAP_FLAG != 0;
        if !core.events.attention {
            core.end_resume();
        }
        Ok(())
    }
}

impl Core {
    /// Sets the time at which the budget is used up.
    pub fn set_deadline(&mut self, deadline: u64) {
        let now = self.now_quarter_cycles();
        self.stall = 0;
        self.deadline = deadline;
        self.budget = deadline.wrapping_sub(now) as i64;
    }

    /// Takes modelled time: the cost of something that happened outside of the guest, in quarter cycles.
    pub fn charge(&mut self, quarter_cycles: u64) {
        self.stall += quarter_cycles;
    }

    /// Moves the clock to `quarter_cycles` if that is in the future: the processor was idle.
    pub fn idle_until(&mut self, quarter_cycles: u64) {
        let now = self.now_quarter_cycles();
        if quarter_cycles > now {
            self.stall += quarter_cycles - now;
        }
    }

    /// The TSC that timers of this processor compare with.
    fn timer_tsc(&self) -> u64 {
        match &self.clock {
            Clock::Virtual { .. } => self.now_quarter_cycles() / 4,
            Clock::Real(oscillator) => oscillator.ticks(),
        }
    }

    /// Records a VM-exit between instructions.
    fn exit_at_boundary(&mut self, reason: ExitReason) {
        let _: Leave = self.vmexit_with(ExitInfo { reason: Some(reason), ..ExitInfo::default() });
    }
}
