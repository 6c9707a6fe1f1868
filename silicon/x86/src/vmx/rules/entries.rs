//! Launch state, repaired failures, modes of the guest, and what is injected.

use x86_defs::vmx::controls::{interruption, secondary};
use x86_defs::vmx::{ExitReason, Field, InstructionError};

use super::{protected, real, set, toggle, virtual_8086};
use crate::Core;
use crate::vmx::testing::guest;
use crate::vmx::{Entered, EntryFailure, LaunchState};

#[test]
fn launch_and_resume_want_their_launch_state() {
    let mut core = guest();
    let rule = "";
    assert_eq!(core.vmresume(), Err(EntryFailure::FailValid { error: InstructionError::VmresumeNonLaunched, rule }));
    assert_eq!(core.vmlaunch(), Ok(Entered::Guest));
    assert_eq!(core.vmlaunch(), Err(EntryFailure::FailValid { error: InstructionError::VmlaunchNonClear, rule }));
    assert_eq!(core.vmresume(), Ok(Entered::Guest));
    assert_eq!(core.vmclear().unwrap().launch_state(), LaunchState::Clear);
    assert_eq!(core.vmlaunch(), Err(EntryFailure::FailInvalid));
}

#[test]
fn a_failed_entry_can_be_repaired_and_checks_again_only_what_was_written() {
    let mut core = guest();
    core.vmwrite(Field::GuestCr3, 1 << 60);
    assert!(core.vmlaunch().is_err());
    assert!(core.vmlaunch().is_err(), "the failure does not make the state pass");
    core.vmwrite(Field::GuestCr3, 0x3000);
    assert_eq!(core.vmlaunch(), Ok(Entered::Guest));
    core.vmwrite(Field::GuestRip, 1 << 50);
    assert!(core.vmresume().is_err());
    core.vmwrite(Field::GuestRip, 0x1000);
    assert_eq!(core.vmresume(), Ok(Entered::Guest));
}

#[test]
fn a_failed_entry_leaves_the_vmcs_clear() {
    let mut core = guest();
    core.vmwrite(Field::GuestRflags, 0);
    assert!(core.vmlaunch().is_err());
    assert_eq!(core.vmclear().unwrap().launch_state(), LaunchState::Clear);
}

#[test]
fn real_protected_and_virtual_8086_guests_enter() {
    use crate::core::mode::Operating;
    for (mode, setup) in [
        (Operating::Real, real as fn(&mut Core)),
        (Operating::Protected, protected),
        (Operating::Virtual8086, virtual_8086),
        (Operating::Long64, |_| {}),
    ] {
        let mut core = guest();
        setup(&mut core);
        assert!(core.vmlaunch().is_ok());
        assert_eq!(core.mode.operating, mode);
    }
}

#[test]
fn an_injected_event_is_decoded_for_delivery() {
    let mut core = guest();
    set(&mut core, &[(Field::EntryInterruptionInformation, 0x8000_0b0e), (Field::EntryExceptionErrorCode, 2)]);
    match core.vmlaunch() {
        Ok(Entered::Deliver(event)) => {
            assert_eq!(
                (event.vector, event.kind, event.error_code),
                (14, interruption::TYPE_HARDWARE_EXCEPTION, Some(2))
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_injected_monitor_trap_is_pending_and_delivers_nothing() {
    let mut core = guest();
    let information = u64::from(interruption::VALID | interruption::TYPE_OTHER);
    core.vmwrite(Field::EntryInterruptionInformation, information);
    assert_eq!(core.vmlaunch(), Ok(Entered::Guest));
    assert!(core.vmx.monitor_trap_pending);
}

#[test]
fn a_control_that_guest_checks_depend_on_makes_them_run_again() {
    let mut core = guest();
    protected(&mut core);
    assert!(core.vmlaunch().is_ok());
    toggle(&mut core, Field::SecondaryControls, secondary::UNRESTRICTED_GUEST);
    assert!(matches!(core.vmresume(), Err(EntryFailure::Exit { reason: ExitReason::EntryFailureGuestState, .. })));
    assert!(core.vmresume().is_err(), "the failure does not make the state pass");
}
