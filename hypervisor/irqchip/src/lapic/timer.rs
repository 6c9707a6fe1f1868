//! The timer. It does not run here: it says when it wants to be called.
//!
//! The bus clock is 1 GHz, one nanosecond a cycle, as in KVM.
//!
//! Source: Intel SDM, "APIC Timer", "TSC-Deadline Mode".

use super::LocalApic;
use super::lvt::Lvt;
use super::registers::Register;
use crate::message::Signal;
use crate::now::Now;

/// The shortest period that a periodic timer runs with; shorter ones are stretched to it (KVM's
/// `min_timer_period_us`).
pub const MIN_PERIOD_NS: u64 = 200_000;

/// Mode of the timer (LVT timer bits 18:17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerMode {
    /// Counts down once.
    OneShot,
    /// Counts down again and again.
    Periodic,
    /// Fires when the time-stamp counter reaches IA32_TSC_DEADLINE.
    TscDeadline,
    /// The reserved encoding: the timer does nothing.
    Reserved,
}

/// When the timer wants [`LocalApic::timer_expired`] called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerDeadline {
    /// When the guest's time-stamp counter reaches this value. It may lie in the past.
    Tsc(u64),
    /// When [`Now::vm_ns`] reaches this value. It may lie in the past.
    Nanoseconds(u64),
}

/// What the timer keeps beside its registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Timer {
    /// When the count reaches 0, in [`Now::vm_ns`]; none if it has stopped, or in TSC-deadline mode.
    expiry_ns: Option<u64>,
    /// IA32_TSC_DEADLINE; 0 is disarmed.
    deadline_tsc: u64,
}

const MODE_SHIFT: u32 = 17;

impl LocalApic {
    /// Current mode of the timer.
    #[must_use]
    pub fn timer_mode(&self) -> TimerMode {
        match (self.registers.get(Register::LVT_TIMER) >> MODE_SHIFT) & 3 {
            0 => TimerMode::OneShot,
            1 => TimerMode::Periodic,
            2 => TimerMode::TscDeadline,
            _ => TimerMode::Reserved,
        }
    }

    /// Mode bits that exist: without TSC-deadline, bit 18 is reserved.
    pub(crate) fn timer_mode_mask(&self) -> u32 {
        if self.features.tsc_deadline { 3 << MODE_SHIFT } else { 1 << MODE_SHIFT }
    }

    /// When to call [`timer_expired`](Self::timer_expired), masked or not. Ask after each write, INIT and reset.
    #[must_use]
    pub fn timer(&self) -> Option<TimerDeadline> {
        match self.timer_mode() {
            TimerMode::OneShot | TimerMode::Periodic => self.timer.expiry_ns.map(TimerDeadline::Nanoseconds),
            TimerMode::TscDeadline => {
                (self.timer.deadline_tsc != 0).then_some(TimerDeadline::Tsc(self.timer.deadline_tsc))
            }
            TimerMode::Reserved => None,
        }
    }

    /// Whether the timer's deadline has been reached.
    #[must_use]
    pub fn timer_due(&self, now: Now) -> bool {
        match self.timer() {
            Some(TimerDeadline::Tsc(tsc)) => now.guest_tsc >= tsc,
            Some(TimerDeadline::Nanoseconds(ns)) => now.vm_ns >= ns,
            None => false,
        }
    }

    /// The time of the deadline has come: request the interrupt unless masked, and go on if periodic. Nothing happens
    /// before the deadline.
    ///
    /// A periodic timer that is called late skips the periods that have passed: their interrupts would have coalesced
    /// anyway, and the phase stays.
    pub fn timer_expired(&mut self, now: Now) -> Option<Signal> {
        if !self.timer_due(now) {
            return None;
        }
        match self.timer_mode() {
            TimerMode::Periodic => {
                let period = self.period_ns();
                self.timer.expiry_ns = self.timer.expiry_ns.map(|expiry| {
                    // expiry' = expiry + period * (floor((now - expiry) / period) + 1) > now
                    let late = now.vm_ns.saturating_sub(expiry);
                    let periods = late.checked_div(period).unwrap_or(0) + 1;
                    expiry.saturating_add(period.saturating_mul(periods))
                });
            }
            TimerMode::OneShot => self.timer.expiry_ns = None,
            TimerMode::TscDeadline => self.timer.deadline_tsc = 0,
            TimerMode::Reserved => {}
        }
        self.local_interrupt(Lvt::Timer)
    }

