//! An entry of the redirection table.
//!
//! Source: 82093AA data sheet, "I/O Redirection Table Registers".

use crate::message::{DeliveryMode, DestinationMode, Message, Origin, Shorthand, TriggerMode};

const REMOTE_IRR: u64 = 1 << 14;
const LEVEL: u64 = 1 << 15;
const MASKED: u64 = 1 << 16;
/// Delivery status and remote IRR.
const READ_ONLY: u64 = (1 << 12) | REMOTE_IRR;
/// Bits that exist: vector to mask, and the destination.
const IMPLEMENTED: u64 = 0xff00_0000_0001_ffff;

/// An entry of the redirection table, as the guest reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RedirectionEntry(u64);

impl RedirectionEntry {
    pub(crate) const RESET: Self = Self(MASKED);

    /// The 64 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Vector.
    #[must_use]
    pub const fn vector(self) -> u8 {
        self.0 as u8
    }

    /// Whether the input is ignored.
    #[must_use]
    pub const fn masked(self) -> bool {
        self.0 & MASKED != 0
    }

    /// Whether a level-triggered interrupt was accepted and has not ended.
    #[must_use]
    pub const fn remote_irr(self) -> bool {
        self.0 & REMOTE_IRR != 0
    }

    /// Trigger mode.
    #[must_use]
    pub const fn trigger(self) -> TriggerMode {
        if self.0 & LEVEL != 0 { TriggerMode::Level } else { TriggerMode::Edge }
    }

    pub(crate) fn set_remote_irr(&mut self) {
        self.0 |= REMOTE_IRR;
    }

    pub(crate) fn clear_remote_irr(&mut self) {
        self.0 &= !REMOTE_IRR;
    }

    pub(crate) fn write_low(&mut self, value: u32) {
        self.write(self.0 & !0xffff_ffff | u64::from(value));
    }

    pub(crate) fn write_high(&mut self, value: u32) {
        self.write(self.0 & 0xffff_ffff | u64::from(value) << 32);
    }

    /// Read-only bits stay; but an entry made edge-triggered forgets that it waits for an end of interrupt, on which
    /// kernels rely to unlock an entry.
    fn write(&mut self, value: u64) {
        self.0 = value & IMPLEMENTED & !READ_ONLY | self.0 & READ_ONLY;
        if self.trigger() == TriggerMode::Edge {
            self.clear_remote_irr();
        }
    }

    /// The message that the entry sends.
    #[must_use]
    pub fn message(self) -> Message {
        let delivery = match DeliveryMode::from_bits((self.0 >> 8) as u32) {
            // Reserved encodings of the redirection table.
            DeliveryMode::StartUp => DeliveryMode::Reserved,
            mode => mode,
        };
        Message {
            vector: self.vector(),
            delivery,
            destination: (self.0 >> 56) as u32,
            destination_mode: if self.0 & (1 << 11) != 0 {
                DestinationMode::Logical
            } else {
                DestinationMode::Physical
            },
            trigger: self.trigger(),
            deassert: false,
            shorthand: Shorthand::None,
            redirection_hint: false,
            origin: Origin::Device,
        }
    }
}
