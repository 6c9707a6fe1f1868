//! Exceptions that exit ("Exceptions" in "Other Causes of VM Exits", "Exception Bitmap").

use x86_defs::exception::vector;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::interruption;

use super::{EventKind, Injection, information};
use crate::vmx::{Controls, ExitInfo};
use crate::{Core, Leave};

/// Whether the exception bitmap, and the error-code mask and match of #PF, make the exception exit.
#[must_use]
pub fn exits(controls: &Controls, vector: u8, error_code: u32) -> bool {
    let bit = controls.exception_bitmap >> (vector & 31) & 1 != 0;
    if vector == vector::PF {
        let matches = error_code & controls.page_fault_error_mask == controls.page_fault_error_match;
        bit == matches
    } else {
        bit
    }
}

/// Records the VM-exit of an intercepted exception. `during`: the event that was being delivered.
pub(super) fn exit(core: &mut Core, event: &Injection, qualification: u64, during: Option<&Injection>) -> Leave {
    let (mut information, error_code) = information::of(core, event);
    // Not defined for #DF, nor when another event was being delivered.
    if core.events.nmi_unblocked && event.vector != vector::DF && during.is_none() {
        information |= interruption::NMI_UNBLOCKING;
    }
    core.events.nmi_unblocked = false;
    let instruction_length = if event.kind.is_software() { u32::from(event.instruction_length) } else { 0 };
    let leave = core.vmexit_with(ExitInfo {
        reason: Some(ExitReason::ExceptionOrNmi),
        qualification: if matches!(event.vector, vector::PF | vector::DB) { qualification } else { 0 },
        interruption: information,
        interruption_error: error_code,
        instruction_length,
        ..ExitInfo::default()
    });
    match during {
        Some(first) => information::record(core, first),
        None => leave,
    }
}

/// Whether the exception bitmap applies to an event.
#[must_use]
pub(super) fn is_exception(event: &Injection) -> bool {
    matches!(
        event.kind,
        EventKind::HardwareException | EventKind::SoftwareException | EventKind::PrivilegedSoftwareException
    )
}
