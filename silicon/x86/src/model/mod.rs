//! CPU models as data.

/// What a modelled CPU is.
#[derive(Clone, Debug, Default)]
pub struct Model {}
