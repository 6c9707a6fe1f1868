//! What is looked at between blocks: time, windows, shadows, traps.

use x86_defs::exception::vector;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{activity, exit, interruption, pin, primary};

use super::{Outcome, Processor};
use crate::core::{Clock, Core};
use crate::event::{EventKind, Injection};
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
        if let Some(tsc) = core.vmx.preemption_deadline()
            && core.vmx.activity != activity::WAIT_FOR_SIPI
        {
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
        let core = &mut self.core;
        if let Some(tsc) = core.vmx.preemption_deadline()
            && core.vmx.activity != activity::WAIT_FOR_SIPI
            && core.timer_tsc() >= tsc
        {
            // Debug traps and what is above them come first.
            if core.attend_traps().is_ok() {
                core.exit_at_boundary(ExitReason::PreemptionTimer);
            }
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
        core.sync_watch();
        core.collect_hits();
        if !core.nothing_waits() {
            core.attend_events().map_err(|_| Outcome::Exit)?;
            if core.vmx.activity != activity::ACTIVE {
                // Nothing has woken it: the processor waits for the end of the slice.
                let deadline = core.deadline;
                core.idle_until(deadline);
                return Ok(());
            }
        }
        core.events.attention = core.events.sti_shadow
            || core.events.mov_ss_shadow
            || core.self_modify
            || core.vmx.monitor_trap_pending
            || core.debug_active()
            || core.vmx.controls.primary & primary::MONITOR_TRAP_FLAG != 0;
        if !core.events.attention {
            core.end_resume();
        }
        Ok(())
    }
}

impl Core {
    /// Whether there is no event and no window to look at, as at almost every VM-entry.
    #[inline(always)]
    fn nothing_waits(&self) -> bool {
        const WINDOWS: u32 = primary::INTERRUPT_WINDOW_EXITING | primary::NMI_WINDOW_EXITING;
        let v = &self.vmx;
        v.controls.primary & WINDOWS == 0
            && v.activity == activity::ACTIVE
            && !v.monitor_trap_pending
            && v.pending_debug == 0
            && !v.signals.any()
            && v.apic.is_idle()
    }

    fn attend_events(&mut self) -> Result<(), Leave> {
        self.attend_traps()?;
        self.attend_nmis()?;
        self.attend_interrupts()
    }

    /// What the last instruction left behind, INIT and SIPI, monitor trap, debug trap.
    fn attend_traps(&mut self) -> Result<(), Leave> {
        self.finish_apic_work()?;
        if self.vmx.signals.init || self.vmx.signals.sipi.is_some() {
            self.attend_init()?;
        }
        if self.vmx.monitor_trap_pending && self.vmx.activity != activity::WAIT_FOR_SIPI {
            self.vmx.monitor_trap_pending = false;
            return Err(self.exit_at_boundary(ExitReason::MonitorTrapFlag));
        }
        self.sync_watch();
        self.collect_hits();
        if self.pending_debug() && matches!(self.vmx.activity, activity::ACTIVE | activity::HLT) {
            self.deliver_debug_trap()?;
            self.woken();
        }
        Ok(())
    }

    #[cold]
    fn attend_init(&mut self) -> Result<(), Leave> {
        let signals = &mut self.vmx.signals;
        let sipi = signals.sipi.take();
        if self.vmx.activity == activity::WAIT_FOR_SIPI {
            // INIT is blocked; any other state ignores a SIPI.
            return match sipi {
                Some(vector) => Err(self.vmexit_with(ExitInfo {
                    reason: Some(ExitReason::Sipi),
                    qualification: vector.into(),
                    ..ExitInfo::default()
                })),
                None => Ok(()),
            };
        }
        if std::mem::take(&mut signals.init) { Err(self.exit_at_boundary(ExitReason::Init)) } else { Ok(()) }
    }

    /// NMI-window exiting and NMIs.
    #[inline]
    fn attend_nmis(&mut self) -> Result<(), Leave> {
        let controls = &self.vmx.controls;
        let window = controls.primary & primary::NMI_WINDOW_EXITING != 0;
        if !(window || self.vmx.signals.nmi) || self.vmx.activity == activity::WAIT_FOR_SIPI {
            return Ok(());
        }
        let shadow = self.events.sti_shadow || self.events.mov_ss_shadow;
        if window && !self.events.nmi_blocked && !shadow {
            return Err(self.exit_at_boundary(ExitReason::NmiWindow));
        }
        if !self.vmx.signals.nmi {
            return Ok(());
        }
        let exits = controls.pin & pin::NMI_EXITING != 0;
        // With virtual NMIs the blocking is the guest's, and says nothing about NMIs of the host.
        let blocked = self.events.nmi_blocked && controls.pin & pin::VIRTUAL_NMIS == 0;
        if blocked || !exits && shadow {
            return Ok(());
        }
        self.vmx.signals.nmi = false;
        if exits {
            let nmi = ExitInfo::event(ExitReason::ExceptionOrNmi, interruption::TYPE_NMI, vector::NMI, None);
            return Err(self.vmexit_with(nmi));
        }
        self.inject(Injection { vector: vector::NMI, kind: EventKind::Nmi, error_code: None, instruction_length: 0 })?;
        self.woken();
        Ok(())
    }

    /// External interrupts, interrupt-window exiting, virtual interrupts.
    #[inline]
    fn attend_interrupts(&mut self) -> Result<(), Leave> {
        if !matches!(self.vmx.activity, activity::ACTIVE | activity::HLT) {
            return Ok(());
        }
        while let Some(vector) = self.vmx.signals.highest() {
            let controls = &self.vmx.controls;
            if controls.pin & pin::EXTERNAL_INTERRUPT_EXITING == 0 {
                if self.interrupts_open() {
                    self.vmx.signals.acknowledge(vector);
                    self.inject(Injection {
                        vector,
                        kind: EventKind::External,
                        error_code: None,
                        instruction_length: 0,
                    })?;
                    self.woken();
                }
                break;
            }
            if controls.exit & exit::ACKNOWLEDGE_INTERRUPT == 0 {
                return Err(self.exit_at_boundary(ExitReason::ExternalInterrupt));
            }
            self.vmx.signals.acknowledge(vector);
            if !self.is_notification(vector) {
                let interrupt =
                    ExitInfo::event(ExitReason::ExternalInterrupt, interruption::TYPE_EXTERNAL, vector, None);
                return Err(self.vmexit_with(interrupt));
            }
            self.process_posted_interrupts();
        }
        if self.vmx.controls.primary & primary::INTERRUPT_WINDOW_EXITING != 0 && self.interrupts_open() {
            return Err(self.exit_at_boundary(ExitReason::InterruptWindow));
        }
        if self.virtual_interrupt_deliverable() {
            self.deliver_virtual_interrupt()?;
            self.woken();
        }
        Ok(())
    }

    /// An event has been delivered before an instruction: the guest is active, and a monitor trap follows it.
    pub(super) fn woken(&mut self) {
        self.vmx.activity = activity::ACTIVE;
        self.vmx.monitor_trap_pending |= self.vmx.controls.primary & primary::MONITOR_TRAP_FLAG != 0;
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
    fn exit_at_boundary(&mut self, reason: ExitReason) -> Leave {
        self.vmexit_with(ExitInfo { reason: Some(reason), ..ExitInfo::default() })
    }
}
