//! Exceptions and interrupts: delivery through the IDT, double and triple faults, shadows and blocking.
//!
//! [`Core::deliver_fault`] and [`Core::inject`] go through the same loop ([`deliver`]): is the exception intercepted,
//! deliver it, and when that raises another exception, combine the two. One attempt at delivery is a function per
//! mode: [`real`], [`protected`], [`ia32e`].

mod debug;
mod deliver;
mod gate;
mod ia32e;
mod information;
mod intercept;
mod protected;
mod real;
#[cfg(test)]
mod tests;

use x86_defs::rflags;

use crate::Core;

pub use debug::{Step, debugctl, dr6, dr7};
pub use gate::{Gate, GateKind};

/// Event state of a logical processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Events {
    /// The next instruction executes in an STI shadow.
    pub sti_shadow: bool,
    /// The next instruction executes in a MOV SS / POP SS shadow.
    pub mov_ss_shadow: bool,
    pub nmi_blocked: bool,
    /// Look at windows, shadows, traps and pending interrupts before the next block. Set by everything that may open
    /// one of them (RFLAGS, shadows, VM-entry).
    pub attention: bool,
    /// The instruction that just completed takes no single-step trap although TF was set when it began (INT n, SYSCALL).
    pub no_step: bool,
    /// The software interrupt or exception whose delivery raised [`Core::fault`], for [`Core::deliver_fault`].
    pub vectoring: Option<Injection>,
    /// The faulting instruction is an IRET that has unblocked NMIs.
    pub nmi_unblocked: bool,
}

/// Where an event comes from, numbered as the type of an interruption-information field ("VM-Entry Controls for Event
/// Injection").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    External = 0,
    Nmi = 2,
    HardwareException = 3,
    /// INT n.
    SoftwareInterrupt = 4,
    /// INT1.
    PrivilegedSoftwareException = 5,
    /// INT3 and INTO.
    SoftwareException = 6,
}

impl EventKind {
    /// Whether an instruction asked for the event: RIP is pushed past it, and the DPL of the gate counts.
    #[must_use]
    pub const fn is_software(self) -> bool {
        matches!(self, Self::SoftwareInterrupt | Self::PrivilegedSoftwareException | Self::SoftwareException)
    }
}

/// An event to deliver through the IDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Injection {
    pub vector: u8,
    pub kind: EventKind,
    /// Pushed on the stack of the handler, outside of real-address mode.
    pub error_code: Option<u32>,
    /// Bytes of the instruction behind a software event; ignored for others.
    pub instruction_length: u8,
}

impl Core {
    /// Whether a maskable interrupt would be taken now: RFLAGS.IF is set and no shadow blocks it.
    #[inline]
    #[must_use]
    pub fn interrupts_open(&self) -> bool {
        self.rflags_rest & rflags::IF != 0 && !self.events.sti_shadow && !self.events.mov_ss_shadow
    }
}
