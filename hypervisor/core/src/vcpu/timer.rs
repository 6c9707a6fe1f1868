//! The local APIC timer: on the VMX-preemption timer while the vCPU runs, an event of the scheduler otherwise.

use irqchip::{Irqchip, Now, TimerDeadline};
use x86_defs::vmx::Field;

use super::Vcpu;
use crate::time::VmClock;

/// The preemption timer counts at TSC frequency divided by 2^5 (IA32_VMX_MISC).
const RATE: u32 = 5;

impl Vcpu {
    /// The instant at which the vCPU is, for the interrupt controllers.
    #[must_use]
    pub fn now(&self, clock: &VmClock) -> Now {
        let host = self.processor.core.host_tsc();
        Now { vm_ns: clock.vm_ns(host), guest_tsc: host.wrapping_add(self.tsc_offset) }
    }

    /// Host TSC at which the local APIC timer expires.
    #[must_use]
    pub fn timer_host_tsc(&self, irqchip: &Irqchip, clock: &VmClock) -> Option<u64> {
        match irqchip.lapic_timer(self.index)? {
            TimerDeadline::Tsc(guest) => {
                let host_now = self.processor.core.host_tsc();
                let guest_now = host_now.wrapping_add(self.tsc_offset);
                Some(host_now.saturating_add(guest.saturating_sub(guest_now)))
            }
            TimerDeadline::Nanoseconds(at) => Some(clock.host_tsc(at)),
        }
    }

    /// Before VM-entry: drives the timer by the preemption timer. A deadline that its 32 bits cannot reach (65 s at
    /// 2.1 GHz) comes nearer with each slice, and a slice is much shorter than that.
    pub(crate) fn arm_timer(&mut self, irqchip: &Irqchip, clock: &VmClock) {
        let mut value = u32::MAX;
        if let Some(deadline) = self.timer_host_tsc(irqchip, clock) {
            let now = self.processor.core.host_tsc();
            // The first change of the bit at or after the deadline: never early, and the same however often the guest
            // is entered before.
            let units = deadline.div_ceil(1 << RATE).saturating_sub(now >> RATE);
            value = u32::try_from(units).unwrap_or(u32::MAX);
        }
        self.processor.core.vmwrite(Field::PreemptionTimerValue, u64::from(value));
    }
}
