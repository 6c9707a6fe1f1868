//! VM-exits of accesses to guest-physical addresses ("Exit Qualification for EPT Violations").

use x86_defs::vmx::ExitReason;

use super::entry::bit;
use super::ept::{EptFailure, right};
use crate::Leave;
use crate::core::Core;
use crate::vmx::ExitInfo;

/// Bits of the exit qualification.
mod qualification {
    /// The guest linear-address field is valid.
    pub const LINEAR_VALID: u64 = 1 << 7;
    /// The access was to the translation of the linear address, not to a paging-structure entry.
    pub const TRANSLATION: u64 = 1 << 8;
    // Advanced information: the page that the guest's tables give.
    pub const USER_PAGE: u64 = 1 << 9;
    pub const WRITABLE_PAGE: u64 = 1 << 10;
    pub const NO_EXECUTE_PAGE: u64 = 1 << 11;
}

/// The access that failed.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    linear: Option<u64>,
    guest: u64,
    /// The rights that it needed.
    need: u8,
    /// Rights in the guest's tables, where they had been walked to their end.
    page: Option<u16>,
}

impl Reached {
    /// An access to a paging-structure entry of the guest.
    pub fn table(linear: u64, guest: u64, need: u8) -> Self {
        Self { linear: Some(linear), guest, need, page: None }
    }

    /// The access itself.
    pub fn page(linear: u64, guest: u64, need: u8, bits: u16) -> Self {
        Self { linear: Some(linear), guest, need, page: Some(bits) }
    }

    /// A load of the PDPTE registers, which has no linear address.
    pub fn pdptes(guest: u64) -> Self {
        Self { linear: None, guest, need: right::READ, page: None }
    }
}

impl Core {
    /// Records the VM-exit of an access that EPT did not let through.
    #[cold]
    pub(super) fn ept_exit(&mut self, reached: Reached, failure: EptFailure) -> Leave {
        let (reason, qualification) = match failure {
            EptFailure::Violation { allowed } => (ExitReason::EptViolation, self.violation(&reached, allowed)),
            EptFailure::Misconfiguration => (ExitReason::EptMisconfiguration, 0),
            EptFailure::LogFull => (ExitReason::PageModificationLogFull, 0),
        };
        self.vmexit_with(ExitInfo {
            reason: Some(reason),
            qualification,
            guest_linear: reached.linear.unwrap_or(0),
            guest_physical: reached.guest,
            ..ExitInfo::default()
        })
    }

    fn violation(&self, reached: &Reached, allowed: u8) -> u64 {
        use qualification as q;
        let fetch = reached.need & (right::EXECUTE | right::USER_EXECUTE) != 0;
        let access = reached.need & (right::READ | right::WRITE) | if fetch { right::EXECUTE } else { 0 };
        let mut bits = u64::from(access) | u64::from(allowed & 7) << 3;
        if self.mode_based_execute() && allowed & right::USER_EXECUTE != 0 {
            bits |= 1 << 6;
        }
        if reached.linear.is_some() {
            bits |= q::LINEAR_VALID;
        }
        if let Some(page) = reached.page {
            bits |= q::TRANSLATION;
            for (right, set, flag) in [
                (bit::USER, true, q::USER_PAGE),
                (bit::WRITABLE, true, q::WRITABLE_PAGE),
                (bit::EXECUTABLE, false, q::NO_EXECUTE_PAGE),
            ] {
                if (page & right != 0) == set {
                    bits |= flag;
                }
            }
        }
        bits
    }
}
