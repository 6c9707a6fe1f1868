//! Whether a destination field selects this local APIC.
//!
//! Source: Intel SDM, "Determining IPI Destination", "Logical Destination Mode in x2APIC Mode".

use super::LocalApic;
use super::registers::Register;
use crate::message::{DestinationMode, Message, Origin};

const X2APIC_BROADCAST: u32 = u32::MAX;
const XAPIC_BROADCAST: u32 = 0xff;
/// Models of the destination format register (bits 31:28).
const FLAT: u32 = 0xf;
const CLUSTER: u32 = 0;

impl LocalApic {
    /// Whether the message's destination field selects this local APIC (shorthands are not looked at).
    #[must_use]
    pub fn is_destination(&self, message: &Message) -> bool {
        if self.is_broadcast(message) {
            return true;
        }
        match message.destination_mode {
            DestinationMode::Physical => self.matches_physical(message.destination),
            DestinationMode::Logical => self.matches_logical(message.destination),
        }
    }

    /// 0xff reaches everyone in xAPIC mode, 0xffff_ffff everyone. A device's 0xff reaches everyone in x2APIC mode as
    /// well: its destination has 8 bits (KVM's default, see `KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK`).
    fn is_broadcast(&self, message: &Message) -> bool {
        match message.destination {
            X2APIC_BROADCAST => true,
            XAPIC_BROADCAST => !self.x2apic_enabled() || message.origin == Origin::Device,
            _ => false,
        }
    }

    fn matches_physical(&self, destination: u32) -> bool {
        if self.x2apic_enabled() {
            return destination == self.initial_id;
        }
        // A processor that was plugged in and has an ID above 8 bits hears its INIT before it is in x2APIC mode.
        if self.initial_id > 0xff && destination == self.initial_id {
            return true;
        }
        destination == u32::from(self.xapic_id())
    }

    fn matches_logical(&self, destination: u32) -> bool {
        let ldr = self.registers.get(Register::LDR);
        if self.x2apic_enabled() {
            return ldr >> 16 == destination >> 16 && ldr & destination & 0xffff != 0;
        }
        let logical_id = ldr >> 24;
        match self.registers.get(Register::DFR) >> 28 {
            FLAT => logical_id & destination != 0,
            CLUSTER => logical_id >> 4 == destination >> 4 && logical_id & destination & 0xf != 0,
            _ => false,
        }
    }
}
