/// Exact counts of translation events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlbCounters {
    /// Data accesses that missed the first level and hit the second.
    pub data_second_level_hits: u64,
    /// Data accesses that missed both levels: page walks.
    pub data_walks: u64,
    /// Fetches that missed the first level and hit the second.
    pub fetch_second_level_hits: u64,
    /// Fetches that missed both levels: page walks.
    pub fetch_walks: u64,
    /// Walks to set a dirty flag, or to confirm a fault.
    pub assist_walks: u64,
    /// References to the guest's paging structures.
    pub guest_references: u64,
    /// References to EPT paging structures.
    pub ept_references: u64,
    /// Nested (guest-physical) look-ups answered without EPT references.
    pub nested_hits: u64,
    /// Contexts retired by CR3 writes, INVPCID, INVVPID, INVEPT and VM-entry without VPID.
    pub flushes: u64,
    /// Single pages invalidated.
    pub page_invalidations: u64,
}
