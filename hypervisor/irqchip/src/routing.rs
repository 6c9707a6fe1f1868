//! From a global system interrupt to a pin or a message.
//!
//! Source: KVM API documentation, `KVM_SET_GSI_ROUTING`, `KVM_IRQ_LINE`.

use std::collections::BTreeMap;

use crate::msi::Msi;

/// Level of an interrupt line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// De-asserted.
    Low,
    /// Asserted.
    High,
}

/// Who drives a line. The line is asserted while any of them asserts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IrqSource {
    /// The VMM (`KVM_IRQ_LINE` and plain irqfds).
    Vmm,
    /// The 8254.
    Pit,
    /// Irqfds with a resample event.
    ResampleIrqfd,
}

impl IrqSource {
    pub(crate) const fn mask(self) -> u8 {
        match self {
            Self::Vmm => 1,
            Self::ResampleIrqfd => 2,
            Self::Pit => 4,
        }
    }
}

/// An input of the 8259 pair: 0 to 7 on the first, 8 to 15 on the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PicPin(pub(crate) u8);

impl PicPin {
    /// The pin of that number, if there is one.
    #[must_use]
    pub const fn new(pin: u8) -> Option<Self> {
        if pin < 16 { Some(Self(pin)) } else { None }
    }

    /// Its number, 0 to 15.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// One target of a global system interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// An input of the 8259 pair.
    Pic(PicPin),
    /// An input of the I/O APIC (0 to 23; others are dropped).
    Ioapic(u8),
    /// A message, sent on each rising edge.
    Msi(Msi),
}

/// The routing table: each global system interrupt has any number of targets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Routing {
    routes: BTreeMap<u32, Vec<Route>>,
}

impl Default for Routing {
    /// [`Routing::pc`].
    fn default() -> Self {
        Self::pc()
    }
}

impl Routing {
    /// A table without any route.
    #[must_use]
    pub fn empty() -> Self {
        Self { routes: BTreeMap::new() }
    }

    /// What KVM's `KVM_CREATE_IRQCHIP` sets up: GSIs 0 to 15 go to the pins of that number of both the 8259 pair and the
    /// I/O APIC, 16 to 23 to the I/O APIC.
    #[must_use]
    pub fn kvm_create_irqchip() -> Self {
        let mut routing = Self::empty();
        for gsi in 0..24u8 {
            let pic = PicPin::new(gsi).map(Route::Pic);
            routing.set(u32::from(gsi), pic.into_iter().chain([Route::Ioapic(gsi)]).collect());
        }
        routing
    }

    /// The wiring of a PC, which VMMs put in the place of KVM's default: as
    /// [`kvm_create_irqchip`](Self::kvm_create_irqchip), but on the I/O APIC, GSI 0 (the 8254) is pin 2 and GSI 2 (the
    /// cascade) is not connected.
    #[must_use]
    pub fn pc() -> Self {
        let mut routing = Self::kvm_create_irqchip();
        routing.set(0, vec![Route::Pic(PicPin(0)), Route::Ioapic(2)]);
        routing.set(2, vec![Route::Pic(PicPin(2))]);
        routing
    }

    /// Replace the targets of one GSI; none removes it.
    pub fn set(&mut self, gsi: u32, targets: Vec<Route>) {
        if targets.is_empty() {
            self.routes.remove(&gsi);
        } else {
            self.routes.insert(gsi, targets);
        }
    }

    /// The targets of one GSI.
    #[must_use]
    pub fn get(&self, gsi: u32) -> &[Route] {
        self.routes.get(&gsi).map_or(&[], Vec::as_slice)
    }
}
