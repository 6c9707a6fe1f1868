//! Memory that parent and child share: the pages of the cases, the progress, and the slots.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;

use super::case::Slot;
use super::place::DATA_BYTES;

pub const CODE_AT: usize = 0;
pub const DATA_AT: usize = 0x1000;
pub const READ_ONLY_AT: usize = DATA_AT + DATA_BYTES;
const PROGRESS_AT: usize = READ_ONLY_AT + 0x1000;
const SLOTS_AT: usize = PROGRESS_AT + 0x1000;
/// Cases of a batch.
pub const SLOTS: usize = 256;
const BYTES: usize = (SLOTS_AT + SLOTS * size_of::<Slot>()).next_multiple_of(0x1000);

pub struct Shared {
    file: OwnedFd,
    start: *mut u8,
}

impl Shared {
    /// Fresh memory, whose file descriptor child processes inherit.
    pub fn create() -> Self {
        // SAFETY: makes a new file, which the mapping below makes long enough.
        unsafe {
            let fd = libc::memfd_create(c"cases".as_ptr(), 0);
            assert!(fd >= 0 && libc::ftruncate(fd, BYTES as i64) == 0, "shared memory");
            Self::open(fd)
        }
    }

    /// The memory of an inherited file descriptor.
    pub fn open(fd: RawFd) -> Self {
        // SAFETY: the file is `BYTES` long and this is its only owner in the process.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0);
            assert_ne!(start, libc::MAP_FAILED, "shared memory is mapped");
            Self { file: OwnedFd::from_raw_fd(fd), start: start.cast() }
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Maps a part of the memory at `address` too.
    ///
    /// # Safety
    /// Nothing else may live at `address`.
    pub unsafe fn map_at(&self, address: u64, offset: usize, len: usize, access: libc::c_int) {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_POPULATE;
        // SAFETY: as the caller promises.
        let at = unsafe { libc::mmap(address as *mut _, len, access, flags, self.file.as_raw_fd(), offset as i64) };
        assert_eq!(at as u64, address, "{address:#x} is free");
    }

    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < BYTES);
        // SAFETY: inside of the mapping.
        unsafe { self.start.add(offset) }
    }

    /// Which slot the child is at.
    pub fn progress(&self) -> &AtomicU32 {
        // SAFETY: aligned, inside of the mapping, and only used as an atomic.
        unsafe { &*self.at(PROGRESS_AT).cast() }
    }

    pub fn slot(&self, i: usize) -> *mut Slot {
        assert!(i < SLOTS);
        self.at(SLOTS_AT + i * size_of::<Slot>()).cast()
    }
}
