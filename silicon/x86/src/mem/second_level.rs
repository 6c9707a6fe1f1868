//! Second-level TLB: 2048 entries, 16 ways, small and large pages together, round robin in each set.

use super::entry::Entry;

const WAYS: usize = 16;

#[derive(Debug)]
pub struct SecondLevel {
    tags: Vec<u64>,
    entries: Vec<Entry>,
    next: Vec<u8>,
    sets: usize,
}

impl SecondLevel {
    const EMPTY: u64 = u64::MAX;

    /// An array of `size` entries.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let sets = size / WAYS;
        assert!(sets.is_power_of_two(), "the number of sets is an index mask");
        Self { tags: vec![Self::EMPTY; size], entries: vec![Entry::default(); size], next: vec![0; sets], sets }
    }

    fn first(&self, tag: u64, shift: u32) -> usize {
        ((tag >> shift) as usize & (self.sets - 1)) * WAYS
    }

    fn find(&self, tag: u64, shift: u32) -> Option<usize> {
        let first = self.first(tag, shift);
        let ways: &[u64; WAYS] = self.tags[first..first + WAYS].try_into().ok()?;
        let mut hit = 0_u32;
        for (i, &t) in ways.iter().enumerate() {
            hit |= u32::from(t == tag) << i;
        }
        (hit != 0).then(|| first + hit.trailing_zeros() as usize)
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
            let set = first / WAYS;
            let way = self.next[set] as usize;
            self.next[set] = ((way + 1) % WAYS) as u8;
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
