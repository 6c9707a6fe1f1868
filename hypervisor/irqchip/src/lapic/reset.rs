//! Power-up, RESET and INIT.
//!
//! Source: Intel SDM, "Local APIC State After Power-Up or Reset", "Local APIC State After It Receives an INIT-Deassert
//! IPI", "x2APIC State Transitions".

use super::lvt::{Lvt, MASKED};
use super::registers::{Register, RegisterPage};
use super::timer::Timer;
use super::{EoiBroadcast, Lint0AtReset, LocalApic, Role};

/// Version 0x14 (integrated), six LVT entries: KVM's.
const VERSION: u32 = 0x14 | (5 << 16);
/// The spurious interrupt vector register can suppress EOI broadcasts.
const EOI_BROADCAST_SUPPRESSION: u32 = 1 << 24;
/// Delivery mode ExtINT, not masked.
const OPEN_TO_8259: u32 = 7 << 8;

impl LocalApic {
    /// Power-up or RESET: everything, IA32_APIC_BASE and the ID included.
    pub fn reset(&mut self) {
        self.reset_apic_base();
        self.registers.set(Register::ID, self.initial_id << 24);
        self.init();
    }

    /// INIT: everything but IA32_APIC_BASE and the ID. Statistics go on.
    pub fn init(&mut self) {
        let id = self.registers.get(Register::ID);
        self.registers = RegisterPage::default();
        self.timer = Timer::default();
        self.pending_errors = 0;
        self.pv_eoi_pending = false;
        let suppression = match self.features.eoi_broadcast {
            EoiBroadcast::Always => 0,
            EoiBroadcast::Suppressible => EOI_BROADCAST_SUPPRESSION,
        };
        self.registers.set(Register::VERSION, VERSION | suppression);
        self.registers.set(Register::SVR, 0xff);
        for entry in Lvt::ALL {
            self.registers.set(entry.register(), MASKED);
        }
        if self.role == Role::Bootstrap && self.lint0_at_reset == Lint0AtReset::ExtInt {
            self.registers.set(Register::LVT_LINT0, OPEN_TO_8259);
        }
        if self.x2apic_enabled() {
            self.set_x2apic_identity();
        } else {
            self.registers.set(Register::ID, id);
            self.registers.set(Register::DFR, u32::MAX);
        }
    }
}
