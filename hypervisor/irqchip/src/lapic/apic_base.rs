//! IA32_APIC_BASE and the modes of the local APIC.
//!
//! Source: Intel SDM, "Local APIC Status and Location", "Enabling or Disabling the Local APIC", "x2APIC State
//! Transitions".

use super::error::GeneralProtection;
use super::registers::Register;
use super::{LocalApic, Role};

/// The IA32_APIC_BASE MSR.
pub const IA32_APIC_BASE: u32 = 0x1b;
/// Base address of the MMIO page after reset.
pub const DEFAULT_APIC_BASE: u64 = 0xfee0_0000;

const BSP: u64 = 1 << 8;
const EXTD: u64 = 1 << 10;
const EN: u64 = 1 << 11;

/// Mode of the local APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApicMode {
    /// Disabled by hardware: no registers, no interrupts.
    Disabled,
    /// Registers in the MMIO page.
    XApic,
    /// Registers in MSRs.
    X2Apic,
}

const fn mode_of(apic_base: u64) -> ApicMode {
    if apic_base & EN == 0 {
        ApicMode::Disabled
    } else if apic_base & EXTD == 0 {
        ApicMode::XApic
    } else {
        ApicMode::X2Apic
    }
}

impl LocalApic {
    /// Current mode.
    #[must_use]
    pub fn mode(&self) -> ApicMode {
        mode_of(self.apic_base)
    }

    /// IA32_APIC_BASE.
    #[must_use]
    pub fn apic_base(&self) -> u64 {
        self.apic_base
    }

    /// Guest-physical address of the MMIO page, if there is one in the current mode.
    #[must_use]
    pub fn mmio_base(&self) -> Option<u64> {
        (self.mode() == ApicMode::XApic).then_some(self.base_address())
    }

    pub(crate) fn base_address(&self) -> u64 {
        self.apic_base & !0xfff
    }

    /// Not disabled by IA32_APIC_BASE.
    #[must_use]
    pub fn hardware_enabled(&self) -> bool {
        self.apic_base & EN != 0
    }

    /// In x2APIC mode.
    #[must_use]
    pub fn x2apic_enabled(&self) -> bool {
        self.mode() == ApicMode::X2Apic
    }

    /// Enabled by the spurious interrupt vector register (bit 8).
    #[must_use]
    pub fn software_enabled(&self) -> bool {
        self.registers.get(Register::SVR) & (1 << 8) != 0
    }

    /// The guest writes IA32_APIC_BASE.
    ///
    /// # Errors
    ///
    /// #GP for reserved bits (bit 10 is one without x2APIC), and for the changes of mode that the manual forbids:
    /// disabled to x2APIC, x2APIC to xAPIC, and bit 10 without bit 11.
    pub fn write_apic_base(&mut self, value: u64) -> Result<(), GeneralProtection> {
        let fault = Err(GeneralProtection { msr: IA32_APIC_BASE });
        let width = u32::from(self.features.physical_address_bits).clamp(32, 52);
        let mut valid = ((1u64 << width) - 1) & !0xfff | BSP | EN;
        if self.features.x2apic {
            valid |= EXTD;
        }
        if value & !valid != 0 || value & (EN | EXTD) == EXTD {
            return fault;
        }
        let forbidden = [(ApicMode::Disabled, ApicMode::X2Apic), (ApicMode::X2Apic, ApicMode::XApic)];
        if forbidden.contains(&(self.mode(), mode_of(value))) {
            return fault;
        }
        self.change_apic_base(value);
        Ok(())
    }

    /// Enter the mode of `value`. Registers survive a time of being disabled, as in KVM (the manual lets them be lost),
    /// but for the identification registers, which follow the mode.
    fn change_apic_base(&mut self, value: u64) {
        let old = self.mode();
        self.apic_base = value;
        match (old, self.mode()) {
            (ApicMode::Disabled, ApicMode::XApic) => {
                self.set_xapic_id(self.initial_id as u8);
            }
            (ApicMode::XApic, ApicMode::X2Apic) => self.set_x2apic_identity(),
            (ApicMode::X2Apic, ApicMode::Disabled) => {
                // The x2APIC layouts of these mean nothing in xAPIC mode.
                self.registers.set(Register::LDR, 0);
                self.registers.set(Register::ICR2, 0);
                self.registers.set(Register::DFR, u32::MAX);
            }
            _ => {}
        }
    }

    /// In x2APIC mode the logical ID derives from the ID: the cluster is ID\[19:4\], the bit in it ID\[3:0\].
    pub(crate) fn set_x2apic_identity(&mut self) {
        let id = self.initial_id;
        self.registers.set(Register::ID, id);
        self.registers.set(Register::LDR, ((id >> 4) << 16) | (1 << (id & 0xf)));
        self.registers.set(Register::ICR2, 0);
    }

    pub(crate) fn set_xapic_id(&mut self, id: u8) {
        self.registers.set(Register::ID, u32::from(id) << 24);
    }

    pub(crate) fn xapic_id(&self) -> u8 {
        (self.registers.get(Register::ID) >> 24) as u8
    }

    /// Power-up value.
    pub(crate) fn reset_apic_base(&mut self) {
        self.apic_base = DEFAULT_APIC_BASE | EN;
        if self.role == Role::Bootstrap {
            self.apic_base |= BSP;
        }
    }
}
