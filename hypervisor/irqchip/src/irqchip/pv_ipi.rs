//! Paravirtual inter-processor interrupts.
//!
//! Source: Linux, "KVM hypercalls", `KVM_HC_SEND_IPI`.

use super::Irqchip;
use crate::lapic::{Delivered, deliver_to};
use crate::message::{Message, Origin};

/// Why the hypercall fails (`-KVM_EINVAL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PvIpiError {
    /// The command has a destination mode or shorthand bit: destinations come from the bitmap.
    #[error("interrupt command {command:#x} has a destination mode or shorthand")]
    Command {
        /// The command.
        command: u64,
    },
}

/// Shorthand and destination mode bits of an interrupt command.
const DESTINATION_BITS: u64 = 0x000c_0800;

impl Irqchip {
    /// Send one interrupt to the APIC IDs `first_id + n` for each bit `n` of the bitmap; how many vCPUs took it.
    ///
    /// # Errors
    ///
    /// [`PvIpiError`].
    pub fn send_pv_ipi(&mut self, vcpu: usize, bitmap: u128, first_id: u32, command: u64) -> Result<u32, PvIpiError> {
        if command & DESTINATION_BITS != 0 {
            return Err(PvIpiError::Command { command });
        }
        let mut delivered = Delivered::default();
        for (index, lapic) in self.lapics.iter_mut().enumerate() {
            let Some(bit) = lapic.x2apic_id().checked_sub(first_id) else {
                continue;
            };
            if bit < u128::BITS && bitmap >> bit & 1 != 0 && lapic.hardware_enabled() {
                let message = Message::from_icr(command as u32, lapic.x2apic_id(), Origin::Vcpu(vcpu));
                deliver_to(&message, index, lapic, &mut self.outbox, &mut delivered);
            }
        }
        Ok(delivered.accepted)
    }
}
