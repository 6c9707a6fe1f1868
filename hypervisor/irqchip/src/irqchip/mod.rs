//! The whole: what a hypervisor core talks to.

mod lines;
mod mmio;
mod msr;
mod ports;
mod pv_ipi;
mod ticks;
mod vcpu;

pub use lines::{IrqStatus, SetIrqError};
pub use pv_ipi::PvIpiError;
pub use ticks::PitReinjection;
pub use vcpu::PendingInterrupt;

use crate::ioapic::Ioapic;
use crate::lapic::{Delivered, Features, Lint0AtReset, LocalApic, Role, deliver};
use crate::message::{Message, VcpuSignal};
use crate::msi::MsiDestination;
use crate::pic::Pic;
use crate::pit::Pit;
use crate::routing::{Level, Routing};
use ticks::PitTicks;

/// Whether an address or port is one of this component's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Claim {
    /// The access was handled here.
    Claimed,
    /// The access is for someone else; nothing has changed.
    Foreign,
}

/// What an [`Irqchip`] is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IrqchipConfig {
    /// For all local APICs; a single one can be changed by [`LocalApic::set_features`].
    pub features: Features,
    /// LINT0 of the bootstrap processor.
    pub lint0_at_reset: Lint0AtReset,
    /// Width of destinations of message signalled interrupts.
    pub msi_destination: MsiDestination,
    /// Routing of global system interrupts.
    pub routing: Routing,
    /// What happens to ticks of the 8254 that the guest is late for.
    pub pit_reinjection: PitReinjection,
}

/// Local APICs, I/O APIC, 8259 pair, 8254 and routing of one VM.
///
/// A vCPU is named by its index: the order in which [`add_vcpu`](Self::add_vcpu) was called. Calls with the index of a
/// vCPU that does not exist panic, as they are the caller's mistake; guests cannot cause it.
///
/// Every call that may change what a vCPU has to do appends to an outbox, see [`take_signals`](Self::take_signals).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Irqchip {
    lapics: Vec<LocalApic>,
    ioapic: Ioapic,
    pic: Pic,
    pit: Pit,
    routing: Routing,
    features: Features,
    lint0_at_reset: Lint0AtReset,
    msi_destination: MsiDestination,
    outbox: Vec<VcpuSignal>,
    /// Output of the 8259 pair when last looked at.
    pic_output: Level,
    pit_ticks: PitTicks,
}

impl Irqchip {
    /// An interrupt controller complex without vCPUs.
    #[must_use]
    pub fn new(config: IrqchipConfig) -> Self {
        Self {
            lapics: Vec::new(),
            ioapic: Ioapic::new(config.features.eoi_broadcast),
            pic: Pic::default(),
            pit: Pit::default(),
            routing: config.routing,
            features: config.features,
            lint0_at_reset: config.lint0_at_reset,
            msi_destination: config.msi_destination,
            outbox: Vec::new(),
            pic_output: Level::Low,
            pit_ticks: PitTicks::new(config.pit_reinjection),
        }
    }

    /// Add a vCPU with an APIC ID and return its index. The first one is the bootstrap processor.
    pub fn add_vcpu(&mut self, apic_id: u32) -> usize {
        let role = if self.lapics.is_empty() { Role::Bootstrap } else { Role::Application };
        self.lapics.push(LocalApic::new(apic_id, role, self.features, self.lint0_at_reset));
        self.lapics.len() - 1
    }

    /// RESET of the machine: everything but the routing, the levels of input lines and the statistics.
    pub fn reset(&mut self) {
        for lapic in &mut self.lapics {
            lapic.reset();
        }
        self.ioapic.reset();
        self.pic.reset();
        self.pit = Pit::default();
        self.forget_ticks();
        self.pic_output = self.pic.output();
        self.outbox.clear();
    }

    /// Local APICs, in the order of vCPUs.
    #[must_use]
    pub fn lapics(&self) -> &[LocalApic] {
        &self.lapics
    }

    /// A vCPU's local APIC.
    #[must_use]
    pub fn lapic(&self, vcpu: usize) -> &LocalApic {
        &self.lapics[vcpu]
    }

    /// The same, to change: priorities, acknowledgement, INIT. For accesses that send messages use the methods here.
    #[must_use]
    pub fn lapic_mut(&mut self, vcpu: usize) -> &mut LocalApic {
        &mut self.lapics[vcpu]
    }

    /// The I/O APIC.
    #[must_use]
    pub fn ioapic(&self) -> &Ioapic {
        &self.ioapic
    }

    /// The 8259 pair.
    #[must_use]
    pub fn pic(&self) -> &Pic {
        &self.pic
    }

    /// The 8254.
    #[must_use]
    pub fn pit(&self) -> &Pit {
        &self.pit
    }

    /// The routing table.
    #[must_use]
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// The routing table, to change (`KVM_SET_GSI_ROUTING`).
    #[must_use]
    pub fn routing_mut(&mut self) -> &mut Routing {
        &mut self.routing
    }

    /// Whether [`take_signals`](Self::take_signals) has something.
    #[must_use]
    pub fn has_signals(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What vCPUs have to notice since the last call, in the order in which it happened.
    #[must_use]
    pub fn take_signals(&mut self) -> Vec<VcpuSignal> {
        std::mem::take(&mut self.outbox)
    }

    /// Deliver a message to the local APICs that it selects.
    pub fn send(&mut self, message: &Message) -> Delivered {
        deliver(message, &mut self.lapics, &mut self.outbox)
    }
}
