use silicon_memory::{Frame, PageState};

/// Entries of the direct-mapped look-up for data.
pub const FAST_ENTRIES: usize = 512;
/// Entries of the direct-mapped look-up for fetches.
pub const FETCH_ENTRIES: usize = 256;

/// Matches nothing: no tag has all bits set.
pub const EMPTY_TAG: u64 = u64::MAX;

/// An entry of the direct-mapped look-up: one 4 KiB page of linear address space in one context.
#[derive(Clone, Copy, Debug)]
pub struct FastEntry {
    /// Linear page address with the context id in the low 12 bits; [`EMPTY_TAG`] when empty.
    pub tag: u64,
    pub frame: Frame,
    /// Bit 2r: loads, bit 2r+1: stores, allowed for privilege row r.
    pub permissions: u32,
}

impl FastEntry {
    #[must_use]
    pub fn empty() -> Self {
        Self { tag: EMPTY_TAG, frame: Frame::unused(), permissions: 0 }
    }
}

/// The same for instruction fetches.
#[derive(Clone, Copy, Debug)]
pub struct FetchEntry {
    pub tag: u64,
    pub frame: Frame,
    pub host: u64,
    pub state: Option<&'static PageState>,
    pub user: bool,
    pub supervisor: bool,
}

impl FetchEntry {
    #[must_use]
    pub fn empty() -> Self {
        Self { tag: EMPTY_TAG, frame: Frame::unused(), host: u64::MAX, state: None, user: false, supervisor: false }
    }
}

impl super::Mmu {
    /// Host-physical address of the page that holds `linear`, and the generation of its code, when a fetch at `cpl`
    /// needs no model code.
    #[inline(always)]
    #[must_use]
    pub fn fetch_hit(&self, linear: u64, cpl: u8) -> Option<(u64, u32)> {
        let entry = &self.fetch[(linear >> 12) as usize & (FETCH_ENTRIES - 1)];
        let tag = (linear & !0xfff) | self.key[(linear >> 63) as usize];
        let allowed = if cpl == 3 { entry.user } else { entry.supervisor };
        let state = entry.state?;
        (entry.tag == tag && allowed).then(|| (entry.host, state.generation()))
    }
}
