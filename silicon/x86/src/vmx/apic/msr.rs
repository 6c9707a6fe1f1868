//! CR8 with a TPR shadow, and the MSRs of virtual x2APIC mode ("Virtualizing CR8-Based TPR Accesses", "Virtualizing
//! MSR-Based APIC Accesses").

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::page::offset;
use crate::Core;

/// MSRs of the local APIC in x2APIC mode: register offset / 16 from here.
const FIRST: u32 = 0x800;
const LAST: u32 = 0x8ff;
const TPR: u32 = 0x808;
const EOI: u32 = 0x80b;
const SELF_IPI: u32 = 0x83f;

impl Core {
    /// CR8 as the TPR shadow has it.
    pub(crate) fn shadow_cr8(&self) -> u64 {
        u64::from(self.vtpr() >> 4)
    }

    /// MOV to CR8 with a TPR shadow; `value` is at most 15.
    pub(crate) fn write_shadow_cr8(&mut self, value: u64) {
        self.set_vapic(offset::TPR, (value as u32 & 0xf) << 4);
        self.virtualize_tpr();
    }

    /// RDMSR of an APIC register that is virtualized; `None`: the instruction operates normally.
    pub(crate) fn read_virtual_x2apic(&self, number: u32) -> Option<u64> {
        if !(FIRST..=LAST).contains(&number) || !self.has_secondary(secondary::VIRTUALIZE_X2APIC_MODE) {
            return None;
        }
        let virtualized = number == TPR || self.has_secondary(secondary::APIC_REGISTER_VIRTUALIZATION);
        virtualized.then(|| self.vapic_wide(((number & 0xff) << 4) as u16))
    }

    /// WRMSR of an APIC register that is virtualized. `None`: the instruction operates normally; `Some(None)`: #GP(0).
    pub(crate) fn write_virtual_x2apic(&mut self, number: u32, value: u64) -> Option<Option<()>> {
        if !(FIRST..=LAST).contains(&number) || !self.has_secondary(secondary::VIRTUALIZE_X2APIC_MODE) {
            return None;
        }
        let interrupts = self.has_secondary(secondary::VIRTUAL_INTERRUPT_DELIVERY);
        let valid = match number {
            TPR => value >> 8 == 0,
            EOI if interrupts => value == 0,
            SELF_IPI if interrupts => value >> 8 == 0,
            _ => return None,
        };
        if !valid {
            return Some(None);
        }
        let at = ((number & 0xff) << 4) as u16;
        self.set_vapic_wide(at, value);
        match number {
            TPR => self.virtualize_tpr(),
            EOI => self.virtualize_eoi(),
            _ if value >= 16 => self.virtualize_self_ipi(value as u8),
            _ => self.exit_after_instruction(ExitReason::ApicWrite, offset::SELF_IPI.into()),
        }
        Some(Some(()))
    }
}
