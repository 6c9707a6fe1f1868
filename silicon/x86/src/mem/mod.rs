//! Address translation. The modelled TLB *is* the fast look-up (`docs/decisions/0002-the-software-tlb-is-the-modelled-tlb.md`).
//!
//! | file | what |
//! |---|---|
//! | `fast` | direct-mapped look-up in front of the first level, for data and for fetches |
//! | `first_level`, `second_level` | the modelled TLB |
//! | `fractured` | pages that the TLB holds in pieces |
//! | `structure_cache`, `nested` | paging-structure cache, guest-physical translations |
//! | `context` | dense ids for (VPID, PCID, EPTP) |
//! | `translate` | look-up, walk, fast refill |
//! | `linear` | address width, metadata bits, canonical form, alignment |
//! | `walk`, `format`, `pdpte` | guest tables in each paging mode |
//! | `rights`, `keys` | who may access a page, protection keys |
//! | `ept`, `ept_exit` | EPT, and its VM-exits |
//! | `slow` | loads and stores that cross pages, touch devices or code |
//! | `segmented` | segment base and limit |
//! | `watch` | data breakpoints |
//! | `invalidate` | INVLPG, INVPCID, CR3 writes, INVVPID, INVEPT |

pub mod context;
pub mod count;
mod entry;
mod ept;
mod ept_exit;
pub mod fast;
mod first_level;
mod format;
mod fractured;
mod invalidate;
mod keys;
mod linear;
pub mod mmio;
mod nested;
mod pdpte;
mod rights;
mod second_level;
mod segmented;
mod slow;
mod structure_cache;
#[cfg(test)]
mod tests;
mod translate;
mod walk;
mod watch;

pub use count::TlbCounters;
pub use invalidate::{Invept, Invpcid, Invvpid, Keep};
pub use mmio::{DeviceAccess, MmioReplay};
pub use translate::{FetchPage, Place};
pub use watch::Watch;

use context::{ContextId, ContextKey, Contexts, Selection, Space};
use fast::{FAST_ENTRIES, FETCH_ENTRIES, FastEntry, FetchEntry};
use first_level::FirstLevel;
use fractured::Fractured;
use keys::Keys;
use nested::NestedCache;
use second_level::SecondLevel;
use structure_cache::StructureCache;

use crate::model::{CacheGeometry, TlbGeometry};

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

/// A permission bit that no entry of the fast look-up has.
const NO_ENTRY_HAS: u32 = 1 << 31;

/// The first level for data or for fetches: its large pages are beside the small ones.
#[derive(Debug)]
struct Level {
    small: FirstLevel,
    large: FirstLevel,
}

impl Level {
    fn new(small: CacheGeometry, large: CacheGeometry) -> Self {
        Self { small: FirstLevel::new(small.entries, 12), large: FirstLevel::new(large.entries, 21) }
    }

    fn clear(&mut self) {
        self.small.clear();
        self.large.clear();
    }
}

/// Translation state of a logical processor.
#[derive(Debug)]
pub struct Mmu {
    /// Direct-mapped look-up for data; each valid entry is also an entry of the modelled first level.
    pub fast: Box<[FastEntry; FAST_ENTRIES]>,
    /// Context id in tags, for the lower and the upper half of the linear address space. The upper half is looked up
    /// under the id of global entries, as almost everything there is global.
    pub key: [u64; 2],
    /// Permission bit that a load needs now.
    pub need_read: u32,
    /// Permission bit that a store needs now.
    pub need_write: u32,
    /// Accesses that are not aligned fault: the look-up answers none, the slow path looks at each.
    pub(crate) alignment_checked: bool,
    /// Rights of protection keys.
    keys: Keys,
    /// Device accesses during instruction emulation.
    pub mmio: MmioReplay,
    /// Data breakpoints.
    pub watch: Watch,
    /// Exact counts.
    pub count: TlbCounters,
    /// Host-physical page that the running block was fetched from.
    pub fetch_page: u64,
    /// Linear page that the running block was fetched from; all ones when the next block must be translated.
    pub fetch_linear: u64,

    fetch: Box<[FetchEntry; FETCH_ENTRIES]>,
    data_level: Level,
    fetch_level: Level,
    second: SecondLevel,
    /// Page-directory entries (each covers 2 MiB) and page-directory-pointer entries (1 GiB).
    pde: StructureCache,
    pdpte: StructureCache,
    nested: NestedCache,
    fractured: Fractured,
    contexts: Contexts,
    /// The current ids: of the address space, of global entries, and of the EPT.
    space: ContextId,
    global: ContextId,
    ept: ContextId,
    /// What `global` and `ept` were looked up for.
    selected: Selection,
    /// Whether entries that are not global may be in the fast look-up under the upper half's key.
    private_upper: bool,
    /// Last seen [`silicon_memory::PhysicalMemory::code_epoch`].
    code_epoch: u64,
}

