//! Message signalled interrupts.
//!
//! Source: Intel SDM, "Message Signalled Interrupts".

use crate::message::{DeliveryMode, DestinationMode, Message, Origin, Shorthand, TriggerMode};

/// A write to the interrupt message window, as a device makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Msi {
    /// Address. Bits 63:40 hold bits 31:8 of the destination when the VM uses 32-bit destinations
    /// (`KVM_X2APIC_API_USE_32BIT_IDS`), and are otherwise ignored.
    pub address: u64,
    /// Data.
    pub data: u32,
}

/// Why a message signalled interrupt cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MsiError {
    /// Bits 39:32 of the address are reserved with 32-bit destinations.
    #[error("MSI address {address:#x} has reserved bits 39:32 set")]
    ReservedAddressBits {
        /// The address given.
        address: u64,
    },
}

/// Width of the destination field of message signalled interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MsiDestination {
    /// 8 bits: the address bits 19:12.
    #[default]
    Bits8,
    /// 32 bits: the address bits 19:12 and 63:40.
    Bits32,
}

impl Msi {
    /// The message that the write stands for.
    ///
    /// # Errors
    ///
    /// [`MsiError::ReservedAddressBits`] with 32-bit destinations.
    pub fn message(self, width: MsiDestination) -> Result<Message, MsiError> {
        let low = self.address as u32;
        let high = (self.address >> 32) as u32;
        let mut destination = (low >> 12) & 0xff;
        if width == MsiDestination::Bits32 {
            if high & 0xff != 0 {
                return Err(MsiError::ReservedAddressBits { address: self.address });
            }
            destination |= high;
        }
        Ok(Message {
            vector: self.data as u8,
            delivery: DeliveryMode::from_bits(self.data >> 8),
            destination,
            destination_mode: if low & (1 << 2) != 0 { DestinationMode::Logical } else { DestinationMode::Physical },
            trigger: if self.data & (1 << 15) != 0 { TriggerMode::Level } else { TriggerMode::Edge },
            // The level bit means nothing to a message of its own: KVM, too, always asserts.
            deassert: false,
            shorthand: Shorthand::None,
            redirection_hint: low & (1 << 3) != 0,
            origin: Origin::Device,
        })
    }
}
