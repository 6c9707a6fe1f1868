//! Acceptance of fixed interrupts, and their way from request to service.
//!
//! Source: Intel SDM, "Interrupt Acceptance for Fixed Interrupts", "Interrupt, Task, and Processor Priority".

use super::LocalApic;
use super::error::ApicError;
use super::registers::VectorSet;
use crate::message::TriggerMode;

/// Fate of an interrupt at a local APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acceptance {
    /// Its request bit was clear and is set now.
    Accepted,
    /// Its request bit was set already: one delivery will stand for both.
    Coalesced,
    /// The local APIC is disabled, or the vector is illegal.
    Refused,
}

impl LocalApic {
    /// Put a vector into the request register.
    ///
    /// Vectors below 16 are illegal and raise an error. (KVM lets them in, where they wait for ever: their priority
    /// class is 0.)
    pub fn accept_fixed(&mut self, vector: u8, trigger: TriggerMode) -> Acceptance {
        if !self.hardware_enabled() || !self.software_enabled() {
            return Acceptance::Refused;
        }
        if vector < 16 {
            self.raise_error(ApicError::ReceiveIllegalVector);
            return Acceptance::Refused;
        }
        match trigger {
            TriggerMode::Edge => self.registers.remove(VectorSet::TriggerMode, vector),
            TriggerMode::Level => {
                self.registers.insert(VectorSet::TriggerMode, vector);
            }
        }
        if self.registers.insert(VectorSet::Request, vector) {
            self.accepted[usize::from(vector)] += 1;
            Acceptance::Accepted
        } else {
            Acceptance::Coalesced
        }
    }

    /// The vector that the processor would take now if its interrupts are open: the highest requested one whose
    /// priority class is above the processor's.
    ///
    /// Software disable does not hold back what was accepted before it; hardware disable does.
    #[must_use]
    pub fn highest_deliverable(&self) -> Option<u8> {
        if !self.hardware_enabled() {
            return None;
        }
        let vector = self.registers.highest(VectorSet::Request)?;
        (vector & 0xf0 > self.ppr() & 0xf0).then_some(vector)
    }

    /// The processor takes the vector: from request to service. Call it with what
    /// [`highest_deliverable`](Self::highest_deliverable) gave; any other vector that is not requested is left alone.
    pub fn acknowledge(&mut self, vector: u8) {
        if self.registers.test(VectorSet::Request, vector) {
            self.registers.remove(VectorSet::Request, vector);
            self.registers.insert(VectorSet::InService, vector);
        }
    }

    /// Any vector requested, deliverable or not.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.registers.highest(VectorSet::Request).is_some()
    }
}
