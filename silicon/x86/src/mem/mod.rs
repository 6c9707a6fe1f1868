//! Address translation. The modelled TLB *is* the fast look-up (see `docs/decisions`).

pub mod fast;
pub mod mmio;
mod slow;

pub use mmio::MmioReplay;

use fast::{FAST_ENTRIES, FastEntry};

/// What a memory access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    /// A store, or a read that a store to the same place follows.
    Write,
    Fetch,
}

/// An access as the page walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub kind: AccessKind,
    /// User-mode access (CPL 3), else supervisor-mode.
    pub user: bool,
    /// Implicit supervisor access (descriptor tables, TSS): SMAP applies whatever AC is.
    pub implicit: bool,
    /// Segment register that the address came from (its index): decides between #SS and #GP for a non-canonical one.
    pub segment: u8,
}

/// Translation state of a logical processor.
pub struct Mmu {
    /// Direct-mapped look-up for data; each valid entry is also an entry of the modelled first level.
    pub fast: Box<[FastEntry; FAST_ENTRIES]>,
    /// Context id in tags, for the lower and the upper half of the linear address space.
    pub key: [u64; 2],
    /// Permission bit that a load needs now.
    pub need_read: u32,
    /// Permission bit that a store needs now.
    pub need_write: u32,
    /// Device accesses during instruction emulation.
    pub mmio: MmioReplay,
}

impl Mmu {
    #[must_use]
    pub fn new() -> Self {
        Self {
            fast: Box::new([FastEntry::empty(); FAST_ENTRIES]),
            key: [0; 2],
            need_read: 0,
            need_write: 0,
            mmio: MmioReplay::default(),
        }
    }

    /// Selects the row of permission bits ([`crate::core::Mode::privilege`]).
    pub fn set_privilege(&mut self, row: u8) {
        self.need_read = 1 << (row * 2);
        self.need_write = 2 << (row * 2);
    }
}

impl Default for Mmu {
    fn default() -> Self {
        Self::new()
    }
}

impl Mmu {
    /// The frame of `linear` when an access of one `T` needs no model code.
    #[inline(always)]
    #[must_use]
    pub fn fast_frame<T: silicon_memory::Word>(&self, linear: u64, need: u32) -> Option<silicon_memory::Frame> {
        let entry = &self.fast[(linear >> 12) as usize & (FAST_ENTRIES - 1)];
        let tag = (linear & !0xfff) | self.key[(linear >> 63) as usize];
        let fits = (linear & 0xfff) <= 4096 - T::BYTES;
        (entry.tag == tag && entry.permissions & need != 0 && fits).then_some(entry.frame)
    }
}
