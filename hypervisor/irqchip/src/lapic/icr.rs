//! The interrupt command register.
//!
//! Source: Intel SDM, "Interrupt Command Register (ICR)", "ICR Operation in x2APIC Mode".

use super::LocalApic;
use super::error::ApicError;
use super::registers::Register;
use crate::message::{DeliveryMode, DestinationMode, Message, Origin, Shorthand, TriggerMode};

/// Bit 12: reads as 0, a message is sent at once.
const DELIVERY_STATUS: u32 = 1 << 12;
/// Reserved bits of the x2APIC register: 31:20, 17:16 and 13.
pub(crate) const X2APIC_RESERVED: u64 = 0xfff3_2000;

impl Message {
    /// The message that an interrupt command register value stands for. `destination` is what the mode's width of
    /// destination field holds.
    #[must_use]
    pub fn from_icr(command: u32, destination: u32, origin: Origin) -> Self {
        let delivery = DeliveryMode::from_bits(command >> 8);
        let trigger = if command & (1 << 15) != 0 { TriggerMode::Level } else { TriggerMode::Edge };
        Self {
            vector: command as u8,
            delivery,
            destination,
            destination_mode: if command & (1 << 11) != 0 {
                DestinationMode::Logical
            } else {
                DestinationMode::Physical
            },
            trigger,
            deassert: trigger == TriggerMode::Level && command & (1 << 14) == 0,
            shorthand: match (command >> 18) & 3 {
                0 => Shorthand::None,
                1 => Shorthand::SelfOnly,
                2 => Shorthand::AllIncludingSelf,
                _ => Shorthand::AllExcludingSelf,
            },
            redirection_hint: false,
            origin,
        }
    }
}

impl LocalApic {
    /// A write to the low half in xAPIC mode, or to the whole in x2APIC mode: the message to deliver.
    pub(crate) fn send_ipi(&mut self, command: u32, high: u32, origin: Origin) -> Option<Message> {
        let command = command & !DELIVERY_STATUS;
        self.registers.set(Register::ICR, command);
        self.registers.set(Register::ICR2, high);
        let destination = if self.x2apic_enabled() { high } else { high >> 24 };
        let message = Message::from_icr(command, destination, origin);
        let has_vector = matches!(message.delivery, DeliveryMode::Fixed | DeliveryMode::LowestPriority);
        if has_vector && message.vector < 16 {
            self.raise_error(ApicError::SendIllegalVector);
            return None;
        }
        Some(message)
    }
}
