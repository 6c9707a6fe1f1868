//! End of interrupt.
//!
//! Source: Intel SDM, "Signaling Interrupt Servicing Completion".

use super::LocalApic;
use super::registers::{Register, VectorSet};
use super::write::SVR_SUPPRESS_EOI_BROADCAST;
use crate::message::TriggerMode;

/// The end of an interrupt: the I/O APIC is to be told.
///
/// It is told of edge-triggered ones as well, which change nothing there but tell the 8254 that its tick arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Eoi {
    /// The vector that left service.
    pub vector: u8,
    /// Its trigger mode.
    pub trigger: TriggerMode,
}

impl LocalApic {
    /// End the interrupt in service with the highest priority. Nothing happens if there is none; nobody is to be told
    /// if it was level-triggered and the guest suppresses the broadcast.
    pub fn end_of_interrupt(&mut self) -> Option<Eoi> {
        let vector = self.registers.highest(VectorSet::InService)?;
        self.registers.remove(VectorSet::InService, vector);
        let trigger =
            if self.registers.test(VectorSet::TriggerMode, vector) { TriggerMode::Level } else { TriggerMode::Edge };
        let suppressed = self.registers.get(Register::SVR) & SVR_SUPPRESS_EOI_BROADCAST != 0;
        (trigger == TriggerMode::Edge || !suppressed).then_some(Eoi { vector, trigger })
    }
}
