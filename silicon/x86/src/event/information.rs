//! What a VM-exit says about an event ("Information for VM Exits Due to Vectored Events", "Information for VM Exits That
//! Occur During Event Delivery").

use x86_defs::control::cr0;
use x86_defs::vmx::controls::interruption;

use super::Injection;
use crate::{Core, Leave};

/// Interruption information and error code of an event, and the instruction length where it is a software event.
#[must_use]
pub fn of(core: &Core, event: &Injection) -> (u32, u32) {
    let mut information = u32::from(event.vector) | (event.kind as u32) << 8 | interruption::VALID;
    let error_code = match event.error_code {
        // In real-address mode nothing is pushed.
        Some(code) if core.cr0 & cr0::PE != 0 => {
            information |= interruption::DELIVER_ERROR_CODE;
            code
        }
        _ => 0,
    };
    (information, error_code)
}

/// Adds the event that was being delivered to the VM-exit just recorded.
pub(super) fn record(core: &mut Core, event: &Injection) -> Leave {
    if core.mmu.mmio.wanted.is_some() {
        // No VM-exit: instruction emulation waits for a device.
        return Leave::Exit;
    }
    core.apic_access_during_delivery();
    let (information, error_code) = of(core, event);
    core.vmx.exit.idt_vectoring = information;
    core.vmx.exit.idt_vectoring_error = error_code;
    if event.kind.is_software() {
        core.vmx.exit.instruction_length = u32::from(event.instruction_length);
    }
    Leave::Exit
}
