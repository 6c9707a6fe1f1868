use super::Shared;
use crate::vcpu::Vcpu;

impl Vcpu {
    pub(super) fn cpuid_exit(&mut self, shared: &Shared) {
        let gpr = &self.processor.core.gpr;
        let r = self.cpuid(gpr[0] as u32, gpr[1] as u32, shared.vcpus);
        let gpr = &mut self.processor.core.gpr;
        gpr[0] = u64::from(r.eax);
        gpr[3] = u64::from(r.ebx);
        gpr[1] = u64::from(r.ecx);
        gpr[2] = u64::from(r.edx);
    }
}
