//! The VMX-preemption timer ("VMX-Preemption Timer").
//!
//! It counts down by one whenever bit [`RATE`] of the TSC changes, so with the TSC at `t0` at VM-entry the value at `t`
//! is `v0 - ((t >> RATE) - (t0 >> RATE))`, and it reaches zero at `((t0 >> RATE) + v0) << RATE`.

use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{exit, pin};

use super::Vmx;
use crate::Core;

/// Bit of the TSC that the timer follows, as IA32_VMX_MISC reports it.
pub const RATE: u32 = 5;

/// The timer while a guest runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timer {
    /// Host TSC at which it reaches zero.
    deadline: Option<u64>,
}

impl Timer {
    fn start(now_tsc: u64, value: u32) -> Self {
        Self { deadline: Some((now_tsc >> RATE).wrapping_add(u64::from(value)) << RATE) }
    }

    /// The value at `now_tsc`; zero once expired.
    fn value(deadline: u64, now_tsc: u64) -> u32 {
        (deadline >> RATE).saturating_sub(now_tsc >> RATE) as u32
    }
}

impl Vmx {
    /// Host TSC at which the guest that runs must exit with [`x86_defs::vmx::ExitReason::PreemptionTimer`]; `None`
    /// where the timer is not active.
    #[inline]
    #[must_use]
    pub fn preemption_deadline(&self) -> Option<u64> {
        self.preemption.deadline
    }
}

impl Core {
    /// Starts the timer at VM-entry, if it is active.
    #[inline]
    pub(super) fn start_preemption_timer(&mut self) {
        self.vmx.preemption = if self.vmx.controls.pin & pin::PREEMPTION_TIMER != 0 {
            Timer::start(self.host_tsc(), self.vmcs().get(Field::PreemptionTimerValue) as u32)
        } else {
            Timer::default()
        };
    }

    /// Stops the timer at VM-exit, and saves its value if the controls say so.
    #[inline]
    pub(super) fn stop_preemption_timer(&mut self) {
        let Some(deadline) = self.vmx.preemption.deadline.take() else { return };
        if self.vmx.controls.exit & exit::SAVE_PREEMPTION_TIMER != 0 {
            let left = Timer::value(deadline, self.host_tsc());
            self.vmcs_mut().set(Field::PreemptionTimerValue, u64::from(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_follows_changes_of_a_tsc_bit_not_elapsed_cycles() {
        let deadline = Timer::start(31, 1).deadline.unwrap();
        assert_eq!(deadline, 32, "the bit changes one cycle after entry");
        assert_eq!(Timer::start(32, 1).deadline, Some(64));
    }

    #[test]
    fn the_saved_value_restarts_to_the_same_deadline() {
        let deadline = Timer::start(1_000, 500).deadline.unwrap();
        for now in [1_000, 1_023, 1_024, 9_999, deadline - 1] {
            let left = Timer::value(deadline, now);
            assert_eq!(Timer::start(now, left).deadline, Some(deadline), "at {now}");
        }
        assert_eq!(Timer::value(deadline, deadline), 0);
        assert_eq!(Timer::value(deadline, deadline + 12_345), 0);
    }

    #[test]
    fn zero_expires_at_once() {
        assert!(Timer::start(77, 0).deadline.unwrap() <= 77);
    }
}
