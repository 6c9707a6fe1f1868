//! The VM's EPT: filled on demand from the memory slots, as KVM does on a violation.

use silicon_memory::{HostPhysical, PhysicalMemory};

use super::{MemoryFlags, Pool, Slots};

const READ: u64 = 1;
const WRITE: u64 = 2;
const EXECUTE: u64 = 4;
const WRITE_BACK: u64 = 6 << 3;
const LARGE: u64 = 1 << 7;
const LARGE_SIZE: u64 = 2 << 20;
/// Writable and executable but not readable: always a misconfiguration, which marks device memory, as KVM does.
const DEVICE: u64 = WRITE | EXECUTE;

/// What became of a guest-physical address that had no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Memory: the guest can go on.
    Memory,
    /// No slot: a device. Further accesses are misconfigurations.
    Device,
    /// A store to a read-only slot.
    ReadOnly,
}

/// The EPT of a VM.
#[derive(Debug)]
pub struct Ept {
    root: HostPhysical,
}

impl Ept {
    /// An empty EPT.
    #[must_use]
    pub fn new(pool: &mut Pool) -> Self {
        Self { root: pool.page() }
    }

    /// The EPT pointer: write-back tables, 4 levels, no accessed and dirty flags.
    #[must_use]
    pub fn pointer(&self) -> u64 {
        self.root.0 | 3 << 3 | 6
    }

    /// Maps the page that holds `guest`: 2 MiB where the slot covers them, else 4 KiB.
    pub fn map(&self, memory: &PhysicalMemory, pool: &mut Pool, slots: &Slots, guest: u64, write: bool) -> Mapped {
        let Some(slot) = slots.find(guest) else {
            self.set(memory, pool, guest & !0xfff, 0, DEVICE);
            return Mapped::Device;
        };
        let host = slot.host.0 + (guest - slot.guest);
        let rights = match slot.flags {
            MemoryFlags::ReadWrite => READ | WRITE | EXECUTE,
            MemoryFlags::ReadOnly if write => return Mapped::ReadOnly,
            MemoryFlags::ReadOnly => READ | EXECUTE,
        };
        let start = guest & !(LARGE_SIZE - 1);
        let large = start >= slot.guest && start + LARGE_SIZE <= slot.guest + slot.len;
        if large {
            self.set(memory, pool, start, 1, (host & !(LARGE_SIZE - 1)) | rights | WRITE_BACK | LARGE);
        } else {
            self.set(memory, pool, guest & !0xfff, 0, (host & !0xfff) | rights | WRITE_BACK);
        }
        Mapped::Memory
    }

    fn set(&self, memory: &PhysicalMemory, pool: &mut Pool, guest: u64, level: u32, entry: u64) {
        let mut table = self.root;
        for l in (level + 1..4).rev() {
            let Some((frame, _)) = memory.page(table) else { return };
            let offset = ((guest >> (12 + 9 * l)) & 0x1ff) * 8;
            let next: u64 = frame.load(offset);
            table = if next & (READ | WRITE | EXECUTE) == 0 {
                let page = pool.page();
                frame.store(offset, page.0 | READ | WRITE | EXECUTE);
                page
            } else {
                HostPhysical(next & !0xfff)
            };
        }
        if let Some((frame, _)) = memory.page(table) {
            frame.store(((guest >> (12 + 9 * level)) & 0x1ff) * 8, entry);
        }
    }
}
