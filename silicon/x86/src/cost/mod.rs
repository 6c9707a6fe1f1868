//! Counts (exact) and the cost table (modelled).

/// Exact counts of a logical processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Instructions retired by the guest.
    pub instructions: u64,
}
