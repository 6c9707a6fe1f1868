use x86_defs::vmx::controls::interruption;

use super::Next;
use crate::vcpu::Vcpu;

impl Vcpu {
    /// The exception bitmap is empty, so this is an NMI of the host.
    pub(super) fn exception_exit(&mut self) -> Next {
        let information = self.processor.core.vmx.exit.interruption;
        if information & interruption::TYPE == interruption::TYPE_NMI {
            return Next::Resume;
        }
        self.fail(format!("exception {:#x} left the guest although none is intercepted", information & 0xff))
    }
}