impl Mmu {
    /// Empty, with the geometry of the modelled core.
    #[must_use]
    pub fn new(geometry: &TlbGeometry) -> Self {
        let mut mmu = Self {
            fast: Box::new([FastEntry::empty(); FAST_ENTRIES]),
            key: [0; 2],
            need_read: 0,
            need_write: 0,
            alignment_checked: false,
            keys: Keys::default(),
            mmio: MmioReplay::default(),
            watch: Watch::default(),
            count: TlbCounters::default(),
            fetch_page: u64::MAX,
            fetch_linear: u64::MAX,
            fetch: Box::new([FetchEntry::empty(); FETCH_ENTRIES]),
            data_level: Level::new(geometry.first_level_data, geometry.first_level_data_large),
            fetch_level: Level::new(geometry.first_level_code, geometry.first_level_code_large),
            second: SecondLevel::new(geometry.second_level),
            pde: StructureCache::new(usize::from(geometry.paging_structure.entries), 21),
            pdpte: StructureCache::new(16, 30),
            nested: NestedCache::new(),
            fractured: Fractured::default(),
            contexts: Contexts::default(),
            space: ContextId(1),
            global: ContextId(1),
            ept: ContextId(1),
            selected: Selection::default(),
            private_upper: false,
            code_epoch: 0,
        };
        mmu.set_privilege(2);
        mmu.set_context(0, 0, Space::Unpaged);
        mmu
    }

    /// Selects the row of permission bits ([`crate::core::Mode::privilege`]).
    pub fn set_privilege(&mut self, row: u8) {
        self.need_read = 1 << (row * 2);
        self.need_write = 2 << (row * 2);
        self.alignment_checked = false;
    }

    /// Lets every access go the slow way, where its alignment is checked, until [`Mmu::set_privilege`].
    pub fn check_alignment(&mut self) {
        (self.need_read, self.need_write) = (NO_ENTRY_HAS, NO_ENTRY_HAS);
        self.alignment_checked = true;
    }

    /// The next block must be translated: mode, privilege or translations changed.
    pub fn leave_page(&mut self) {
        self.fetch_linear = u64::MAX;
    }

    /// Selects the context of all further translations.
    pub fn set_context(&mut self, vpid: u16, eptp: u64, space: Space) {
        self.leave_page();
        let wanted = ContextKey { vpid, eptp, space };
        // An id that runs out clears the caches and voids the ids before it: then all three are asked for again.
        loop {
            let before = self.space;
            let (own, a) = self.contexts.id(wanted);
            if !a && self.contexts.still_holds(self.selected) && self.selected.with(space) == wanted {
                // Only the address space changes: the other two ids are as they were.
                if before != own && self.private_upper {
                    self.drop_upper();
                }
                (self.space, self.key[0]) = (own, u64::from(own.0));
                return;
            }
            let (global, b) = self.contexts.id(ContextKey { vpid, eptp, space: Space::Global });
            let (ept, c) = self.contexts.id(ContextKey { vpid: 0, eptp, space: Space::Nested });
            if a || b || c {
                self.clear();
                continue;
            }
            if before != own && self.private_upper {
                self.drop_upper();
            }
            (self.space, self.global, self.ept) = (own, global, ept);
            self.key = [u64::from(own.0), u64::from(global.0)];
            self.selected = self.contexts.selection(vpid, eptp);
            return;
        }
    }

    /// The frame of `linear` when an access of one `T` needs no model code.
    #[inline(always)]
    #[must_use]
    pub fn fast_frame<T: silicon_memory::Word>(&self, linear: u64, need: u32) -> Option<silicon_memory::Frame> {
        let entry = &self.fast[(linear >> 12) as usize & (FAST_ENTRIES - 1)];
        let tag = (linear & !0xfff) | self.key[(linear >> 63) as usize];
        let fits = (linear & 0xfff) <= 4096 - T::BYTES;
        (entry.tag == tag && entry.permissions & need != 0 && fits).then_some(entry.frame)
    }

    /// Empties every cache.
    fn clear(&mut self) {
        self.clear_fast();
        self.data_level.clear();
        self.fetch_level.clear();
        self.second.clear();
        self.pde.clear();
        self.pdpte.clear();
        self.nested.clear();
    }

    /// Empties the direct-mapped look-ups: what the first level holds is found again without a miss being counted.
    fn clear_fast(&mut self) {
        self.fast.fill(FastEntry::empty());
        self.fetch.fill(FetchEntry::empty());
        self.keys.forget();
        self.private_upper = false;
    }

    fn drop_upper(&mut self) {
        let upper = |tag: u64| tag >> 63 != 0;
        self.fast.iter_mut().filter(|e| upper(e.tag)).for_each(|e| *e = FastEntry::empty());
        self.fetch.iter_mut().filter(|e| upper(e.tag)).for_each(|e| *e = FetchEntry::empty());
        self.private_upper = false;
    }
}
