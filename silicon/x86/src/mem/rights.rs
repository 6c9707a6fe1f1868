//! Who may access a page ("Determination of Access Rights"), and the page fault of who may not.

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::exception::{pf, vector};
use x86_defs::rflags;

use super::entry::bit;
use super::{Access, AccessKind, keys};
use crate::Leave;
use crate::core::{Core, Fault};

impl Core {
    /// Bits for the page-fault error code when the combined permissions of all levels do not allow the access.
    pub(super) fn permission_fault(&self, bits: u16, access: Access) -> Option<u32> {
        let user_page = bits & bit::USER != 0;
        let by_key = self.denied_by_key(bits, access);
        let allowed = if access.user {
            user_page
                && match access.kind {
                    AccessKind::Read => true,
                    AccessKind::Write => bits & bit::WRITABLE != 0,
                    AccessKind::Fetch => bits & bit::EXECUTABLE != 0,
                }
        } else {
            match access.kind {
                AccessKind::Fetch => bits & bit::EXECUTABLE != 0 && !(user_page && self.cr4 & cr4::SMEP != 0),
                _ if user_page && self.smap_forbids(access) => false,
                AccessKind::Read => true,
                AccessKind::Write => bits & bit::WRITABLE != 0 || self.cr0 & cr0::WP == 0,
            }
        };
        match (allowed, by_key) {
            (true, false) => None,
            (_, true) => Some(pf::PROTECTION_KEY),
            (false, false) => Some(0),
        }
    }

    fn denied_by_key(&self, bits: u16, access: Access) -> bool {
        let denied = self.mmu.keys.denied(bits);
        match access.kind {
            AccessKind::Fetch => false,
            _ if denied & keys::ACCESS != 0 => true,
            AccessKind::Read => false,
            AccessKind::Write => denied & keys::WRITE != 0 && (access.user || self.cr0 & cr0::WP != 0),
        }
    }

    fn smap_forbids(&self, access: Access) -> bool {
        self.cr4 & cr4::SMAP != 0 && (access.implicit || self.rflags_rest & rflags::AC == 0)
    }

    /// Raises a page fault, which voids what the paging-structure caches have for the address ("Operations that
    /// Invalidate TLBs and Paging-Structure Caches"). The TLB entry, if there was one, is the caller's to drop.
    #[cold]
    pub(super) fn page_fault(&mut self, linear: u64, access: Access, code: u32) -> Leave {
        self.drop_structures(linear);
        let mut code = code;
        match access.kind {
            AccessKind::Read => {}
            AccessKind::Write => code |= pf::WRITE,
            AccessKind::Fetch => {
                let reported = (self.efer & efer::NXE != 0 && self.cr4 & cr4::PAE != 0) || self.cr4 & cr4::SMEP != 0;
                if reported {
                    code |= pf::FETCH;
                }
            }
        }
        if access.user {
            code |= pf::USER;
        }
        self.fault = Fault { vector: vector::PF, error_code: Some(code), address: linear };
        Leave::Fault
    }
}
