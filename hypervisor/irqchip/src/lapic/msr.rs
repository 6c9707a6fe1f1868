//! The x2APIC form, and the two MSRs beside it.
//!
//! Source: Intel SDM, "x2APIC Register Address Space", "TSC-Deadline Mode".

use super::LocalApic;
use super::apic_base::IA32_APIC_BASE;
use super::error::{GeneralProtection, MsrError};
use super::icr::X2APIC_RESERVED;
use super::registers::Register;
use super::write::Effect;
use crate::message::Origin;
use crate::now::Now;

/// The IA32_TSC_DEADLINE MSR.
pub const IA32_TSC_DEADLINE: u32 = 0x6e0;
const X2APIC_FIRST: u32 = 0x800;
const X2APIC_LAST: u32 = 0x8ff;

/// Whether the MSR belongs to the local APIC.
#[must_use]
pub const fn is_lapic_msr(msr: u32) -> bool {
    matches!(msr, IA32_APIC_BASE | IA32_TSC_DEADLINE | X2APIC_FIRST..=X2APIC_LAST)
}

fn x2apic_register(msr: u32) -> Option<Register> {
    let index = u16::try_from(msr.checked_sub(X2APIC_FIRST)?).ok()?;
    (index < 0x40).then_some(Register(index << 4))
}

impl LocalApic {
    /// RDMSR of IA32_APIC_BASE, IA32_TSC_DEADLINE or an x2APIC register.
    ///
    /// # Errors
    ///
    /// #GP as on hardware, or [`MsrError::Foreign`] for other MSRs.
    pub fn msr_read(&self, msr: u32, now: Now) -> Result<u64, MsrError> {
        let fault = GeneralProtection { msr };
        match msr {
            IA32_APIC_BASE => Ok(self.apic_base()),
            IA32_TSC_DEADLINE if self.features.tsc_deadline => Ok(self.tsc_deadline()),
            IA32_TSC_DEADLINE => Err(fault.into()),
            X2APIC_FIRST..=X2APIC_LAST => {
                let register = x2apic_register(msr).filter(|_| self.x2apic_enabled()).ok_or(fault)?;
                let low = self.read_register(register, now).map_err(|_| fault)?;
                let high = if register == Register::ICR { self.registers.get(Register::ICR2) } else { 0 };
                Ok(u64::from(high) << 32 | u64::from(low))
            }
            _ => Err(MsrError::Foreign { msr }),
        }
    }

    /// WRMSR of the same. `vcpu` is the index of this local APIC.
    ///
    /// Reserved bits in the low half of a register other than ICR, EOI, ESR and self IPI are dropped, as in KVM, and do
    /// not fault.
    ///
    /// # Errors
    ///
    /// #GP as on hardware, or [`MsrError::Foreign`] for other MSRs.
    pub fn msr_write(&mut self, vcpu: usize, msr: u32, value: u64, now: Now) -> Result<Effect, MsrError> {
        let fault = GeneralProtection { msr };
        match msr {
            IA32_APIC_BASE => {
                self.write_apic_base(value)?;
                Ok(Effect::None)
            }
            IA32_TSC_DEADLINE if self.features.tsc_deadline => {
                self.write_tsc_deadline(value);
                Ok(Effect::None)
            }
            IA32_TSC_DEADLINE => Err(fault.into()),
            X2APIC_FIRST..=X2APIC_LAST => {
                let register = x2apic_register(msr).filter(|_| self.x2apic_enabled()).ok_or(fault)?;
                self.write_x2apic(vcpu, register, value, now).ok_or(MsrError::GeneralProtection(fault))
            }
            _ => Err(MsrError::Foreign { msr }),
        }
    }

    /// None is a fault.
    fn write_x2apic(&mut self, vcpu: usize, register: Register, value: u64, now: Now) -> Option<Effect> {
        let origin = Origin::Vcpu(vcpu);
        if register == Register::ICR {
            if value & X2APIC_RESERVED != 0 {
                return None;
            }
            let message = self.send_ipi(value as u32, (value >> 32) as u32, origin);
            return Some(message.map_or(Effect::None, Effect::Ipi));
        }
        let value = u32::try_from(value).ok()?;
        match register {
            Register::EOI | Register::ESR if value != 0 => None,
            Register::SELF_IPI => {
                let vector = u8::try_from(value).ok()?;
                Some(self.self_ipi(vector, origin))
            }
            _ => self.write_register(register, value, now).ok(),
        }
    }
}
