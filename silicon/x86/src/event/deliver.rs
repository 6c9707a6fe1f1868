//! The loop around delivery: intercepts, exceptions during delivery, double and triple fault.

use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::vmx::ExitReason;

use super::{EventKind, Injection, debug, ia32e, information, intercept, protected, real};
use crate::core::Fault;
use crate::vmx::ExitInfo;
use crate::{Core, Leave, cost};

/// Classes of the double-fault table ("Interrupt 8 - Double Fault Exception").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Benign,
    Contributory,
    PageFault,
    DoubleFault,
}

fn class(event: &Injection) -> Class {
    if event.kind != EventKind::HardwareException {
        return Class::Benign;
    }
    match event.vector {
        vector::DE | vector::TS | vector::NP | vector::SS | vector::GP | vector::CP => Class::Contributory,
        vector::PF | vector::VE => Class::PageFault,
        vector::DF => Class::DoubleFault,
        _ => Class::Benign,
    }
}

/// What becomes of an exception that is raised while another event is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Deliver the second.
    Serial,
    DoubleFault,
    /// Shutdown.
    TripleFault,
}

/// "Conditions for Generating a Double Fault".
#[must_use]
pub(super) fn combine(first: &Injection, second: &Injection) -> Outcome {
    match (class(first), class(second)) {
        (Class::DoubleFault, Class::Contributory | Class::PageFault) => Outcome::TripleFault,
        (Class::Contributory, Class::Contributory) | (Class::PageFault, Class::Contributory | Class::PageFault) => {
            Outcome::DoubleFault
        }
        _ => Outcome::Serial,
    }
}

/// Bit 0 of the error codes that name a selector: the event came from outside of the program.
const EXT: u32 = 1;

fn exception(fault: &Fault) -> Injection {
    Injection {
        vector: fault.vector,
        kind: EventKind::HardwareException,
        error_code: fault.error_code,
        instruction_length: 0,
    }
}

/// Whether the loop may let the exception bitmap decide about the event it starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Guest,
    /// VM-entry event injection: the event itself neither exits nor changes CR2 or DR6.
    VmEntry,
}

impl Core {
    /// Delivers [`Core::fault`]; [`Core::rip`] is that of the instruction that raised it, and on success that of the
    /// handler.
    ///
    /// # Errors
    /// [`Leave::Exit`]: the exception is intercepted, or its delivery exits; the VM-exit is recorded.
    #[cold]
    pub fn deliver_fault(&mut self) -> Result<(), Leave> {
        let fault = self.fault;
        let Some(first) = self.events.vectoring.take() else {
            return self.deliver(exception(&fault), fault.address, None, Origin::Guest);
        };
        // The fault arose while a software event was delivered: that event is benign, so there is nothing to combine.
        self.deliver(exception(&fault), fault.address, Some(first), Origin::Guest)
    }

    /// VM-entry event injection ("Event Injection"): delivers an event that the VMM asked for.
    ///
    /// # Errors
    /// [`Leave::Exit`]: delivery exits; the VM-exit is recorded.
    #[cold]
    pub fn inject(&mut self, event: Injection) -> Result<(), Leave> {
        self.events.vectoring = None;
        self.events.nmi_unblocked = false;
        self.deliver(event, 0, None, Origin::VmEntry)
    }

    /// Delivers the event of INT n, INT3, INTO or INT1 at [`Core::rip`], the instruction's own.
    ///
    /// # Errors
    /// [`Leave::Exit`]: VM-exit recorded. [`Leave::Fault`]: [`Core::deliver_fault`] goes on.
    pub(crate) fn deliver_software(&mut self, event: Injection) -> Result<(), Leave> {
        if intercept::is_exception(&event) && self.exception_exits(event.vector, 0) {
            return Err(intercept::exit(self, &event, 0, None));
        }
        let stepping = self.rflags_rest & rflags::TF != 0;
        match attempt(self, &event) {
            Ok(()) => {
                self.delivered();
                // TF was cleared on the way: the handler's first instruction is not preceded by a trap.
                self.events.no_step = stepping;
                Ok(())
            }
            Err(Leave::Fault) => {
                set_external(self, &event);
                self.events.vectoring = Some(event);
                Err(Leave::Fault)
            }
            Err(Leave::Exit) => Err(information::record(self, &event)),
            Err(other) => Err(other),
        }
    }

