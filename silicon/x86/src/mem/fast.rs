use silicon_memory::Frame;

/// Entries of the direct-mapped look-up.
pub const FAST_ENTRIES: usize = 512;

/// An entry of the direct-mapped look-up: one 4 KiB page of linear address space in one context.
#[derive(Clone, Copy, Debug)]
pub struct FastEntry {
    /// Linear page address with the context id in the low 12 bits; all ones when empty.
    pub tag: u64,
    pub frame: Frame,
    /// Bit 2r: loads, bit 2r+1: stores, allowed for privilege row r.
    pub permissions: u32,
    /// The entry of the modelled first level that this one stands for.
    pub first_level: u32,
}

impl FastEntry {
    /// Matches nothing: no tag has all bits of the context id set.
    pub const EMPTY_TAG: u64 = u64::MAX;

    #[must_use]
    pub fn empty() -> Self {
        Self { tag: Self::EMPTY_TAG, frame: Frame::unused(), permissions: 0, first_level: u32::MAX }
    }
}
