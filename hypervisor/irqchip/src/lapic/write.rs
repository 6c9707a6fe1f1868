//! Register reads and writes that the two forms of access share.

use super::eoi::Eoi;
use super::lvt::{Lvt, MASKED};
use super::registers::{Register, VectorSet};
use super::{EoiBroadcast, LocalApic};
use crate::message::{Message, Origin};
use crate::now::Now;

/// What a register write asks of the outside. After any write, [`LocalApic::timer`] may have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// Deliver a message, see [`deliver`](super::deliver).
    Ipi(Message),
    /// Tell the I/O APIC.
    Eoi(Eoi),
}

/// An access to a register that does not exist in that form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSuchRegister;

/// Value bits that the spurious interrupt vector register keeps: vector, enable, focus processor checking.
const SVR_BITS: u32 = 0x3ff;
/// The further bit that it has where EOI broadcasts can be suppressed.
pub(super) const SVR_SUPPRESS_EOI_BROADCAST: u32 = 1 << 12;

impl LocalApic {
    /// Read a register that both forms have.
    pub(crate) fn read_register(&self, register: Register, now: Now) -> Result<u32, NoSuchRegister> {
        Ok(match register {
            Register::PPR => u32::from(self.ppr()),
            Register::TIMER_CURRENT => self.current_count(now),
            Register::ID
            | Register::VERSION
            | Register::TPR
            | Register::LDR
            | Register::SVR
            | Register::ESR
            | Register::TIMER_INITIAL
            | Register::TIMER_DIVIDE
            | Register::ICR => self.registers.get(register),
            Register(0x100..0x280 | 0x320..0x380) => self.registers.get(register),
            _ => return Err(NoSuchRegister),
        })
    }

    /// Write a register that both forms have (not ICR).
    pub(crate) fn write_register(
        &mut self,
        register: Register,
        value: u32,
        now: Now,
    ) -> Result<Effect, NoSuchRegister> {
        match register {
            Register::TPR => self.set_tpr(value as u8),
            Register::EOI => {
                return Ok(self.end_of_interrupt().map_or(Effect::None, Effect::Eoi));
            }
            Register::SVR => self.write_svr(value),
            Register::ESR => self.latch_errors(),
            Register::TIMER_INITIAL => self.write_initial_count(value, now),
            Register::TIMER_DIVIDE => self.write_divide(value, now),
            _ => match Lvt::from_register(register) {
                Some(entry) => self.write_lvt(entry, value),
                None => return Err(NoSuchRegister),
            },
        }
        Ok(Effect::None)
    }

    /// Software disable masks every LVT entry; enable leaves them masked.
    fn write_svr(&mut self, value: u32) {
        let bits = match self.features.eoi_broadcast {
            EoiBroadcast::Always => SVR_BITS,
            EoiBroadcast::Suppressible => SVR_BITS | SVR_SUPPRESS_EOI_BROADCAST,
        };
        self.registers.set(Register::SVR, value & bits);
        if !self.software_enabled() {
            for entry in Lvt::ALL {
                let value = self.registers.get(entry.register());
                self.registers.set(entry.register(), value | MASKED);
            }
        }
    }

    /// The spurious interrupt vector: what a processor takes when the request goes away under it.
    #[must_use]
    pub fn spurious_vector(&self) -> u8 {
        self.registers.get(Register::SVR) as u8
    }

    /// The self IPI register: a fixed, edge-triggered interrupt to itself.
    pub(crate) fn self_ipi(&mut self, vector: u8, origin: Origin) -> Effect {
        // Shorthand self, fixed: as the manual defines the register, in terms of ICR. ICR itself does not change.
        let message = Message::from_icr((1 << 18) | u32::from(vector), 0, origin);
        if vector < 16 {
            self.raise_error(super::error::ApicError::SendIllegalVector);
            return Effect::None;
        }
        Effect::Ipi(message)
    }

    /// Whether the vector is in service.
    #[must_use]
    pub fn in_service(&self, vector: u8) -> bool {
        self.registers.test(VectorSet::InService, vector)
    }

    /// Whether the vector is requested.
    #[must_use]
    pub fn requested(&self, vector: u8) -> bool {
        self.registers.test(VectorSet::Request, vector)
    }
}
