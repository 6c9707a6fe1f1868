//! Second-level TLB: small and large pages together, round robin in each set.

use super::entry::Entry;
use crate::model::CacheGeometry;

#[derive(Debug)]
pub struct SecondLevel {
    tags: Vec<u64>,
    entries: Vec<Entry>,
    next: Vec<u8>,
    sets: usize,
    ways: usize,
}

impl SecondLevel {
    const EMPTY: u64 = u64::MAX;

    /// An empty array.
    #[must_use]
    pub fn new(geometry: CacheGeometry) -> Self {
        let (size, ways) = (usize::from(geometry.entries), usize::from(geometry.ways));
        let sets = size / ways;
        assert!(sets.is_power_of_two(), "the number of sets is an index mask");
        Self { tags: vec![Self::EMPTY; size], entries: vec![Entry::default(); size], next: vec![0; sets], sets, ways }
    }

    fn first(&self, tag: u64, shift: u32) -> usize {
        ((tag >> shift) as usize & (self.sets - 1)) * self.ways
    }

    fn find(&self, tag: u64, shift: u32) -> Option<usize> {
        let first = self.first(tag, shift);
        let set = &self.tags[first..first + self.ways];
        // Sixteen ways are compared at once.
        let way = if let Ok(ways) = <&[u64; 16]>::try_from(set) {
            let mut hit = 0_u32;
            for (i, &t) in ways.iter().enumerate() {
                hit |= u32::from(t == tag) << i;
            }
            (hit != 0).then(|| hit.trailing_zeros() as usize)
        } else {
            set.iter().position(|&t| t == tag)
        };
        way.map(|way| first + way)
    }

    /// The entry with this tag, for pages of `1 << shift` bytes.
    #[must_use]
    pub fn lookup(&self, tag: u64, shift: u32) -> Option<Entry> {
        self.find(tag, shift).map(|at| self.entries[at])
    }

    /// Inserts or replaces.
    pub fn insert(&mut self, tag: u64, shift: u32, entry: Entry) {
        let at = self.find(tag, shift).unwrap_or_else(|| {
            let first = self.first(tag, shift);
            let set = first / self.ways;
            let way = self.next[set] as usize;
            self.next[set] = ((way + 1) % self.ways) as u8;
            first + way
        });
        self.tags[at] = tag;
        self.entries[at] = entry;
    }

    /// Removes the entry with this tag.
    pub fn remove(&mut self, tag: u64, shift: u32) {
        if let Some(at) = self.find(tag, shift) {
            self.tags[at] = Self::EMPTY;
        }
    }

    pub fn clear(&mut self) {
        self.tags.fill(Self::EMPTY);
        self.next.fill(0);
    }
}
