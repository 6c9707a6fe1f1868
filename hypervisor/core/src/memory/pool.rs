use silicon_memory::{HostPhysical, PAGE_SIZE, PhysicalMemory};

/// Host-physical address of the memory that the hypervisor keeps for itself.
const BASE: u64 = 1 << 20;
const SIZE: u64 = 512 << 20;

/// Pages of the modelled machine for the hypervisor's own structures: EPT tables, bitmaps.
#[derive(Debug)]
pub struct Pool {
    next: u64,
}

impl Pool {
    /// Takes the hypervisor's memory in the machine.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn new(memory: &PhysicalMemory) -> Result<Self, silicon_memory::BankError> {
        memory.add(HostPhysical(BASE), SIZE)?;
        Ok(Self { next: BASE })
    }

    /// A zeroed page (the bank is zeroed, and each page is handed out once).
    ///
    /// # Panics
    /// When 512 MiB of tables are in use: with at most one table for 2 MiB of guest memory, that maps 256 TiB.
    pub fn page(&mut self) -> HostPhysical {
        let page = self.next;
        assert!(page < BASE + SIZE, "the hypervisor's memory is used up");
        self.next += PAGE_SIZE;
        HostPhysical(page)
    }
}