    fn deliver(
        &mut self,
        first: Injection,
        address: u64,
        during: Option<Injection>,
        origin: Origin,
    ) -> Result<(), Leave> {
        // No block is running, so a handler's stack may well be on a page that holds code.
        let self_modify = std::mem::replace(&mut self.self_modify, true);
        let result = self.deliver_chain(first, address, during, origin);
        self.self_modify = self_modify;
        self.events.nmi_unblocked = false;
        result
    }

    fn deliver_chain(
        &mut self,
        first: Injection,
        mut address: u64,
        mut during: Option<Injection>,
        mut origin: Origin,
    ) -> Result<(), Leave> {
        let mut event = first;
        // At most: event, exception, #DF, triple fault; benign ones in between are bounded by the exits they cause.
        loop {
            if origin == Origin::Guest
                && intercept::is_exception(&event)
                && self.exception_exits(event.vector, event.error_code.unwrap_or(0))
            {
                return Err(intercept::exit(self, &event, address, during.as_ref()));
            }
            // From here an exit is an indirect one: the event has had its effects on CR2, DR6 and NMI blocking.
            if event.kind == EventKind::HardwareException && origin == Origin::Guest {
                match event.vector {
                    vector::PF => self.cr2 = address,
                    vector::DB => debug::report(self, address),
                    _ => {}
                }
            } else if event.kind == EventKind::Nmi {
                self.events.nmi_blocked = true;
            }
            match attempt(self, &event) {
                Ok(()) => {
                    self.delivered();
                    return Ok(());
                }
                Err(Leave::Fault) => {}
                Err(_) => return Err(information::record(self, &event)),
            }
            set_external(self, &event);
            let second = exception(&self.fault);
            origin = Origin::Guest;
            // The second exception's own intercept comes before the two are combined.
            if self.exception_exits(second.vector, second.error_code.unwrap_or(0)) {
                return Err(intercept::exit(self, &second, self.fault.address, Some(&event)));
            }
            match combine(&event, &second) {
                Outcome::Serial => {
                    address = self.fault.address;
                    during = Some(event);
                    event = second;
                }
                Outcome::DoubleFault => {
                    during = Some(event);
                    event = Injection { vector: vector::DF, error_code: Some(0), ..second };
                }
                Outcome::TripleFault => {
                    return Err(
                        self.vmexit_with(ExitInfo { reason: Some(ExitReason::TripleFault), ..ExitInfo::default() })
                    );
                }
            }
        }
    }

    /// [`Core::fault`] arose while `event` was delivered by a task switch: what is to be delivered now is left there.
    /// [`Leave::Exit`]: shutdown, a triple fault is recorded.
    pub(crate) fn second_fault(&mut self, event: &Injection) -> Leave {
        set_external(self, event);
        match combine(event, &exception(&self.fault)) {
            Outcome::Serial => Leave::Fault,
            Outcome::DoubleFault => self.raise_code(vector::DF, 0),
            Outcome::TripleFault => {
                self.vmexit_with(ExitInfo { reason: Some(ExitReason::TripleFault), ..ExitInfo::default() })
            }
        }
    }

    fn delivered(&mut self) {
        self.charge(cost::EVENT_DELIVERY);
        self.events.sti_shadow = false;
        self.events.mov_ss_shadow = false;
    }
}

/// Sets EXT in the error code of an exception that the delivery of `event` raised.
fn set_external(core: &mut Core, event: &Injection) {
    let from_program = matches!(event.kind, EventKind::SoftwareInterrupt | EventKind::SoftwareException);
    if core.fault.names_selector() && !from_program {
        core.fault.error_code = core.fault.error_code.map(|code| code | EXT);
    }
}

/// One attempt to deliver: on failure nothing but memory below the stack pointer has changed.
fn attempt(core: &mut Core, event: &Injection) -> Result<(), Leave> {
    if core.cr0 & cr0::PE == 0 {
        real::deliver(core, event)
    } else if core.mode.is_ia32e() {
        ia32e::deliver(core, event)
    } else {
        protected::deliver(core, event)
    }
}

/// The RIP that the handler returns to.
#[must_use]
pub(super) fn return_rip(core: &Core, event: &Injection) -> u64 {
    if event.kind.is_software() {
        core.rip.wrapping_add(u64::from(event.instruction_length)) & core.mode.rip_mask
    } else {
        core.rip
    }
}

/// The RFLAGS image that is pushed: RF is set for faults, so that they do not meet their instruction breakpoint again.
#[must_use]
pub(super) fn pushed_flags(core: &Core, event: &Injection) -> u64 {
    let flags = core.rflags();
    if event.kind == EventKind::HardwareException && event.vector != vector::DB { flags | rflags::RF } else { flags }
}
