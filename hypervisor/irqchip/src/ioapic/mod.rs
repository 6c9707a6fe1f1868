//! The I/O APIC: 24 inputs, each with an entry that says what message it sends.
//!
//! Source: 82093AA I/O Advanced Programmable Interrupt Controller data sheet; version and details as KVM's.

mod entry;
mod window;

pub use entry::RedirectionEntry;

use crate::lapic::{Delivered, Eoi, EoiBroadcast};
use crate::message::{Message, TriggerMode};
use crate::routing::{IrqSource, Level};

/// Inputs.
pub const PINS: u8 = 24;
/// Guest-physical address of the registers.
pub const DEFAULT_ADDRESS: u64 = 0xfec0_0000;
/// Bytes that the registers take in the address space.
pub const MMIO_LENGTH: u64 = 0x100;

/// Where the I/O APIC sends its messages; it learns who accepted them.
pub type Bus<'a> = dyn FnMut(&Message) -> Delivered + 'a;

/// What a change of an input led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PinOutcome {
    /// A message was sent.
    Sent(Delivered),
    /// The input was asserted, but the entry is masked, or waits for the end of its interrupt.
    Held,
    /// The input was asserted already, and its entry wants an edge.
    NoEdge,
    /// The input was de-asserted.
    Lowered,
    /// There is no such input.
    NoSuchPin,
}

/// An I/O APIC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ioapic {
    address: u64,
    /// Whether it has an EOI register.
    eoi_broadcast: EoiBroadcast,
    /// Bits 27:24 of the ID register.
    id: u8,
    /// The register that the window shows.
    select: u8,
    entries: [RedirectionEntry; PINS as usize],
    /// Inputs that are asserted.
    asserted: u32,
    /// Who asserts each input, see [`IrqSource`].
    sources: [u8; PINS as usize],
}

impl Default for Ioapic {
    fn default() -> Self {
        Self {
            address: DEFAULT_ADDRESS,
            eoi_broadcast: EoiBroadcast::Always,
            id: 0,
            select: 0,
            entries: [RedirectionEntry::RESET; PINS as usize],
            asserted: 0,
            sources: [0; PINS as usize],
        }
    }
}

impl Ioapic {
    /// After power-up, with an EOI register where local APICs can suppress the broadcast of ends of interrupts.
    #[must_use]
    pub fn new(eoi_broadcast: EoiBroadcast) -> Self {
        Self { eoi_broadcast, ..Self::default() }
    }

    /// After RESET. Inputs keep their levels: they belong to the devices.
    pub fn reset(&mut self) {
        let (sources, asserted) = (self.sources, self.asserted);
        *self = Self { sources, asserted, ..Self::new(self.eoi_broadcast) };
    }

    /// Guest-physical address of the registers.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The entry of an input.
    #[must_use]
    pub fn entry(&self, pin: u8) -> Option<RedirectionEntry> {
        self.entries.get(usize::from(pin)).copied()
    }

    /// Whether the input is asserted.
    #[must_use]
    pub fn is_asserted(&self, pin: u8) -> bool {
        pin < PINS && self.asserted & (1 << pin) != 0
    }

    /// A source drives an input to a level.
    pub fn set_pin(&mut self, pin: u8, source: IrqSource, level: Level, bus: &mut Bus<'_>) -> PinOutcome {
        let Some(sources) = self.sources.get_mut(usize::from(pin)) else {
            return PinOutcome::NoSuchPin;
        };
        match level {
            Level::High => *sources |= source.mask(),
            Level::Low => *sources &= !source.mask(),
        }
        let was_asserted = self.asserted & (1 << pin) != 0;
        if *sources == 0 {
            self.asserted &= !(1 << pin);
            return PinOutcome::Lowered;
        }
        self.asserted |= 1 << pin;
        let edge = self.entries[usize::from(pin)].trigger() == TriggerMode::Edge;
        if edge && was_asserted {
            return PinOutcome::NoEdge;
        }
        self.service(pin, bus).map_or(PinOutcome::Held, PinOutcome::Sent)
    }

    /// Send the message of an asserted input, unless masked or still waiting for the end of the one before.
    fn service(&mut self, pin: u8, bus: &mut Bus<'_>) -> Option<Delivered> {
        let entry = &mut self.entries[usize::from(pin)];
        if entry.masked() || entry.remote_irr() {
            return None;
        }
        let delivered = bus(&entry.message());
        // A message that nobody took is not waited for: no end of interrupt would ever come.
        if entry.trigger() == TriggerMode::Level && delivered.reached_any() {
            entry.set_remote_irr();
        }
        Some(delivered)
    }

    /// A local APIC has ended an interrupt: level-triggered entries with its vector are open again, and send anew if
    /// their input is still asserted.
    pub fn end_of_interrupt(&mut self, eoi: Eoi, bus: &mut Bus<'_>) {
        if eoi.trigger != TriggerMode::Level {
            return;
        }
        for pin in 0..PINS {
            let entry = &mut self.entries[usize::from(pin)];
            if entry.vector() == eoi.vector && entry.trigger() == TriggerMode::Level {
                entry.clear_remote_irr();
                self.send_if_asserted(pin, bus);
            }
        }
    }

    fn send_if_asserted(&mut self, pin: u8, bus: &mut Bus<'_>) {
        let level = self.entries[usize::from(pin)].trigger() == TriggerMode::Level;
        if level && self.asserted & (1 << pin) != 0 {
            self.service(pin, bus);
        }
    }

    /// Whether any level-triggered entry waits for the end of this vector, so that its end must not be delayed.
    #[must_use]
    pub fn handles_vector(&self, vector: u8) -> bool {
        self.entries.iter().any(|entry| entry.vector() == vector && entry.trigger() == TriggerMode::Level)
    }
}
