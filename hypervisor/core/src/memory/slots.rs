use std::ptr::NonNull;

use silicon_memory::{BankError, HostPhysical, PAGE_SIZE, PhysicalMemory};

/// How a slot may be used: KVM's `KVM_MEM_*` flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryFlags {
    #[default]
    ReadWrite,
    /// Guest writes leave to the VMM as MMIO.
    ReadOnly,
}

/// A memory slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub number: u32,
    pub guest: u64,
    pub len: u64,
    /// Where the slot's memory is in the modelled machine.
    pub host: HostPhysical,
    pub flags: MemoryFlags,
}

/// Why a slot was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// Slot {number} at {guest:#x} overlaps slot {other}: give each slot addresses of its own.
    #[error("memory slot {number} at {guest:#x} overlaps slot {other}: give each slot addresses of its own")]
    Overlap { number: u32, guest: u64, other: u32 },
    /// Slot {number} exists: delete it first.
    #[error("memory slot {number} exists: delete it first")]
    Exists { number: u32 },
    #[error(transparent)]
    Bank(#[from] BankError),
}

/// Host-physical addresses of slots start here.
const HOST_BASE: u64 = 1 << 32;
/// Slots keep the offset of guest-physical addresses in 1 GiB, so that EPT can map large pages.
const ALIGN: u64 = 1 << 30;

/// All slots of a VM.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    next_host: u64,
}

impl Default for Slots {
    fn default() -> Self {
        Self { slots: Vec::new(), next_host: HOST_BASE }
    }
}

impl Slots {
    /// Adds a slot over memory at `host`.
    ///
    /// # Safety
    /// As for [`PhysicalMemory::adopt`]: the memory stays mapped while the VM lives.
    ///
    /// # Errors
    /// See [`SlotError`].
    #[expect(unsafe_code, reason = "the VMM's own memory becomes guest memory, as with KVM_SET_USER_MEMORY_REGION")]
    pub unsafe fn add(
        &mut self,
        memory: &PhysicalMemory,
        number: u32,
        guest: u64,
        len: u64,
        host: NonNull<u8>,
        flags: MemoryFlags,
    ) -> Result<(), SlotError> {
        if self.slots.iter().any(|s| s.number == number) {
            return Err(SlotError::Exists { number });
        }
        if let Some(other) = self.slots.iter().find(|s| guest < s.guest + s.len && s.guest < guest.saturating_add(len))
        {
            return Err(SlotError::Overlap { number, guest, other: other.number });
        }
        if !guest.is_multiple_of(PAGE_SIZE) {
            return Err(BankError::Unaligned { base: guest, len }.into());
        }
        let base = HostPhysical(self.next_host + guest % ALIGN);
        // SAFETY: the caller's promise is the one that `adopt` asks for.
        unsafe { memory.adopt(base, len, host)? };
        self.next_host = (base.0 + len).next_multiple_of(ALIGN);
        self.slots.push(Slot { number, guest, len, host: base, flags });
        self.slots.sort_by_key(|s| s.guest);
        Ok(())
    }

    /// The slot that holds a guest-physical address.
    #[must_use]
    pub fn find(&self, guest: u64) -> Option<&Slot> {
        self.slots.iter().find(|s| guest.wrapping_sub(s.guest) < s.len)
    }

    /// Host-physical address of a guest-physical one.
    #[must_use]
    pub fn host(&self, guest: u64) -> Option<HostPhysical> {
        self.find(guest).map(|s| HostPhysical(s.host.0 + (guest - s.guest)))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }
}
