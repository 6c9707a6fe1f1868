//! MSR accesses.

use super::Irqchip;
use crate::lapic::MsrError;
use crate::now::Now;

impl Irqchip {
    /// Whether [`msr_read`](Self::msr_read) and [`msr_write`](Self::msr_write) know the MSR: IA32_APIC_BASE,
    /// IA32_TSC_DEADLINE and 0x800 to 0x8ff.
    #[must_use]
    pub const fn owns_msr(msr: u32) -> bool {
        crate::lapic::is_lapic_msr(msr)
    }

    /// RDMSR by the vCPU.
    ///
    /// # Errors
    ///
    /// #GP, or that the MSR is not one of the local APIC's.
    pub fn msr_read(&self, vcpu: usize, msr: u32, now: Now) -> Result<u64, MsrError> {
        self.lapics[vcpu].msr_read(msr, now)
    }

    /// WRMSR by the vCPU.
    ///
    /// # Errors
    ///
    /// #GP, or that the MSR is not one of the local APIC's.
    pub fn msr_write(&mut self, vcpu: usize, msr: u32, value: u64, now: Now) -> Result<(), MsrError> {
        let effect = self.lapics[vcpu].msr_write(vcpu, msr, value, now)?;
        self.apply(effect);
        Ok(())
    }
}
