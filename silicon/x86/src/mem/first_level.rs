//! First-level TLB: fully associative, first in first out, small and large pages apart.
//!
//! First-in-first-out needs no update on a hit, so the direct-mapped look-up in front of it may hit unseen.

use super::entry::Entry;

const BUCKETS: usize = 512;

/// A fully associative array.
#[derive(Debug)]
pub struct FirstLevel {
    tags: Vec<u64>,
    entries: Vec<Entry>,
    next: usize,
    /// How many tags hash to each bucket: most look-ups that miss need no search.
    buckets: Box<[u16; BUCKETS]>,
    shift: u32,
}

impl FirstLevel {
    pub const EMPTY: u64 = u64::MAX;

    /// An array of `size` entries for pages of `1 << shift` bytes.
    #[must_use]
    pub fn new(size: u16, shift: u32) -> Self {
        let size = usize::from(size);
        Self {
            tags: vec![Self::EMPTY; size],
            entries: vec![Entry::default(); size],
            next: 0,
            buckets: Box::new([0; BUCKETS]),
            shift,
        }
    }

    fn bucket(&self, tag: u64) -> usize {
        let n = tag >> self.shift;
        (n ^ (n >> 9) ^ tag) as usize & (BUCKETS - 1)
    }

    /// Position of the entry with this tag.
    #[must_use]
    pub fn find(&self, tag: u64) -> Option<usize> {
        if self.buckets[self.bucket(tag)] == 0 {
            return None;
        }
        self.tags.iter().position(|&t| t == tag)
    }

    #[must_use]
    pub fn entry(&self, at: usize) -> &Entry {
        &self.entries[at]
    }

    /// Replaces the entry at `at`, same tag.
    pub fn update(&mut self, at: usize, entry: Entry) {
        self.entries[at] = entry;
    }

    /// Inserts an entry over the oldest one; gives its position and the tag that went.
    pub fn insert(&mut self, tag: u64, entry: Entry) -> (usize, u64) {
        let at = self.next;
        self.next = if at + 1 == self.tags.len() { 0 } else { at + 1 };
        let old = self.tags[at];
        if old != Self::EMPTY {
            let b = self.bucket(old);
            self.buckets[b] -= 1;
        }
        let b = self.bucket(tag);
        self.buckets[b] += 1;
        self.tags[at] = tag;
        self.entries[at] = entry;
        (at, old)
    }

    /// Removes the entry with this tag.
    pub fn remove(&mut self, tag: u64) {
        if let Some(at) = self.find(tag) {
            let b = self.bucket(tag);
            self.buckets[b] -= 1;
            self.tags[at] = Self::EMPTY;
        }
    }

    pub fn clear(&mut self) {
        self.tags.fill(Self::EMPTY);
        self.buckets.fill(0);
        self.next = 0;
    }
}
