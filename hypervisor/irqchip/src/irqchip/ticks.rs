//! Ticks of the 8254 on their way to the guest, and those that the guest is late for.
//!
//! Source: KVM API documentation, `KVM_REINJECT_CONTROL`.

use super::{IrqStatus, Irqchip};
use crate::now::Now;
use crate::pic::EndedPins;
use crate::routing::{IrqSource, Level, Route};

/// GSI of the 8254.
const PIT_GSI: u32 = 0;

/// What happens to a tick that comes before the guest has ended the interrupt of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PitReinjection {
    /// It is kept and injected after that, so that the guest counts all ticks (KVM's default).
    #[default]
    Reinject,
    /// It coalesces.
    Discard,
}

/// Ticks between the 8254 and the guest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PitTicks {
    policy: PitReinjection,
    /// Ticks whose interrupt has not ended, the one that is injected included.
    pending: u64,
    /// The guest has ended the interrupt of the last tick injected.
    acknowledged: bool,
}

impl PitTicks {
    pub(super) const fn new(policy: PitReinjection) -> Self {
        Self { policy, pending: 0, acknowledged: true }
    }
}

impl Irqchip {
    /// Choose what happens to late ticks (`KVM_REINJECT_CONTROL`).
    pub fn set_pit_reinjection(&mut self, policy: PitReinjection) {
        self.pit_ticks = PitTicks::new(policy);
    }

    /// When [`advance`](Self::advance) has to be called for the 8254, in [`Now::vm_ns`].
    #[must_use]
    pub fn next_timer_event(&self) -> Option<u64> {
        self.pit.next_event()
    }

    /// Run the 8254 up to now: its ticks interrupt. Calling it early is harmless.
    pub fn advance(&mut self, now: Now) {
        let ticks = self.pit.advance(now.vm_ns);
        if ticks == 0 {
            return;
        }
        match self.pit_ticks.policy {
            PitReinjection::Discard => {
                self.inject_tick();
            }
            PitReinjection::Reinject => {
                self.pit_ticks.pending = self.pit_ticks.pending.saturating_add(ticks);
                self.inject_next_tick();
            }
        }
    }

    fn inject_next_tick(&mut self) {
        if !std::mem::take(&mut self.pit_ticks.acknowledged) {
            return;
        }
        if self.inject_tick() == IrqStatus::Ignored {
            // Nobody listens, so nobody will end it; ticks do not pile up for a guest that has masked them.
            self.forget_ticks();
        }
    }

    /// Both edges at once, as KVM does: what counts is the rising one.
    fn inject_tick(&mut self) -> IrqStatus {
        let status = self.drive(PIT_GSI, IrqSource::Pit, Level::High);
        // Without a route, there is none for the falling edge either.
        let _ = self.drive(PIT_GSI, IrqSource::Pit, Level::Low);
        status.unwrap_or(IrqStatus::Ignored)
    }

    /// The guest has programmed the 8254 anew or opened its interrupt: ticks from before do not count.
    pub(super) fn forget_ticks(&mut self) {
        self.pit_ticks = PitTicks::new(self.pit_ticks.policy);
    }

    /// The guest has ended the interrupt of a tick.
    pub(super) fn pit_tick_acknowledged(&mut self) {
        self.pit_ticks.acknowledged = true;
        self.pit_ticks.pending = self.pit_ticks.pending.saturating_sub(1);
        if self.pit_ticks.pending > 0 {
            self.inject_next_tick();
        }
    }

    /// Inputs of the 8259 pair whose interrupt has ended.
    pub(super) fn pic_ended(&mut self, ended: EndedPins) {
        let is_tick = self
            .routing
            .get(PIT_GSI)
            .iter()
            .any(|route| matches!(route, Route::Pic(pin) if ended.0 & (1 << pin.number()) != 0));
        if is_tick {
            self.pit_tick_acknowledged();
        }
    }

    fn pit_entries(&self) -> impl Iterator<Item = crate::ioapic::RedirectionEntry> + '_ {
        self.routing.get(PIT_GSI).iter().filter_map(|route| match route {
            Route::Ioapic(pin) => self.ioapic.entry(*pin),
            _ => None,
        })
    }

    /// Whether the I/O APIC sends ticks with this vector.
    pub(super) fn is_pit_vector(&self, vector: u8) -> bool {
        self.pit_entries().any(|entry| entry.vector() == vector)
    }

    /// Whether the guest listens to ticks: by the I/O APIC, by the 8259 pair.
    pub(super) fn tick_listeners(&self) -> (bool, bool) {
        let pic = self.routing.get(PIT_GSI).iter().any(|route| {
            matches!(route, Route::Pic(pin) if self
                .pic
                .controller(usize::from(pin.number() >> 3))
                .is_some_and(|controller| controller.imr() & (1 << (pin.number() & 7)) == 0))
        });
        (self.pit_entries().any(|entry| !entry.masked()), pic)
    }

    /// After a write that may have opened an input: ticks start anew when the guest begins to listen.
    pub(super) fn follow_tick_listeners(&mut self, before: (bool, bool)) {
        let after = self.tick_listeners();
        if (after.0 && !before.0) || (after.1 && !before.1) {
            self.forget_ticks();
        }
    }
}
