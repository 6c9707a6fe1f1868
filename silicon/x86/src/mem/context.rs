//! Dense context ids: small numbers that stand for (VPID, PCID, EPTP) in the tags of all translation caches.
//!
//! Retiring an id makes every entry that carries it unreachable, in constant time: this is how CR3 writes, INVPCID,
//! INVVPID and INVEPT invalidate. Ids are handed out in order and never reused until all are gone; then the caches
//! are cleared once.

use std::collections::HashMap;

/// What a dense id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextKey {
    pub vpid: u16,
    pub eptp: u64,
    pub space: Space,
}

/// Part of a guest's linear address spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Paging is off: linear is guest-physical.
    Unpaged,
    /// The entries of one PCID (0 where PCIDs are not enabled).
    Pcid(u16),
    /// Guest-physical translations of an EPT.
    Nested,
    /// Global entries.
    Global,
}

/// A dense id: 1 to [`ContextId::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextId(pub u16);

impl ContextId {
    /// Ids have 11 bits; the twelfth bit of a tag marks large pages.
    pub const MOST: u16 = 0x7fe;
}

/// The VPID and EPT pointer that ids of global entries and of guest-physical translations were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    vpid: u16,
    eptp: u64,
    /// One more than that of the contexts: zero is no selection.
    shared_epoch: u64,
}

impl Selection {
    /// The key of an address space under it.
    pub fn with(self, space: Space) -> ContextKey {
        ContextKey { vpid: self.vpid, eptp: self.eptp, space }
    }
}

/// The ids in use.
#[derive(Debug, Default)]
pub struct Contexts {
    ids: HashMap<ContextKey, ContextId>,
    last: u16,
    /// Raised when an id that address spaces share may have been retired: of global entries, or guest-physical ones.
    shared_epoch: u64,
}

impl Contexts {
    /// The id of `key`, and whether all caches must be cleared first because the ids ran out.
    pub fn id(&mut self, key: ContextKey) -> (ContextId, bool) {
        if let Some(&id) = self.ids.get(&key) {
            return (id, false);
        }
        let exhausted = self.last == ContextId::MOST;
        if exhausted {
            self.ids.clear();
            self.last = 0;
            self.shared_epoch += 1;
        }
        self.last += 1;
        let id = ContextId(self.last);
        self.ids.insert(key, id);
        (id, exhausted)
    }

    /// Retires one id.
    pub fn retire(&mut self, key: ContextKey) {
        if matches!(key.space, Space::Nested | Space::Global) {
            self.shared_epoch += 1;
        }
        self.ids.remove(&key);
    }

    /// Retires every id whose key satisfies `matches`.
    pub fn retire_where(&mut self, matches: impl Fn(&ContextKey) -> bool) {
        self.shared_epoch += 1;
        self.ids.retain(|key, _| !matches(key));
    }

    /// The ids whose keys satisfy `matches`.
    pub fn ids_where(&self, matches: impl Fn(&ContextKey) -> bool) -> Vec<ContextId> {
        self.ids.iter().filter(|(key, _)| matches(key)).map(|(_, &id)| id).collect()
    }

    /// Remembers that the ids of global entries and of guest-physical translations have just been asked for.
    pub fn selection(&self, vpid: u16, eptp: u64) -> Selection {
        Selection { vpid, eptp, shared_epoch: self.shared_epoch + 1 }
    }

    /// Whether those ids are still the same.
    pub fn still_holds(&self, selection: Selection) -> bool {
        selection.shared_epoch == self.shared_epoch + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_context_gets_a_fresh_id_and_others_keep_theirs() {
        let mut c = Contexts::default();
        let a = ContextKey { vpid: 1, eptp: 0, space: Space::Pcid(1) };
        let b = ContextKey { vpid: 1, eptp: 0, space: Space::Pcid(2) };
        let (ia, ib) = (c.id(a).0, c.id(b).0);
        c.retire(a);
        assert_ne!(c.id(a).0, ia);
        assert_eq!(c.id(b).0, ib);
    }

    #[test]
    fn running_out_of_ids_is_announced_once() {
        let mut c = Contexts::default();
        let key = ContextKey { vpid: 1, eptp: 0, space: Space::Global };
        for _ in 0..ContextId::MOST {
            assert!(!c.id(key).1);
            c.retire(key);
        }
        assert!(c.id(key).1);
        assert!(!c.id(key).1);
    }
}
