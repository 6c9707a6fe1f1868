//! Page-modification logging.

use silicon_memory::HostPhysical;
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::secondary;

use crate::Core;

/// Entries of the log.
const ENTRIES: u64 = 512;

/// Whether a page could be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageLog {
    /// It was, or need not be.
    Done,
    /// There is no room: the access does not happen, and a VM-exit follows.
    Full,
}

impl Core {
    /// A guest-physical page is about to get its dirty flag in EPT.
    pub(crate) fn log_modified_page(&mut self, guest: u64) -> PageLog {
        if self.vmx.controls.secondary & secondary::ENABLE_PML == 0 {
            return PageLog::Done;
        }
        let vmcs = self.vmcs();
        let (index, log) = (vmcs.get(Field::PmlIndex), vmcs.get(Field::PmlAddress));
        if index >= ENTRIES {
            return PageLog::Full;
        }
        if let Some((frame, _)) = self.memory.page(HostPhysical(log)) {
            frame.store(index * 8, guest & !0xfff);
        }
        // From 0 it becomes 0xffff, which is beyond the log.
        self.vmcs_mut().set(Field::PmlIndex, index.wrapping_sub(1) & 0xffff);
        PageLog::Done
    }
}
