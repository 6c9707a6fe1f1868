//! The PDPTE registers of PAE paging ("PDPTE Registers").

use silicon_memory::HostPhysical;
use x86_defs::control::{cr0, cr4, efer};

use super::ept::{EptFailure, right};
use super::ept_exit::Reached;
use crate::{Core, Leave};

const PRESENT: u64 = 1;
/// Bits 2:1 and 8:5.
const RESERVED: u64 = 0x1e6;

impl Core {
    /// Whether PAE paging is in use with these control registers.
    #[must_use]
    pub fn pae_paging(&self, cr0: u64, cr4: u64) -> bool {
        cr0 & cr0::PG != 0 && cr4 & cr4::PAE != 0 && self.efer & efer::LME == 0
    }

    /// Loads the PDPTE registers from the table that `cr3` leads to, as MOV to CR3 and task switches do with PAE paging,
    /// and changes of CR0 and CR4 that bring it about.
    ///
    /// # Errors
    /// #GP(0) for a reserved bit in a present entry, or the VM-exit of the access; then no register changes.
    pub fn load_pdptes(&mut self, cr3: u64) -> Result<(), Leave> {
        let table = cr3 & 0xffff_ffe0;
        let page = self
            .ept_translate(table, right::READ)
            .and_then(|nested| self.memory.page(HostPhysical(nested.host)).ok_or(EptFailure::Misconfiguration));
        let frame = match page {
            Ok((frame, _)) => frame,
            Err(failure) => return Err(self.ept_exit(Reached::pdptes(table), failure)),
        };
        let pdptes: [u64; 4] = std::array::from_fn(|i| frame.load(table + 8 * i as u64));
        if pdptes.iter().any(|&entry| self.pdpte_is_bad(entry)) {
            return Err(self.gp0());
        }
        self.vmx.pdptes = pdptes;
        Ok(())
    }

    /// Whether an entry of the page-directory-pointer table cannot be loaded.
    #[must_use]
    pub fn pdpte_is_bad(&self, entry: u64) -> bool {
        entry & PRESENT != 0 && (entry & RESERVED != 0 || !self.model.is_physical(entry))
    }
}
