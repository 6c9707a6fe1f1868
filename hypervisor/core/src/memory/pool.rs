use silicon_memory::{HostPhysical, PAGE_SIZE, PhysicalMemory};

/// Host-physical address of the memory that the hypervisor keeps for itself.
const BASE: u64 = 1 << 20;
const SIZE: u64 = 512 << 20;

/// Pages of the modelled machine for the hypervisor's own structures: EPT tables, bitmaps.
#[derive(Debug)]
pub struct Pool {
    next: u64,
    free: Vec<u64>,
}

impl Pool {
    /// Takes the hypervisor's memory in the machine.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn new(memory: &PhysicalMemory) -> Result<Self, silicon_memory::BankError> {
        memory.add(HostPhysical(BASE), SIZE)?;
        Ok(Self { next: BASE, free: Vec::new() })
    }

    /// A zeroed page.
    ///
    /// # Panics
    /// When 512 MiB of tables are in use: with at most one table for 2 MiB of guest memory, that maps 256 TiB.
    pub fn page(&mut self, memory: &PhysicalMemory) -> HostPhysical {
        if let Some(page) = self.free.pop() {
            if let Some((frame, _)) = memory.page(HostPhysical(page)) {
                frame.fill(0, PAGE_SIZE as usize, 0);
            }
            return HostPhysical(page);
        }
        let page = self.next;
        assert!(page < BASE + SIZE, "the hypervisor's memory is used up");
        self.next += PAGE_SIZE;
        HostPhysical(page)
    }

    /// Takes a page back.
    pub fn release(&mut self, page: HostPhysical) {
        self.free.push(page.0);
    }
}
