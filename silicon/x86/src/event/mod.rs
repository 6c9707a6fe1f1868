//! Exceptions and interrupts: delivery through the IDT, double and triple faults, shadows and blocking.

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
    /// An interrupt of the host waits at the pins of the processor.
    pub external_pending: bool,
}

use crate::{Core, Leave};
impl Core {
    pub fn interrupts_open(&self) -> bool { self.rflags_rest & x86_defs::rflags::IF != 0 && !self.events.sti_shadow && !self.events.mov_ss_shadow }
    pub fn deliver_fault(&mut self) -> Result<(), Leave> { Err(Leave::Exit) }
    pub fn debug_active(&self) -> bool { false }
    pub fn pending_debug(&self) -> bool { false }
    pub fn deliver_debug_trap(&mut self) -> Result<(), Leave> { Ok(()) }
    pub fn instruction_breakpoint(&mut self) -> Result<(), Leave> { Ok(()) }
    pub fn end_of_step(&mut self, _before: u64) {}
}
