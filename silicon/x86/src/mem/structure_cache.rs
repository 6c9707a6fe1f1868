//! Paging-structure cache ("Caching Paging-Structure Information"): the upper levels of recent walks.

use silicon_memory::{Frame, PageState};

/// Result of the upper levels of a walk: the table to go on from.
#[derive(Clone, Copy, Debug)]
pub struct Cached {
    pub table: Frame,
    /// What the machine knows of the table's page; `None` only in an empty place of the cache.
    pub state: Option<&'static PageState>,
    /// Guest-physical address of the table.
    pub guest: u64,
    /// EPT lets the flags of its entries be set.
    pub writable: bool,
    /// WRITABLE, USER and EXECUTABLE of the levels above, as in [`super::entry::bit`].
    pub bits: u16,
}

/// A direct-mapped cache of one level, indexed by the linear address bits that the level above consumed.
#[derive(Debug)]
pub struct StructureCache {
    tags: Vec<u64>,
    cached: Vec<Cached>,
    shift: u32,
}

impl StructureCache {
    const EMPTY: u64 = u64::MAX;

    /// A cache of `size` entries; each covers `1 << shift` bytes of linear addresses.
    #[must_use]
    pub fn new(size: usize, shift: u32) -> Self {
        assert!(size.is_power_of_two(), "the size is an index mask");
        let none = Cached { table: Frame::unused(), state: None, guest: 0, writable: false, bits: 0 };
        Self { tags: vec![Self::EMPTY; size], cached: vec![none; size], shift }
    }

    fn slot(&self, linear: u64) -> usize {
        (linear >> self.shift) as usize & (self.tags.len() - 1)
    }

    fn tag(&self, linear: u64, context: u16) -> u64 {
        (linear >> self.shift << self.shift) | u64::from(context)
    }

    #[must_use]
    pub fn lookup(&self, linear: u64, context: u16) -> Option<Cached> {
        let slot = self.slot(linear);
        (self.tags[slot] == self.tag(linear, context)).then(|| self.cached[slot])
    }

    pub fn insert(&mut self, linear: u64, context: u16, cached: Cached) {
        let slot = self.slot(linear);
        self.tags[slot] = self.tag(linear, context);
        self.cached[slot] = cached;
    }

    /// Drops what is cached for `linear`.
    pub fn remove(&mut self, linear: u64, context: u16) {
        let slot = self.slot(linear);
        if self.tags[slot] == self.tag(linear, context) {
            self.tags[slot] = Self::EMPTY;
        }
    }

    pub fn clear(&mut self) {
        self.tags.fill(Self::EMPTY);
    }
}
