//! XSETBV.

use super::Next;
use crate::vcpu::Vcpu;

impl Vcpu {
    /// The exit comes after the processor's checks of CR4.OSXSAVE and CPL, and before those of index and value.
    pub(super) fn xsetbv_exit(&mut self) -> Next {
        let gpr = &self.processor.core.gpr;
        let index = gpr[1] as u32;
        let value = gpr[0] & 0xffff_ffff | gpr[2] << 32;
        if index == 0 && self.set_xcr0(value).is_ok() {
            self.skip()
        } else {
            self.queue_gp();
            Next::Resume
        }
    }
}
