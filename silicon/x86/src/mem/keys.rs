//! Protection keys ("Protection Keys").
//!
//! The key of a page is cached with its translation; the rights of the key are not. They are applied when an entry of
//! the fast look-up is filled, so a change of PKRU or IA32_PKRS drops what was filled with the rights of the keys that
//! changed, and the modelled TLB keeps its entries.

use x86_defs::control::cr4;

use super::entry::bit;
use super::fast::FastEntry;
use crate::Core;

/// Access disable: no data access.
pub const ACCESS: u32 = 1;
/// Write disable.
pub const WRITE: u32 = 2;

/// The rights of all keys as they apply now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// PKRU, for user-mode addresses; zero where CR4.PKE does not enable it.
    user: u32,
    /// IA32_PKRS, for supervisor-mode addresses; zero where CR4.PKS does not enable it.
    supervisor: u32,
    /// Keys of the entries in the fast look-up: bits 15:0 of user-mode addresses, 31:16 of supervisor-mode ones.
    seen: u32,
}

/// The place of a translation's key in [`Keys::seen`].
fn place(bits: u16) -> u32 {
    u32::from(bits >> bit::KEY_SHIFT) + if bits & bit::USER == 0 { 16 } else { 0 }
}

/// One bit for each key that has any right changed.
fn keys_of(changed: u32) -> u32 {
    (0..16).filter(|key| changed >> (2 * key) & 3 != 0).fold(0, |keys, key| keys | 1 << key)
}

impl Keys {
    /// What the key of a translation denies: [`ACCESS`] and [`WRITE`]; `bits` are those of its entry.
    #[inline]
    #[must_use]
    pub fn denied(&self, bits: u16) -> u32 {
        let rights = if bits & bit::USER != 0 { self.user } else { self.supervisor };
        rights >> (2 * u32::from(bits >> bit::KEY_SHIFT)) & (ACCESS | WRITE)
    }

    /// A translation with these bits goes into the fast look-up.
    pub(super) fn note(&mut self, bits: u16) {
        self.seen |= 1 << place(bits);
    }

    /// The fast look-up has been emptied.
    pub(super) fn forget(&mut self) {
        self.seen = 0;
    }

    /// Sets the rights; whether entries in the fast look-up were filled under other rights of their key.
    fn set(&mut self, user: u32, supervisor: u32) -> bool {
        let changed = keys_of(self.user ^ user) | keys_of(self.supervisor ^ supervisor) << 16;
        (self.user, self.supervisor) = (user, supervisor);
        changed & self.seen != 0
    }
}

impl Core {
    /// Derives the rights of all keys from PKRU, IA32_PKRS, CR4 and EFER. To be called after any of them changed.
    #[inline]
    pub fn update_keys(&mut self) {
        let long = self.efer & x86_defs::control::efer::LMA != 0;
        let user = if long && self.cr4 & cr4::PKE != 0 { self.pkru } else { 0 };
        let supervisor = if long && self.cr4 & cr4::PKS != 0 { self.msrs.pkrs } else { 0 };
        let keys = &mut self.mmu.keys;
        if (keys.user, keys.supervisor) != (user, supervisor) && keys.set(user, supervisor) {
            self.mmu.fast.fill(FastEntry::empty());
            self.mmu.keys.forget();
        }
    }

    /// Writes PKRU. No translation is invalidated ("WRPKRU").
    pub fn set_pkru(&mut self, value: u32) {
        self.pkru = value;
        self.update_keys();
    }

    /// Writes IA32_PKRS. No translation is invalidated.
    pub fn set_pkrs(&mut self, value: u32) {
        self.msrs.pkrs = value;
        self.update_keys();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_those_of_the_key_and_of_the_kind_of_address() {
        let mut keys = Keys::default();
        keys.set(0b10 << 6, 0b01 << 6);
        let key3 = 3 << bit::KEY_SHIFT;
        assert_eq!(keys.denied(key3 | bit::USER), WRITE);
        assert_eq!(keys.denied(key3), ACCESS);
        assert_eq!(keys.denied(2 << bit::KEY_SHIFT), 0);
    }

    #[test]
    fn only_a_change_of_a_key_that_is_in_use_empties_the_look_up() {
        let mut keys = Keys::default();
        keys.note(5 << bit::KEY_SHIFT | bit::USER);
        assert!(!keys.set(3 << 8, 0), "key 4");
        assert!(!keys.set(3 << 8, 3 << 10), "key 5 of supervisor-mode addresses");
        assert!(keys.set(3 << 8 | 1 << 10, 3 << 10), "key 5");
        assert!(!keys.set(3 << 8 | 1 << 10, 3 << 10), "no change");
    }
}
