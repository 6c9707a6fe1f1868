use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{Frame, HostPhysical, PAGE_SIZE, PageState};

/// Why a bank could not be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BankError {
    /// Bank {base:#x}+{len:#x} is not a whole number of 4 KiB pages: align its base, size and host address.
    #[error(
        "memory bank {base:#x}+{len:#x} is not a whole number of 4 KiB pages: align its base, size and host address"
    )]
    Unaligned { base: u64, len: u64 },
    /// Bank {base:#x}+{len:#x} overlaps one that exists.
    #[error("memory bank {base:#x}+{len:#x} overlaps one that exists")]
    Overlap { base: u64, len: u64 },
    /// The machine has {MOST_BANKS} memory banks already: merge memory slots.
    #[error("the machine has {MOST_BANKS} memory banks already: merge memory slots")]
    TooMany,
    /// The host has no {len:#x} bytes for a bank: use a smaller guest memory.
    #[error("the host has no {len:#x} bytes for a memory bank: use a smaller guest memory")]
    OutOfMemory { len: u64 },
}

/// The most banks that a machine can have.
pub const MOST_BANKS: usize = 1024;

#[derive(Debug)]
struct Bank {
    base: u64,
    len: u64,
    host: NonNull<u8>,
    /// Leaked with the bank: pages live as long as frames may.
    pages: &'static [PageState],
}

// SAFETY: the pointer is only handed out as `Frame`, which is safe to share.
unsafe impl Send for Bank {}
// SAFETY: as above.
unsafe impl Sync for Bank {}

/// The banks of a modelled machine. Banks are added, never removed, so look-ups take no lock.
#[derive(Debug)]
pub struct PhysicalMemory {
    banks: Box<[OnceLock<Bank>]>,
    len: AtomicUsize,
    adding: Mutex<()>,
    /// Raised whenever a page becomes a source of decoded code; processors that see it change drop their
    /// permission to store without a look at [`PageState`].
    code_epoch: AtomicU64,
}