    /// Nanoseconds for one step of the count: the divisor, at one nanosecond a bus cycle.
    fn step_ns(&self) -> u64 {
        let divide = self.registers.get(Register::TIMER_DIVIDE);
        let exponent = ((divide & 3) | ((divide >> 1) & 4)) + 1;
        1 << (exponent & 7)
    }

    /// Nanoseconds of the whole count.
    fn period_ns(&self) -> u64 {
        let period = u64::from(self.registers.get(Register::TIMER_INITIAL)) * self.step_ns();
        match self.timer_mode() {
            TimerMode::Periodic if period != 0 => period.max(MIN_PERIOD_NS),
            _ => period,
        }
    }

    /// The current count register.
    pub(crate) fn current_count(&self, now: Now) -> u32 {
        let (Some(expiry), period @ 1..) = (self.timer.expiry_ns, self.period_ns()) else {
            return 0;
        };
        let remaining = if self.timer_mode() == TimerMode::Periodic && now.vm_ns >= expiry {
            // The core has not called yet: the count has started again all the same.
            period - (now.vm_ns - expiry) % period
        } else {
            expiry.saturating_sub(now.vm_ns)
        };
        u32::try_from(remaining / self.step_ns()).unwrap_or(u32::MAX)
    }

    /// The initial count register starts the timer, or stops it with 0. It is ignored in TSC-deadline mode.
    pub(crate) fn write_initial_count(&mut self, value: u32, now: Now) {
        if self.timer_mode() == TimerMode::TscDeadline {
            return;
        }
        self.registers.set(Register::TIMER_INITIAL, value);
        self.timer.expiry_ns = (value != 0 && self.timer_mode() != TimerMode::Reserved)
            .then(|| now.vm_ns.saturating_add(self.period_ns()));
    }

    /// A new divisor takes effect on the count that is left: the count stays, its steps change.
    pub(crate) fn write_divide(&mut self, value: u32, now: Now) {
        let old_step = self.step_ns();
        self.registers.set(Register::TIMER_DIVIDE, value & 0xb);
        let new_step = self.step_ns();
        if let Some(expiry) = self.timer.expiry_ns {
            // left' = left * new / old; expiry' = now + left'
            let left = u128::from(expiry.saturating_sub(now.vm_ns));
            let left = left * u128::from(new_step) / u128::from(old_step);
            let left = u64::try_from(left).unwrap_or(u64::MAX).min(self.period_ns());
            self.timer.expiry_ns = Some(now.vm_ns.saturating_add(left));
        }
    }

    /// The LVT timer entry. Into and out of TSC-deadline mode the timer stops; between one-shot and periodic a running
    /// count goes on in the new mode, as in KVM.
    pub(crate) fn write_lvt_timer(&mut self, value: u32) {
        let old = self.timer_mode();
        self.registers.set(Register::LVT_TIMER, value);
        let new = self.timer_mode();
        let stays_counting = |mode| matches!(mode, TimerMode::OneShot | TimerMode::Periodic);
        if old != new && !(stays_counting(old) && stays_counting(new)) {
            self.timer = Timer::default();
            self.registers.set(Register::TIMER_INITIAL, 0);
        }
    }

    /// IA32_TSC_DEADLINE: 0 in another mode, and after the deadline has passed.
    #[must_use]
    pub fn tsc_deadline(&self) -> u64 {
        if self.hardware_enabled() && self.timer_mode() == TimerMode::TscDeadline { self.timer.deadline_tsc } else { 0 }
    }

    /// Write IA32_TSC_DEADLINE: 0 disarms; ignored in another mode.
    pub fn write_tsc_deadline(&mut self, value: u64) {
        if self.hardware_enabled() && self.timer_mode() == TimerMode::TscDeadline {
            self.timer.deadline_tsc = value;
        }
    }

    /// Whether an expiry would be delivered: the timer's entry is not masked and the local APIC accepts interrupts.
    #[must_use]
    pub fn timer_can_deliver(&self) -> bool {
        self.hardware_enabled() && self.software_enabled() && !self.lvt(Lvt::Timer).masked()
    }
}
