//! Paravirtual end of interrupt: the guest clears a flag in memory in the place of a write to the EOI register.
//!
//! Before an entry the core asks [`LocalApic::pv_eoi_candidate`] (and the I/O APIC whether it waits for that vector); if
//! it may, it sets the guest's flag and calls [`LocalApic::pv_eoi_set`]. After the exit it reads and clears the flag and
//! calls [`LocalApic::pv_eoi_clear`].
//!
//! Source: Linux, "KVM-specific MSRs", `MSR_KVM_EOI_EN`.

use super::LocalApic;
use super::eoi::Eoi;
use super::registers::VectorSet;

/// The guest's flag as found after an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PvEoiFlag {
    /// The guest has not ended the interrupt. The core clears the flag, so that the guest will write the register.
    StillSet,
    /// The guest has cleared it: the interrupt is over.
    Cleared,
}

impl LocalApic {
    /// The vector whose end the guest may signal by the flag: the only one in service, with nothing requested (which its
    /// end could let through). Level-triggered ones are excluded, as their end must reach the I/O APIC at once.
    #[must_use]
    pub fn pv_eoi_candidate(&self) -> Option<u8> {
        if self.has_request() || self.registers.count(VectorSet::InService) != 1 {
            return None;
        }
        self.registers
            .highest(VectorSet::InService)
            .filter(|vector| !self.registers.test(VectorSet::TriggerMode, *vector))
    }

    /// Whether the end of that vector may be signalled by the flag.
    #[must_use]
    pub fn pv_eoi_can_set(&self, vector: u8) -> bool {
        self.pv_eoi_candidate() == Some(vector)
    }

    /// The core has set the guest's flag.
    pub fn pv_eoi_set(&mut self) {
        self.pv_eoi_pending = true;
    }

    /// Whether the guest's flag is to be read after the exit.
    #[must_use]
    pub fn pv_eoi_pending(&self) -> bool {
        self.pv_eoi_pending
    }

    /// Settle after an exit: if the flag was pending and the guest cleared it, the interrupt ends here.
    pub fn pv_eoi_clear(&mut self, flag: PvEoiFlag) -> Option<Eoi> {
        if !std::mem::take(&mut self.pv_eoi_pending) {
            return None;
        }
        match flag {
            PvEoiFlag::StillSet => None,
            PvEoiFlag::Cleared => self.end_of_interrupt(),
        }
    }
}
