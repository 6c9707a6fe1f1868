//! Faults that MSR accesses raise, and the error status register.
//!
//! Source: Intel SDM, "Error Handling".

use super::LocalApic;
use super::lvt::Lvt;
use super::registers::{Register, VectorSet};

/// The access raises a general protection fault with error code 0 in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("#GP(0) on access to MSR {msr:#x}")]
pub struct GeneralProtection {
    /// The MSR.
    pub msr: u32,
}

/// Outcome of an MSR access that is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MsrError {
    /// The access faults.
    #[error(transparent)]
    GeneralProtection(#[from] GeneralProtection),
    /// The MSR does not belong to the local APIC.
    #[error("MSR {msr:#x} does not belong to the local APIC")]
    Foreign {
        /// The MSR.
        msr: u32,
    },
}

/// Bits of the error status register that this local APIC sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ApicError {
    SendIllegalVector,
    ReceiveIllegalVector,
    IllegalRegisterAddress,
}

impl ApicError {
    const fn bit(self) -> u32 {
        match self {
            Self::SendIllegalVector => 1 << 5,
            Self::ReceiveIllegalVector => 1 << 6,
            Self::IllegalRegisterAddress => 1 << 7,
        }
    }
}

impl LocalApic {
    /// Record an error; the first of its kind since the last write to ESR raises the error interrupt.
    pub(crate) fn raise_error(&mut self, error: ApicError) {
        if self.pending_errors & error.bit() != 0 {
            return;
        }
        self.pending_errors |= error.bit();
        let entry = self.lvt(Lvt::Error);
        if entry.masked() {
            return;
        }
        if entry.vector() < 16 {
            // Its own vector is illegal: that is one more error, and nothing to report it with.
            self.pending_errors |= ApicError::ReceiveIllegalVector.bit();
        } else if self.registers.insert(VectorSet::Request, entry.vector()) {
            self.registers.remove(VectorSet::TriggerMode, entry.vector());
            self.accepted[usize::from(entry.vector())] += 1;
        }
    }

    /// A write to ESR shows the errors found since the write before.
    pub(crate) fn latch_errors(&mut self) {
        let errors = std::mem::take(&mut self.pending_errors);
        self.registers.set(Register::ESR, errors);
    }
}
