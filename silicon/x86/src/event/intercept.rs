//! Exceptions that exit ("Exceptions" in "Other Causes of VM Exits", "Exception Bitmap").

use x86_defs::exception::vector;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::interruption;

use super::{EventKind, Injection, information};
use crate::vmx::ExitInfo;
use crate::{Core, Leave};

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
