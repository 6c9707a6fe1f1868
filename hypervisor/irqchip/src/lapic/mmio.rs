//! The xAPIC form: accesses to the MMIO page.
//!
//! Source: Intel SDM, "Local APIC Register Address Map".

use super::error::ApicError;
use super::registers::Register;
use super::write::Effect;
use super::{ApicMode, LocalApic};
use crate::message::Origin;
use crate::now::Now;

impl LocalApic {
    /// Read `data.len()` bytes at `offset` of the page.
    ///
    /// Bytes outside of a register's four read as 0, a register that does not exist raises an error in ESR and reads as
    /// 0; without an MMIO page (disabled, x2APIC) all bytes read as 0xff, like a hole, as in KVM.
    pub fn mmio_read(&mut self, offset: u16, data: &mut [u8], now: Now) {
        if self.mode() != ApicMode::XApic {
            data.fill(0xff);
            return;
        }
        data.fill(0);
        let within = usize::from(offset & 0xf);
        if within + data.len() > 4 {
            return;
        }
        let register = Register(offset & 0xff0);
        let value = match register {
            Register::APR => Ok(u32::from(self.apr())),
            // Write-only, and a relic: no error.
            Register::EOI | Register::RRD => Ok(0),
            Register::DFR | Register::ICR2 => Ok(self.registers.get(register)),
            _ => self.read_register(register, now),
        };
        match value {
            Ok(value) => data.copy_from_slice(&value.to_le_bytes()[within..within + data.len()]),
            Err(_) => self.raise_error(ApicError::IllegalRegisterAddress),
        }
    }

    /// Write at `offset` of the page. Only aligned 32-bit writes count, as in KVM; writes to read-only registers are
    /// ignored, and a register that does not exist raises an error in ESR. `vcpu` is the index of this local APIC.
    pub fn mmio_write(&mut self, vcpu: usize, offset: u16, data: &[u8], now: Now) -> Effect {
        if self.mode() != ApicMode::XApic || offset & 0xf != 0 {
            return Effect::None;
        }
        let Ok(bytes) = <[u8; 4]>::try_from(data) else {
            return Effect::None;
        };
        let value = u32::from_le_bytes(bytes);
        let register = Register(offset & 0xff0);
        match register {
            // Writable in KVM, and on older processors.
            Register::ID => self.set_xapic_id((value >> 24) as u8),
            Register::LDR => self.registers.set(Register::LDR, value & 0xff00_0000),
            Register::DFR => self.registers.set(Register::DFR, value | 0x0fff_ffff),
            Register::ICR2 => self.registers.set(Register::ICR2, value & 0xff00_0000),
            Register::ICR => {
                let high = self.registers.get(Register::ICR2);
                return self.send_ipi(value, high, Origin::Vcpu(vcpu)).map_or(Effect::None, Effect::Ipi);
            }
            _ => match self.write_register(register, value, now) {
                Ok(effect) => return effect,
                Err(_) => self.reject_write(register, now),
            },
        }
        Effect::None
    }

    fn reject_write(&mut self, register: Register, now: Now) {
        let read_only = matches!(register, Register::APR | Register::RRD) || self.read_register(register, now).is_ok();
        if !read_only {
            self.raise_error(ApicError::IllegalRegisterAddress);
        }
    }
}
