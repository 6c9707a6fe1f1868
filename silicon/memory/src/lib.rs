//! The modelled machine's physical memory: banks of pages at host-physical addresses.
//!
//! This crate is one of the few that use `unsafe`: a guest's load ends in a host load through a raw pointer. The
//! argument for all of it: a [`Frame`] is only made from a bank, a bank's mapping is never given back to the operating
//! system while the process lives (own banks), or for as long as the caller of [`PhysicalMemory::adopt`] promises
//! (adopted banks), and every access stays inside of the 4 KiB of its frame.
#![expect(unsafe_code, reason = "guest memory is host memory behind raw pointers")]

mod bank;
mod frame;
mod pages;

pub use bank::{BankError, PhysicalMemory};
pub use frame::{Frame, Word};
pub use pages::PageState;

/// Bytes of the smallest page; frames, banks and EPT leaves are multiples of it.
pub const PAGE_SIZE: u64 = 4096;

/// A host-physical address: what an EPT leaf, a VMCS bitmap field or an EPT pointer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HostPhysical(pub u64);

impl HostPhysical {
    /// The address with its offset inside of the page cleared.
    #[must_use]
    pub const fn page(self) -> Self {
        Self(self.0 & !(PAGE_SIZE - 1))
    }
}
