//! The local vector table.
//!
//! Source: Intel SDM, "Local Vector Table".

use super::LocalApic;
use super::accept::Acceptance;
use super::registers::Register;
use crate::message::{DeliveryMode, Signal, TriggerMode};

/// An entry of the local vector table. There is no CMCI entry (as in KVM without `KVM_CAP_X86_MCE` CMCI support).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lvt {
    /// Timer.
    Timer,
    /// Thermal sensor.
    Thermal,
    /// Performance monitoring counters.
    Perf,
    /// LINT0: the 8259 pair is wired here.
    Lint0,
    /// LINT1: the NMI line.
    Lint1,
    /// Errors of the local APIC.
    Error,
}

pub(crate) const MASKED: u32 = 1 << 16;
/// Vector, mask. Delivery status (bit 12) is read-only and always idle here.
const PLAIN: u32 = 0xff | MASKED;
const WITH_MODE: u32 = PLAIN | 0x700;
/// Also polarity and trigger mode; remote IRR (bit 14) is read-only.
const LINT: u32 = WITH_MODE | (1 << 13) | (1 << 15);

impl Lvt {
    /// All entries.
    pub const ALL: [Self; 6] = [Self::Timer, Self::Thermal, Self::Perf, Self::Lint0, Self::Lint1, Self::Error];

    /// Its register.
    #[must_use]
    pub const fn register(self) -> Register {
        match self {
            Self::Timer => Register::LVT_TIMER,
            Self::Thermal => Register::LVT_THERMAL,
            Self::Perf => Register::LVT_PERF,
            Self::Lint0 => Register::LVT_LINT0,
            Self::Lint1 => Register::LVT_LINT1,
            Self::Error => Register::LVT_ERROR,
        }
    }

    pub(crate) fn from_register(register: Register) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.register() == register)
    }
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LvtEntry(pub u32);

impl LvtEntry {
    pub const fn masked(self) -> bool {
        self.0 & MASKED != 0
    }
    pub const fn vector(self) -> u8 {
        self.0 as u8
    }
    pub const fn delivery(self) -> DeliveryMode {
        DeliveryMode::from_bits(self.0 >> 8)
    }
    pub const fn trigger(self) -> TriggerMode {
        if self.0 & (1 << 15) != 0 { TriggerMode::Level } else { TriggerMode::Edge }
    }
}

impl LocalApic {
    pub(crate) fn lvt(&self, entry: Lvt) -> LvtEntry {
        LvtEntry(self.registers.get(entry.register()))
    }

    /// Write an entry: read-only and reserved bits are dropped, and the mask bit cannot be cleared while the local APIC
    /// is disabled by software.
    pub(crate) fn write_lvt(&mut self, entry: Lvt, value: u32) {
        let mut value = value
            & match entry {
                Lvt::Timer => PLAIN | self.timer_mode_mask(),
                Lvt::Error => PLAIN,
                Lvt::Thermal | Lvt::Perf => WITH_MODE,
                Lvt::Lint0 | Lvt::Lint1 => LINT,
            };
        if !self.software_enabled() {
            value |= MASKED;
        }
        if entry == Lvt::Timer {
            self.write_lvt_timer(value);
        } else {
            self.registers.set(entry.register(), value);
        }
    }

    /// An interrupt from a local source: what it means for the vCPU, or nothing if masked.
    ///
    /// The performance monitoring entry masks itself on delivery, as on Intel processors (and in KVM).
    pub fn local_interrupt(&mut self, entry: Lvt) -> Option<Signal> {
        let value = self.lvt(entry);
        if !self.hardware_enabled() || value.masked() {
            return None;
        }
        // The timer and error entries have no delivery mode; their bits 10:8 are always 0, which is fixed.
        let signal = match value.delivery() {
            DeliveryMode::Fixed => {
                let trigger = match entry {
                    Lvt::Lint0 | Lvt::Lint1 => value.trigger(),
                    _ => TriggerMode::Edge,
                };
                match self.accept_fixed(value.vector(), trigger) {
                    Acceptance::Refused => None,
                    Acceptance::Accepted | Acceptance::Coalesced => Some(Signal::Fixed),
                }
            }
            DeliveryMode::Nmi => Some(Signal::Nmi),
            DeliveryMode::Smi => Some(Signal::Smi),
            DeliveryMode::Init => Some(Signal::Init),
            DeliveryMode::ExtInt => Some(Signal::ExtInt),
            DeliveryMode::LowestPriority | DeliveryMode::Reserved | DeliveryMode::StartUp => None,
        };
        if entry == Lvt::Perf && signal.is_some() {
            self.registers.set(Register::LVT_PERF, value.0 | MASKED);
        }
        signal
    }

    /// Whether LINT0 passes interrupts of the 8259 pair to this vCPU. It does when the local APIC is disabled, too: the
    /// pin is then the processor's INTR.
    #[must_use]
    pub fn accepts_extint(&self) -> bool {
        let lint0 = self.lvt(Lvt::Lint0);
        !self.hardware_enabled() || (!lint0.masked() && lint0.delivery() == DeliveryMode::ExtInt)
    }
}
