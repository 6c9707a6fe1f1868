//! Cache of guest-physical translations ("Information That May Be Cached": guest-physical mappings).

const ENTRIES: usize = 512;

/// An EPT translation of one 4 KiB page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nested {
    /// Host-physical address of the 4 KiB page.
    pub host: u64,
    /// Read (1), write (2), execute (4), all levels combined.
    pub allowed: u8,
    /// The leaf maps 2 MiB or more.
    pub large: bool,
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
        Self { tags: vec![Self::EMPTY; ENTRIES], cached: vec![Nested { host: 0, allowed: 0, large: false }; ENTRIES] }
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

    pub fn clear(&mut self) {
        self.tags.fill(Self::EMPTY);
    }
}
