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
}
