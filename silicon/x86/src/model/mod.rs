//! CPU models as data.

/// What a modelled CPU is.
#[derive(Clone, Debug, Default)]
pub struct Model {}

impl Model {
    /// Mask of the physical-address bits (MAXPHYADDR).
    #[must_use]
    pub fn physical_mask(&self) -> u64 {
        (1 << 46) - 1
    }
}
