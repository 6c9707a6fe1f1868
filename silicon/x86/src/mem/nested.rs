//! Cache of guest-physical translations ("Information That May Be Cached": guest-physical mappings).

use super::ept::right;

const ENTRIES: usize = 512;

/// An EPT translation of one 4 KiB page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nested {
    /// Host-physical address of the 4 KiB page.
    pub host: u64,
    /// Rights ([`right`]), all levels combined.
    pub allowed: u8,
    /// The leaf has its dirty flag set (or has none).
    pub dirty: bool,
    /// The leaf maps 2 MiB or more.
    pub large: bool,
}

impl Nested {
    /// Whether stores need no further look at the tables.
    #[must_use]
    pub fn writable(&self) -> bool {
        self.allowed & right::WRITE != 0 && self.dirty
    }

    /// Whether an access that needs these rights needs no further look at the tables.
    #[must_use]
    pub fn serves(&self, need: u8) -> bool {
        need & !self.allowed == 0 && (need & right::WRITE == 0 || self.dirty)
    }
}

/// A direct-mapped cache of EPT walks.
#[derive(Debug)]
pub struct NestedCache {
    tags: Vec<u64>,
    cached: Vec<Nested>,
}

impl NestedCache {
    const EMPTY: u64 = u64::MAX;

    #[must_use]
    pub fn new() -> Self {
        Self {
            tags: vec![Self::EMPTY; ENTRIES],
            cached: vec![Nested { host: 0, allowed: 0, dirty: false, large: false }; ENTRIES],
        }
    }

    #[must_use]
    pub fn lookup(&self, guest: u64, context: u16) -> Option<Nested> {
        let slot = (guest >> 12) as usize & (ENTRIES - 1);
        (self.tags[slot] == ((guest & !0xfff) | u64::from(context))).then(|| self.cached[slot])
    }

    pub fn insert(&mut self, guest: u64, context: u16, nested: Nested) {
        let slot = (guest >> 12) as usize & (ENTRIES - 1);
        self.tags[slot] = (guest & !0xfff) | u64::from(context);
        self.cached[slot] = nested;
    }

    /// Drops what is cached for `guest`.
    pub fn remove(&mut self, guest: u64, context: u16) {
        let slot = (guest >> 12) as usize & (ENTRIES - 1);
        if self.tags[slot] == ((guest & !0xfff) | u64::from(context)) {
            self.tags[slot] = Self::EMPTY;
        }
    }

    pub fn clear(&mut self) {
        self.tags.fill(Self::EMPTY);
    }
}
