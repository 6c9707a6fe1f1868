use super::keys::{self, Keys};

/// Bits of [`Entry::bits`].
pub mod bit {
    /// All levels of the guest's tables allow writes.
    pub const WRITABLE: u16 = 1 << 0;
    /// All levels allow user-mode accesses.
    pub const USER: u16 = 1 << 1;
    /// No level forbids instruction fetches.
    pub const EXECUTABLE: u16 = 1 << 2;
    /// The guest's leaf entry has its dirty flag set (or has none).
    pub const DIRTY: u16 = 1 << 3;
    pub const GLOBAL: u16 = 1 << 4;
    /// EPT allows writes, and has its dirty flag set (or has none).
    pub const EPT_WRITABLE: u16 = 1 << 5;
    /// EPT allows fetches from this page, which is a user-mode or a supervisor-mode one.
    pub const EPT_EXECUTABLE: u16 = 1 << 6;
    /// EPT allows reads: an execute-only page does not.
    pub const EPT_READABLE: u16 = 1 << 7;
    /// Bits 15:12: protection key.
    pub const KEY_SHIFT: u32 = 12;
}

/// A cached translation: the combined mapping of guest tables and EPT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Host-physical address of the page (4 KiB or 2 MiB, by the array or tag that holds the entry).
    pub host: u64,
    /// Guest-physical address of the page, for exit information.
    pub guest: u64,
    pub bits: u16,
}

impl Entry {
    pub fn has(&self, bits: u16) -> bool {
        self.bits & bits == bits
    }

    /// The permission bits of a fast entry: for each privilege row (0 user, 1 supervisor under SMAP, 2 supervisor) bit
    /// 2r for loads and 2r+1 for stores.
    #[must_use]
    pub fn data_permissions(&self, write_protect: bool, keys: &Keys) -> u32 {
        let denied = keys.denied(self.bits);
        if !self.has(bit::EPT_READABLE) || denied & keys::ACCESS != 0 {
            return 0;
        }
        let stores = self.has(bit::DIRTY | bit::EPT_WRITABLE);
        let user_store = stores && self.has(bit::WRITABLE) && denied & keys::WRITE == 0;
        let supervisor_store = stores && (!write_protect || self.has(bit::WRITABLE) && denied & keys::WRITE == 0);
        let mut p = 0b01_00_00 | if supervisor_store { 0b10_00_00 } else { 0 };
        if self.has(bit::USER) {
            p |= 0b01 | if user_store { 0b10 } else { 0 };
        } else {
            p |= 0b01_00 | if supervisor_store { 0b10_00 } else { 0 };
        }
        p
    }

    /// Whether an instruction fetch is allowed.
    #[must_use]
    pub fn allows_fetch(&self, user: bool, smep: bool) -> bool {
        self.has(bit::EXECUTABLE | bit::EPT_EXECUTABLE)
            && if user { self.has(bit::USER) } else { !(smep && self.has(bit::USER)) }
    }
}
