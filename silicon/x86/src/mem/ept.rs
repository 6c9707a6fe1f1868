//! Extended page tables ("The Extended Page Table Mechanism (EPT)").

use silicon_memory::HostPhysical;

use super::AccessKind;
use super::nested::Nested;
use crate::core::Core;
use crate::cost;

/// Why a guest-physical address has no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EptFailure {
    /// Not present, or the access is not allowed; the permissions that the tables give (read 1, write 2, execute 4).
    Violation { allowed: u8 },
    /// An entry has a reserved or contradictory setting.
    Misconfiguration,
}

const READ: u64 = 1;
const WRITE: u64 = 2;
const ALL: u64 = 7;
const LARGE: u64 = 1 << 7;

impl AccessKind {
    /// The EPT permission that the access needs.
    pub(super) fn ept_bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Fetch => 4,
        }
    }
}

impl Core {
    /// Translates a guest-physical address, whatever the access: the caller checks [`Nested::allowed`].
    pub(super) fn ept_translate(&mut self, guest: u64) -> Result<Nested, EptFailure> {
        let eptp = self.vmx.controls.eptp;
        if eptp == 0 {
            return Ok(Nested { host: guest & !0xfff, allowed: 7, large: true });
        }
        let context = self.mmu.ept.0;
        if let Some(hit) = self.mmu.nested.lookup(guest, context) {
            self.mmu.count.nested_hits += 1;
            return Ok(hit);
        }
        let nested = self.ept_walk(guest, eptp)?;
        self.mmu.nested.insert(guest, context, nested);
        Ok(nested)
    }

    fn ept_walk(&mut self, guest: u64, eptp: u64) -> Result<Nested, EptFailure> {
        let physical = self.model.physical_mask();
        if guest & !physical != 0 {
            return Err(EptFailure::Violation { allowed: 0 });
        }
        let mut table = eptp & physical & !0xfff;
        let mut allowed = ALL;
        for level in (0..4_u32).rev() {
            let shift = 12 + 9 * level;
            let index = (guest >> shift) & 0x1ff;
            let Some((frame, _)) = self.memory.page(HostPhysical(table)) else {
                return Err(EptFailure::Misconfiguration);
            };
            let entry: u64 = frame.load(index * 8);
            self.mmu.count.ept_references += 1;
            self.stall += cost::WALK_REFERENCE;
            if entry & ALL == 0 {
                return Err(EptFailure::Violation { allowed: 0 });
            }
            // Writable but not readable is a misconfiguration whatever else.
            if entry & (READ | WRITE) == WRITE || entry & !physical & ((1 << 52) - 1) & !0xfff != 0 {
                return Err(EptFailure::Misconfiguration);
            }
            allowed &= entry;
            let leaf = level == 0 || (level < 3 && entry & LARGE != 0);
            if leaf {
                if matches!((entry >> 3) & 7, 2 | 3 | 7) {
                    return Err(EptFailure::Misconfiguration);
                }
                let offset = guest & ((1_u64 << shift) - 1) & !0xfff;
                let base = entry & physical & !((1_u64 << shift) - 1);
                return Ok(Nested { host: base | offset, allowed: (allowed & ALL) as u8, large: level > 0 });
            }
            if level == 3 && entry & LARGE != 0 {
                return Err(EptFailure::Misconfiguration);
            }
            table = entry & physical & !0xfff;
        }
        unreachable!("level 0 is a leaf")
    }
}
