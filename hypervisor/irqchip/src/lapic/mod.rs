//! The local APIC of one vCPU.
//!
//! Source: Intel SDM, "Advanced Programmable Interrupt Controller (APIC)"; where KVM differs, as KVM does, and the
//! function says so.

mod accept;
mod apic_base;
mod deliver;
mod destination;
mod eoi;
mod error;
mod icr;
mod lvt;
mod mmio;
mod msr;
mod priority;
mod pv_eoi;
pub mod registers;
mod reset;
mod timer;
mod write;

pub use accept::Acceptance;
pub use apic_base::{ApicMode, DEFAULT_APIC_BASE};
pub(crate) use deliver::deliver_to;
pub use deliver::{Delivered, deliver};
pub use eoi::Eoi;
pub use error::{GeneralProtection, MsrError};
pub use lvt::Lvt;
pub use msr::is_lapic_msr;
pub use pv_eoi::PvEoiFlag;
pub use timer::{MIN_PERIOD_NS, TimerDeadline, TimerMode};
pub use write::Effect;

use registers::RegisterPage;
use timer::Timer;

/// What the vCPU's CPUID says about its local APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Features {
    /// CPUID.01H:ECX\[21\]: x2APIC mode can be enabled.
    pub x2apic: bool,
    /// CPUID.01H:ECX\[24\]: the timer has a TSC-deadline mode.
    pub tsc_deadline: bool,
    /// CPUID.80000008H:EAX\[7:0\]: width of a physical address, which bounds the base address.
    pub physical_address_bits: u8,
    /// Whether the guest may keep the ends of level-triggered interrupts from the I/O APIC.
    pub eoi_broadcast: EoiBroadcast,
}

/// Who hears of the end of a level-triggered interrupt ("Signaling Interrupt Servicing Completion").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EoiBroadcast {
    /// The I/O APIC, always: version 0x11, without a register for it. KVM's default.
    #[default]
    Always,
    /// Nobody, if the guest says so in the spurious interrupt vector register (bit 24 of the version register offers
    /// it): the guest then writes the vector to the EOI register of the I/O APIC, which has version 0x20. KVM's with
    /// `KVM_X2APIC_ENABLE_SUPPRESS_EOI_BROADCAST`.
    Suppressible,
}

impl Default for Features {
    fn default() -> Self {
        Self { x2apic: true, tsc_deadline: true, physical_address_bits: 46, eoi_broadcast: EoiBroadcast::Always }
    }
}

/// Part that a vCPU plays after reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Starts at the reset vector.
    Bootstrap,
    /// Waits for a start-up request.
    Application,
}

/// LINT0 of the bootstrap processor after reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lint0AtReset {
    /// Open to the 8259 pair, so that a kernel without firmware gets its interrupts (KVM's default, the quirk
    /// `KVM_X86_QUIRK_LINT0_REENABLED`).
    #[default]
    ExtInt,
    /// Masked, as the manual says.
    Masked,
}

/// A local APIC.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalApic {
    /// The x2APIC ID, and the xAPIC ID at reset (its low 8 bits).
    initial_id: u32,
    role: Role,
    lint0_at_reset: Lint0AtReset,
    features: Features,
    /// IA32_APIC_BASE.
    apic_base: u64,
    registers: RegisterPage,
    timer: Timer,
    /// Errors found since the last write to the error status register.
    pending_errors: u32,
    /// The guest has been told that it may end the interrupt in service by clearing a flag in memory.
    pv_eoi_pending: bool,
    /// Interrupts accepted, by vector.
    accepted: [u64; 256],
}

impl LocalApic {
    /// A local APIC in its power-up state.
    #[must_use]
    pub fn new(id: u32, role: Role, features: Features, lint0_at_reset: Lint0AtReset) -> Self {
        let mut apic = Self {
            initial_id: id,
            role,
            lint0_at_reset,
            features,
            apic_base: 0,
            registers: RegisterPage::default(),
            timer: Timer::default(),
            pending_errors: 0,
            pv_eoi_pending: false,
            accepted: [0; 256],
        };
        apic.reset();
        apic
    }

    /// The vCPU's CPUID has changed.
    pub fn set_features(&mut self, features: Features) {
        self.features = features;
    }

    /// Its current features.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// The part that the vCPU plays after reset.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The ID that the vCPU was created with: what x2APIC mode shows.
    #[must_use]
    pub fn x2apic_id(&self) -> u32 {
        self.initial_id
    }

    /// The registers, in the layout of the MMIO page.
    #[must_use]
    pub fn registers(&self) -> &RegisterPage {
        &self.registers
    }

    /// Interrupts accepted since creation, by vector: an interrupt counts when it sets its bit in the interrupt request
    /// register, so one that finds the bit set does not.
    #[must_use]
    pub fn accepted_by_vector(&self) -> &[u64; 256] {
        &self.accepted
    }
}