impl Default for PhysicalMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl PhysicalMemory {
    /// A machine without memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            banks: (0..MOST_BANKS).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            adding: Mutex::new(()),
            code_epoch: AtomicU64::new(0),
        }
    }

    /// Adds a bank of zeroed memory at `base`. The memory is never given back.
    ///
    /// # Errors
    /// Unaligned or overlapping range, or no host memory.
    pub fn add(&self, base: HostPhysical, len: u64) -> Result<(), BankError> {
        self.check(base.0, len)?;
        // The allocator hands out untouched pages, which cost nothing until used, only where it need not align.
        const ALIGN: usize = 2 << 20;
        let size = usize::try_from(len).ok().and_then(|len| len.checked_add(ALIGN));
        let layout = size.and_then(|size| Layout::from_size_align(size, 16).ok());
        let layout = layout.ok_or(BankError::OutOfMemory { len })?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(BankError::OutOfMemory { len })?;
        // SAFETY: less than ALIGN is skipped, and the allocation is that much longer than the bank.
        let host = unsafe { start.add(start.align_offset(ALIGN)) };
        self.insert(base.0, len, host)
    }

    /// Adds memory that somebody else has mapped, such as a VMM's memory slot.
    ///
    /// # Safety
    /// `host` must stay mapped, readable and writable for `len` bytes for as long as any processor uses this machine.
    ///
    /// # Errors
    /// Unaligned or overlapping range.
    pub unsafe fn adopt(&self, base: HostPhysical, len: u64, host: NonNull<u8>) -> Result<(), BankError> {
        if !(host.as_ptr() as u64).is_multiple_of(PAGE_SIZE) {
            return Err(BankError::Unaligned { base: base.0, len });
        }
        self.check(base.0, len)?;
        self.insert(base.0, len, host)
    }

    fn check(&self, base: u64, len: u64) -> Result<(), BankError> {
        let end = base.checked_add(len);
        if len == 0 || !base.is_multiple_of(PAGE_SIZE) || !len.is_multiple_of(PAGE_SIZE) || end.is_none() {
            return Err(BankError::Unaligned { base, len });
        }
        if self.banks().any(|b| base < b.base + b.len && b.base < base + len) {
            return Err(BankError::Overlap { base, len });
        }
        Ok(())
    }

    fn banks(&self) -> impl Iterator<Item = &Bank> {
        self.banks[..self.len.load(Ordering::Acquire)].iter().filter_map(OnceLock::get)
    }

    fn insert(&self, base: u64, len: u64, host: NonNull<u8>) -> Result<(), BankError> {
        let pages: Vec<PageState> = (0..len / PAGE_SIZE).map(|_| PageState::default()).collect();
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(base, len)?;
        let at = self.len.load(Ordering::Acquire);
        let slot = self.banks.get(at).ok_or(BankError::TooMany)?;
        let fresh = slot.set(Bank { base, len, host, pages: Vec::leak(pages) }).is_ok();
        assert!(fresh, "bank slots are filled once, under the lock");
        self.len.store(at + 1, Ordering::Release);
        Ok(())
    }

    /// The frame and state of the page that holds `address`, if there is memory.
    #[must_use]
    pub fn page(&self, address: HostPhysical) -> Option<(Frame, &'static PageState)> {
        let bank = self.banks().find(|b| address.0.wrapping_sub(b.base) < b.len)?;
        let page = (address.0 - bank.base) / PAGE_SIZE;
        let state = bank.pages.get(usize::try_from(page).ok()?)?;
        // SAFETY: `page` is inside of the bank, as `pages` has an element for it.
        let host = unsafe { bank.host.add((page * PAGE_SIZE) as usize) };
        Some((Frame(host), state))
    }

    /// Whether `address` is backed.
    #[must_use]
    pub fn contains(&self, address: HostPhysical) -> bool {
        self.page(address).is_some()
    }

    /// Number of times that a page has become a source of decoded code.
    #[inline]
    pub fn code_epoch(&self) -> u64 {
        self.code_epoch.load(Ordering::Acquire)
    }

    /// Announces that a page has become a source of decoded code.
    pub fn raise_code_epoch(&self) -> u64 {
        self.code_epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Tells the processors that bytes were changed from outside (a device or the VMM).
    pub fn written(&self, address: HostPhysical, len: u64) {
        let mut at = address.page().0;
        while at < address.0.saturating_add(len) {
            if let Some((_, state)) = self.page(HostPhysical(at)) {
                state.written();
            }
            at += PAGE_SIZE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_answers_for_its_pages_and_no_others() {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0x10_0000), 0x3000).unwrap();
        assert!(memory.page(HostPhysical(0xf_ffff)).is_none());
        assert!(memory.page(HostPhysical(0x10_3000)).is_none());
        let (frame, _) = memory.page(HostPhysical(0x10_2ffe)).unwrap();
        frame.store(0xffe, 0x1234_u16);
        assert_eq!(memory.page(HostPhysical(0x10_2000)).unwrap().0.load::<u16>(0xffe), 0x1234);
    }

    #[test]
    fn overlapping_and_unaligned_banks_are_refused() {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0x1000), 0x2000).unwrap();
        assert_eq!(memory.add(HostPhysical(0x2000), 0x1000), Err(BankError::Overlap { base: 0x2000, len: 0x1000 }));
        assert_eq!(memory.add(HostPhysical(0x10), 0x1000), Err(BankError::Unaligned { base: 0x10, len: 0x1000 }));
        assert!(memory.add(HostPhysical(u64::MAX - 0xfff), 0x1000).is_err());
    }

    #[test]
    fn a_write_voids_code_once() {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0), 0x1000).unwrap();
        let (_, state) = memory.page(HostPhysical(0)).unwrap();
        assert_eq!(state.mark_code(), (0, true));
        assert_eq!(state.mark_code(), (0, false));
        memory.written(HostPhysical(8), 1);
        assert_eq!(state.generation(), 1);
        memory.written(HostPhysical(8), 1);
        assert_eq!(state.generation(), 1);
    }
}
