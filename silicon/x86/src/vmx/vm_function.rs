//! VM functions ("VM Functions"): EPTP switching.

use silicon_memory::HostPhysical;
use x86_defs::vmx::controls::secondary;
use x86_defs::vmx::{ExitReason, Field};

use super::check_controls::check_eptp;
use crate::op::Done;
use crate::{Core, Leave, Op};

const EPTP_SWITCHING: u32 = 0;
/// Entries of the EPTP list.
const LIST_ENTRIES: u32 = 512;

impl Core {
    /// VMFUNC: the function is in EAX.
    ///
    /// # Errors
    /// #UD or a VM-exit; [`Leave::End`] when it is done.
    pub(crate) fn vm_function(&mut self, op: &Op) -> Done {
        let function = self.gpr[0] as u32;
        if self.vmx.controls.secondary & secondary::ENABLE_VM_FUNCTIONS == 0 || function > 63 {
            return Err(self.ud());
        }
        let enabled = self.vmx.controls.vm_functions >> function & 1 != 0;
        match self.listed_eptp().filter(|_| enabled && function == EPTP_SWITCHING) {
            Some(eptp) => {
                self.switch_eptp(eptp);
                Err(Leave::End)
            }
            None => Err(self.vmexit(op, ExitReason::Vmfunc, 0)),
        }
    }

    /// The entry of the EPTP list that ECX names, if VM-entry would take it.
    fn listed_eptp(&self) -> Option<u64> {
        let index = self.gpr[1] as u32;
        let list = self.vmcs().get(Field::EptpListAddress);
        let (frame, _) = (index < LIST_ENTRIES).then(|| self.memory.page(HostPhysical(list))).flatten()?;
        let eptp = frame.load(u64::from(index) * 8);
        check_eptp(eptp, &self.model).is_ok().then_some(eptp)
    }

    fn switch_eptp(&mut self, eptp: u64) {
        self.vmcs_mut().set(Field::EptPointer, eptp);
        if self.vmx.controls.secondary & secondary::EPT_VIOLATION_VE != 0 {
            let index = self.gpr[1] & 0xffff;
            self.vmcs_mut().set(Field::EptpIndex, index);
        }
        self.vmx.controls.eptp = eptp;
        // Translations of both are tagged by their EPTP: none is invalidated.
        self.tlb_select();
        self.mmu.leave_page();
    }
}
