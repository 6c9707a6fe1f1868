//! What a vCPU asks before it enters the guest, and timers.

use super::Irqchip;
use crate::lapic::{Effect, Lvt, PvEoiFlag, TimerDeadline, deliver};
use crate::message::{Signal, VcpuSignal};
use crate::now::Now;
use crate::routing::Level;

/// An interrupt that a vCPU can take when its interrupts are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PendingInterrupt {
    /// From the 8259 pair: the vector is known on acknowledgement.
    ExtInt,
    /// From the local APIC.
    Vector(u8),
}

impl Irqchip {
    /// What the vCPU would take now. The 8259 pair goes first, as in KVM.
    #[must_use]
    pub fn pending_interrupt(&self, vcpu: usize) -> Option<PendingInterrupt> {
        let lapic = &self.lapics[vcpu];
        if self.pic.output() == Level::High && lapic.accepts_extint() {
            return Some(PendingInterrupt::ExtInt);
        }
        lapic.highest_deliverable().map(PendingInterrupt::Vector)
    }

    /// The vCPU takes its interrupt: the vector to inject.
    pub fn acknowledge_interrupt(&mut self, vcpu: usize) -> Option<u8> {
        match self.pending_interrupt(vcpu)? {
            PendingInterrupt::ExtInt => {
                let (vector, ended) = self.pic.acknowledge();
                self.pic_ended(ended);
                self.follow_pic_output();
                Some(vector)
            }
            PendingInterrupt::Vector(vector) => {
                self.lapics[vcpu].acknowledge(vector);
                Some(vector)
            }
        }
    }

    /// A local source of the vCPU (LINT1, performance monitoring, thermal) interrupts.
    pub fn local_interrupt(&mut self, vcpu: usize, entry: Lvt) {
        if let Some(signal) = self.lapics[vcpu].local_interrupt(entry) {
            self.outbox.push(VcpuSignal { vcpu, signal });
        }
    }

    /// INIT arrived at the vCPU and is taken: reset its local APIC as the manual says.
    pub fn init_lapic(&mut self, vcpu: usize) {
        self.lapics[vcpu].init();
    }

    /// When the vCPU's local APIC timer wants [`lapic_timer_expired`](Self::lapic_timer_expired).
    #[must_use]
    pub fn lapic_timer(&self, vcpu: usize) -> Option<TimerDeadline> {
        self.lapics[vcpu].timer()
    }

    /// The vCPU's timer has reached its deadline (before it, nothing happens).
    pub fn lapic_timer_expired(&mut self, vcpu: usize, now: Now) {
        if let Some(signal) = self.lapics[vcpu].timer_expired(now) {
            self.outbox.push(VcpuSignal { vcpu, signal });
        }
    }

    /// Whether the end of the vCPU's interrupt may be signalled by the paravirtual flag; if so, set the guest's flag and
    /// call [`LocalApic::pv_eoi_set`](crate::LocalApic::pv_eoi_set).
    #[must_use]
    pub fn pv_eoi_can_set(&self, vcpu: usize) -> bool {
        self.lapics[vcpu]
            .pv_eoi_candidate()
            .is_some_and(|vector| !self.ioapic.handles_vector(vector) && !self.is_pit_vector(vector))
    }

    /// Settle the paravirtual end of interrupt after an exit, with the guest's flag as found.
    pub fn pv_eoi_clear(&mut self, vcpu: usize, flag: PvEoiFlag) {
        if let Some(eoi) = self.lapics[vcpu].pv_eoi_clear(flag) {
            self.apply(Effect::Eoi(eoi));
        }
    }

    /// Carry out what a register write asked for.
    pub(super) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Ipi(message) => {
                self.send(&message);
            }
            Effect::Eoi(eoi) => {
                let Self { ioapic, lapics, outbox, .. } = self;
                ioapic.end_of_interrupt(eoi, &mut |message| deliver(message, lapics, outbox));
                if self.is_pit_vector(eoi.vector) {
                    self.pit_tick_acknowledged();
                }
            }
        }
    }

    /// The output of the 8259 pair is wired to LINT0 of every local APIC: pass a rising edge on.
    pub(super) fn follow_pic_output(&mut self) {
        let output = self.pic.output();
        let rises = output == Level::High && self.pic_output == Level::Low;
        self.pic_output = output;
        if !rises {
            return;
        }
        for (vcpu, lapic) in self.lapics.iter_mut().enumerate() {
            let signal = if lapic.accepts_extint() { Some(Signal::ExtInt) } else { lapic.local_interrupt(Lvt::Lint0) };
            if let Some(signal) = signal {
                self.outbox.push(VcpuSignal { vcpu, signal });
            }
        }
    }
}
