use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};

use super::{MemoryFlags, Slots};

/// Guest-physical memory as the hypervisor reads and writes it.
#[derive(Debug)]
pub struct GuestMemory {
    pub machine: Arc<PhysicalMemory>,
    pub slots: Slots,
}

/// A guest-physical range that is not all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("guest-physical address {guest:#x} is not memory")]
pub struct NotMemory {
    pub guest: u64,
}

impl GuestMemory {
    /// Copies guest memory out.
    ///
    /// # Errors
    /// The first address without memory.
    pub fn read(&self, guest: u64, out: &mut [u8]) -> Result<(), NotMemory> {
        let mut at = guest;
        let mut out = out;
        while !out.is_empty() {
            let offset = (at & 0xfff) as usize;
            let len = out.len().min(4096 - offset);
            let (frame, _) = self.page(at)?;
            let (head, rest) = out.split_at_mut(len);
            frame.read(offset, head);
            out = rest;
            at = at.wrapping_add(len as u64);
        }
        Ok(())
    }

    /// Copies into guest memory; decoded code there is void.
    ///
    /// # Errors
    /// The first address without memory; what is before it has been written.
    pub fn write(&self, guest: u64, data: &[u8]) -> Result<(), NotMemory> {
        let mut at = guest;
        let mut data = data;
        while !data.is_empty() {
            let offset = (at & 0xfff) as usize;
            let len = data.len().min(4096 - offset);
            let (frame, state) = self.page(at)?;
            frame.write(offset, &data[..len]);
            state.written();
            data = &data[len..];
            at = at.wrapping_add(len as u64);
        }
        Ok(())
    }

    /// Whether the guest may write there.
    #[must_use]
    pub fn is_writable(&self, guest: u64) -> bool {
        self.slots.find(guest).is_some_and(|slot| slot.flags == MemoryFlags::ReadWrite)
    }

    fn page(&self, guest: u64) -> Result<(silicon_memory::Frame, &'static silicon_memory::PageState), NotMemory> {
        let host: HostPhysical = self.slots.host(guest).ok_or(NotMemory { guest })?;
        self.machine.page(host).ok_or(NotMemory { guest })
    }

    /// The VMM or a device wrote guest memory directly.
    pub fn written(&self, guest: u64, len: u64) {
        let mut at = guest & !0xfff;
        while at < guest.saturating_add(len) {
            if let Some(host) = self.slots.host(at) {
                self.machine.written(host, 1);
            }
            at += 4096;
        }
    }
}
