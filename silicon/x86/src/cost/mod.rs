//! Counts (exact) and the cost table (modelled).
//!
//! Modelled cycles are in quarter cycles, the unit of [`crate::Core::budget`]. Each figure has its source; this file is
//! the one place to change them.

pub mod table;
mod vector;
mod x87;

/// A hit in the second-level TLB: 7 cycles (chips-and-cheese measurements of Golden Cove: 7-8).
pub const SECOND_LEVEL_HIT: u64 = 4 * 7;
/// The fixed part of a page walk: 12 cycles (measured on Emerald Rapids: a walk with cached entries costs about 50
/// cycles, of which the references below are the rest).
pub const WALK: u64 = 4 * 12;
/// One reference to a paging structure that is in the cache: 5 cycles, an L1 hit.
pub const WALK_REFERENCE: u64 = 4 * 5;

/// 32 bytes of a repeated string instruction that works in one piece: 1 cycle, one 32-byte load and store (Intel 64 and
/// IA-32 Architectures Optimization Reference Manual, "Enhanced REP MOVSB and STOSB Operation").
pub const STRING_BULK: u64 = 4;
/// One element of a repeated string instruction that goes element by element: 2 cycles (Agner Fog, "Instruction tables").
pub const STRING_ELEMENT: u64 = 4 * 2;

/// Delivery of an exception or interrupt through the IDT, up to the first instruction of the handler: 715 cycles, what a
/// page fault takes in user mode on Haswell, to which IRET adds 330 (measured by Linus Torvalds, "Most noticeable single
/// cost? Page fault handling by the CPU", 2014). That every event costs the same, in every mode and from every privilege
/// level, and that later cores are no faster, are assumptions of the model.
pub const EVENT_DELIVERY: u64 = 4 * 715;

/// Exact counts of a logical processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Instructions retired by the guest; a repeated string instruction is one.
    pub instructions: u64,
    /// Stores to pages that decoded code came from.
    pub code_invalidations: u64,
    /// Blocks decoded.
    pub blocks_decoded: u64,
}
