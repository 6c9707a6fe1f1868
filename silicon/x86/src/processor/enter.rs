//! VM-entry and VM-exit as the engine sees them.

use x86_defs::vmx::controls::interruption;

use super::Processor;
use crate::event::{EventKind, Injection};
use crate::vmx::{Entered, EntryFailure, ExitInfo};

/// Why [`Processor::enter`] did not enter the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Delivery of the injected event caused a VM-exit, which is recorded.
    Exit,
    /// VM-entry failed: what the manual's rules say.
    Failure(String),
}

impl Processor {
    /// VMLAUNCH or VMRESUME, by `launched`, which it sets; delivers the injected event.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn enter(&mut self, launched: &mut bool) -> Result<(), Refused> {
        let core = &mut self.core;
        core.monitor = None;
        let entered = if *launched { core.vmresume() } else { core.vmlaunch() };
        let entered = entered.map_err(|failure: EntryFailure| Refused::Failure(failure.to_string()))?;
        *launched = true;
        let Entered::Deliver(event) = entered else { return Ok(()) };
        let kind = match event.kind {
            interruption::TYPE_EXTERNAL => EventKind::External,
            interruption::TYPE_NMI => EventKind::Nmi,
            interruption::TYPE_SOFTWARE_INTERRUPT => EventKind::SoftwareInterrupt,
            interruption::TYPE_PRIVILEGED_SOFTWARE_EXCEPTION => EventKind::PrivilegedSoftwareException,
            interruption::TYPE_SOFTWARE_EXCEPTION => EventKind::SoftwareException,
            _ => EventKind::HardwareException,
        };
        core.inject(Injection {
            vector: event.vector,
            kind,
            error_code: event.error_code,
            instruction_length: event.instruction_length as u8,
        })
        .map_err(|_| Refused::Exit)?;
        core.woken();
        Ok(())
    }

    /// Completes the VM-exit that [`Processor::run`] or [`Processor::enter`] gave.
    ///
    /// # Errors
    /// The text of a VMX abort.
    pub fn left(&mut self) -> Result<(), String> {
        self.core.complete_exit().map_err(|abort| abort.to_string())
    }

    /// The guest was paused, not left: makes the next [`Processor::enter`] go on with it, without an exit that counts.
    ///
    /// # Errors
    /// The text of a VMX abort.
    pub fn suspend(&mut self) -> Result<(), String> {
        self.core.vmx.exit = ExitInfo::default();
        self.left()
    }
}
