//! Each rule of VM-entry, broken in an otherwise valid VMCS.

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::controls::{entry, exit, interruption, pin, primary, secondary};
use x86_defs::vmx::{ExitReason, Field, InstructionError};

use crate::Core;
use crate::vmx::testing::guest;
use crate::vmx::{Entered, EntryFailure, LaunchState};

const VALID: u64 = interruption::VALID as u64;
const UNUSABLE: u64 = 1 << 16;

fn set(core: &mut Core, changes: &[(Field, u64)]) {
    for &(field, value) in changes {
        core.vmwrite(field, value);
    }
}

fn toggle(core: &mut Core, field: Field, bits: u64) {
    let old = core.vmread(field);
    core.vmwrite(field, old ^ bits);
}

/// An entry that must fail before it loads guest state: error 7 or 8, and the rule mentions `expected`.
#[track_caller]
fn fails_valid(error: InstructionError, expected: &str, change: impl FnOnce(&mut Core)) {
    let mut core = guest();
    change(&mut core);
    match core.vmlaunch() {
        Err(EntryFailure::FailValid { error: got, rule }) => {
            assert_eq!(got, error, "{rule}");
            assert!(rule.contains(expected), "'{rule}' instead of '{expected}'");
        }
        other => panic!("{other:?} instead of '{expected}'"),
    }
    assert_eq!(core.vmread(Field::VmInstructionError), u64::from(error.number()));
}

#[track_caller]
fn bad_control(expected: &str, change: impl FnOnce(&mut Core)) {
    fails_valid(InstructionError::EntryInvalidControls, expected, change);
}

#[track_caller]
fn bad_host(expected: &str, change: impl FnOnce(&mut Core)) {
    fails_valid(InstructionError::EntryInvalidHostState, expected, change);
}

/// An entry that must fail by a VM-exit with reason 33.
#[track_caller]
fn bad_guest_with(qualification: u64, expected: &str, change: impl FnOnce(&mut Core)) {
    let mut core = guest();
    change(&mut core);
    match core.vmlaunch() {
        Err(EntryFailure::Exit { reason: ExitReason::EntryFailureGuestState, rule }) => {
            assert!(rule.contains(expected), "'{rule}' instead of '{expected}'");
        }
        other => panic!("{other:?} instead of '{expected}'"),
    }
    assert_eq!(core.vmread(Field::ExitReason), 0x8000_0021);
    assert_eq!(core.vmread(Field::ExitQualification), qualification);
}

#[track_caller]
fn bad_guest(expected: &str, changes: &[(Field, u64)]) {
    bad_guest_with(0, expected, |core| set(core, changes));
}

/// Removes "unrestricted guest" first.
#[track_caller]
fn bad_restricted(expected: &str, changes: &[(Field, u64)]) {
    bad_guest_with(0, expected, |core| {
        toggle(core, Field::SecondaryControls, secondary::UNRESTRICTED_GUEST.into());
        set(core, changes);
    });
}

#[track_caller]
fn good(change: impl FnOnce(&mut Core)) -> Core {
    let mut core = guest();
    change(&mut core);
    let entered = core.vmlaunch();
    assert!(entered.is_ok(), "{entered:?}");
    core
}

/// A protected-mode guest without IA-32e mode and paging.
fn protected(core: &mut Core) {
    toggle(core, Field::EntryControls, entry::IA32E_MODE_GUEST.into());
    set(
        core,
        &[
            (Field::GuestCr0, cr0::PE | cr0::NE),
            (Field::GuestCr4, cr4::VMXE),
            (Field::GuestEfer, 0),
            (Field::GuestCsRights, 0xc09b),
        ],
    );
}

/// Real mode, as a processor is after RESET under unrestricted guest.
fn real(core: &mut Core) {
    protected(core);
    core.vmwrite(Field::GuestCr0, cr0::NE);
    for (limit, rights) in [
        (Field::GuestEsLimit, Field::GuestEsRights),
        (Field::GuestSsLimit, Field::GuestSsRights),
        (Field::GuestDsLimit, Field::GuestDsRights),
    ] {
        set(core, &[(limit, 0xffff), (rights, 0x93)]);
    }
    set(core, &[(Field::GuestCsLimit, 0xffff), (Field::GuestCsRights, 0x93), (Field::GuestRip, 0xfff0)]);
    core.vmwrite(Field::GuestCsBase, 0xffff_0000);
}

fn virtual_8086(core: &mut Core) {
    protected(core);
    set(core, &[(Field::GuestRflags, 0x2_0002), (Field::GuestRip, 0x100)]);
    for i in 0..6_u32 {
        for (base, value) in [(0x800, 0x100), (0x4800, 0xffff), (0x4814, 0xf3), (0x6806, 0x1000)] {
            core.vmwrite(Field::from_encoding(base + i * 2).unwrap().0, value);
        }
    }
}

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
fn real_protected_and_virtual_8086_guests_enter() {
    use crate::core::mode::Operating;
    for (mode, setup) in [
        (Operating::Real, real as fn(&mut Core)),
        (Operating::Protected, protected),
        (Operating::Virtual8086, virtual_8086),
        (Operating::Long64, |_| {}),
    ] {
        assert_eq!(good(setup).mode.operating, mode);
    }
}

#[test]
fn execution_controls() {
    bad_control("pin-based", |c| toggle(c, Field::PinBasedControls, pin::POSTED_INTERRUPTS.into()));
    bad_control("pin-based", |c| toggle(c, Field::PinBasedControls, 1 << 1));
    bad_control("primary", |c| toggle(c, Field::PrimaryControls, 1));
    bad_control("secondary", |c| toggle(c, Field::SecondaryControls, 1 << 31));
    bad_control("PML address", |c| {
        toggle(c, Field::SecondaryControls, secondary::ENABLE_PML.into());
        c.vmwrite(Field::PmlAddress, 0x1008);
    });
    for control in [secondary::ENABLE_PML, secondary::MODE_BASED_EXECUTE] {
        bad_control("without EPT", |c| {
            toggle(
                c,
                Field::SecondaryControls,
                (control | secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST).into(),
            );
        });
    }
    bad_control("CR3-target", |c| c.vmwrite(Field::Cr3TargetCount, 5));
    for (field, control) in [
        (Field::IoBitmapA, primary::USE_IO_BITMAPS),
        (Field::IoBitmapB, primary::USE_IO_BITMAPS),
        (Field::MsrBitmaps, primary::USE_MSR_BITMAPS),
    ] {
        for address in [0x1008, 1 << 46] {
            bad_control("itmap", |c| {
                toggle(c, Field::PrimaryControls, control.into());
                c.vmwrite(field, address);
            });
        }
    }
    bad_control("virtual NMIs without", |c| toggle(c, Field::PinBasedControls, pin::VIRTUAL_NMIS.into()));
    bad_control("NMI-window", |c| toggle(c, Field::PrimaryControls, primary::NMI_WINDOW_EXITING.into()));
    bad_control("VPID 0", |c| toggle(c, Field::SecondaryControls, secondary::ENABLE_VPID.into()));
    bad_control("without EPT", |c| toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT.into()));
    for (eptp, what) in [
        (0x1000 | 1 | 3 << 3, "memory type"),
        (0x1000 | 6 | 4 << 3, "walk length"),
        (0x1000 | 6 | 3 << 3 | 1 << 7, "reserved"),
        (1 << 46 | 6 | 3 << 3, "reserved"),
    ] {
        bad_control(what, |c| c.vmwrite(Field::EptPointer, eptp));
    }
}

#[test]
fn secondary_controls_do_not_count_unless_activated() {
    good(|c| {
        toggle(c, Field::PrimaryControls, primary::ACTIVATE_SECONDARY_CONTROLS.into());
        c.vmwrite(Field::SecondaryControls, u64::MAX);
    });
}

#[test]
fn exit_and_entry_controls() {
    bad_control("VM-exit controls", |c| toggle(c, Field::ExitControls, exit::LOAD_PERF_GLOBAL_CTRL.into()));
    bad_control("without the timer", |c| toggle(c, Field::ExitControls, exit::SAVE_PREEMPTION_TIMER.into()));
    bad_control("VM-entry controls", |c| toggle(c, Field::EntryControls, entry::ENTRY_TO_SMM.into()));
    for (count, address) in [
        (Field::ExitMsrStoreCount, Field::ExitMsrStoreAddress),
        (Field::ExitMsrLoadCount, Field::ExitMsrLoadAddress),
        (Field::EntryMsrLoadCount, Field::EntryMsrLoadAddress),
    ] {
        bad_control("area", |c| set(c, &[(count, 1), (address, 8)]));
        bad_control("area", |c| set(c, &[(count, 2), (address, (1 << 46) - 16)]));
    }
}

#[test]
fn event_injection_fields() {
    let event = |kind: u32, vector: u64| VALID | u64::from(kind) | vector;
    let code = u64::from(interruption::DELIVER_ERROR_CODE);
    for (information, what) in [
        (event(0, 0x20) | 1 << 12, "reserved bit"),
        (event(1 << 8, 0), "reserved type"),
        (event(interruption::TYPE_NMI, 3), "vector"),
        (event(interruption::TYPE_HARDWARE_EXCEPTION, 32), "vector"),
        (event(interruption::TYPE_OTHER, 1), "vector"),
        (event(interruption::TYPE_HARDWARE_EXCEPTION, 14), "error code"),
        (event(interruption::TYPE_HARDWARE_EXCEPTION, 6) | code, "error code"),
        (event(interruption::TYPE_EXTERNAL, 0x20) | code, "error code"),
    ] {
        bad_control(what, |c| c.vmwrite(Field::EntryInterruptionInformation, information));
    }
    bad_control("exception error code", |c| {
        c.vmwrite(Field::EntryInterruptionInformation, event(interruption::TYPE_HARDWARE_EXCEPTION, 13) | code);
        c.vmwrite(Field::EntryExceptionErrorCode, 1 << 16);
    });
    bad_control("instruction length", |c| {
        c.vmwrite(Field::EntryInterruptionInformation, event(interruption::TYPE_SOFTWARE_INTERRUPT, 0x80));
        c.vmwrite(Field::EntryInstructionLength, 16);
    });
    // Without protection there are no error codes.
    bad_control("error code", |c| {
        real(c);
        c.vmwrite(Field::EntryInterruptionInformation, event(interruption::TYPE_HARDWARE_EXCEPTION, 13) | code);
    });
}

#[test]
fn host_state() {
    let cases: &[(Field, u64, &str)] = &[
        (Field::HostCr0, cr0::PE, "host CR0"),
        (Field::HostCr0, 1 << 32 | cr0::PE | cr0::NE | cr0::PG, "host CR0"),
        (Field::HostCr4, cr4::PAE, "host CR4"),
        (Field::HostCr4, cr4::PAE | cr4::VMXE | cr4::LA57, "host CR4"),
        (Field::HostCr4, cr4::VMXE, "PAE"),
        (Field::HostCr3, 1 << 46, "host CR3"),
        (Field::HostSysenterEsp, 1 << 47, "SYSENTER"),
        (Field::HostSysenterEip, 1 << 47, "SYSENTER"),
        (Field::HostPat, 2, "PAT"),
        (Field::HostEfer, efer::LMA | efer::LME | 2, "reserved"),
        (Field::HostEfer, efer::LMA, "IA-32e"),
        (Field::HostDsSelector, 3, "RPL"),
        (Field::HostSsSelector, 4, "RPL"),
        (Field::HostCsSelector, 0, "CS"),
        (Field::HostTrSelector, 0, "TR"),
        (Field::HostGsBase, 1 << 63, "base"),
        (Field::HostIdtrBase, 1 << 63, "base"),
        (Field::HostRip, 1 << 63, "RIP"),
    ];
    for &(field, value, what) in cases {
        bad_host(what, |c| c.vmwrite(field, value));
    }
    bad_host("address-space size", |c| toggle(c, Field::ExitControls, exit::HOST_ADDRESS_SPACE_SIZE.into()));
}

#[test]
fn guest_control_registers_and_msrs() {
    bad_guest("CR0: a fixed", &[(Field::GuestCr0, cr0::PE | cr0::PG)]);
    bad_guest("CR0: a fixed", &[(Field::GuestCr0, cr0::PE | cr0::PG | cr0::NE | 1 << 40)]);
    bad_guest("PG without PE", &[(Field::GuestCr0, cr0::PG | cr0::NE)]);
    bad_restricted("CR0: a fixed", &[(Field::GuestCr0, cr0::PE | cr0::NE)]);
    bad_guest("CR4", &[(Field::GuestCr4, cr4::PAE)]);
    bad_guest("CR4", &[(Field::GuestCr4, cr4::PAE | cr4::VMXE | cr4::OSXSAVE)]);
    bad_guest("IA-32e mode guest without", &[(Field::GuestCr4, cr4::VMXE)]);
    bad_guest("CR3", &[(Field::GuestCr3, 1 << 46)]);
    bad_guest("DEBUGCTL", &[(Field::GuestDebugctl, 1 << 5)]);
    bad_guest("DR7", &[(Field::GuestDr7, 1 << 32)]);
    bad_guest("SYSENTER", &[(Field::GuestSysenterEsp, 1 << 47)]);
    bad_guest("SYSENTER", &[(Field::GuestSysenterEip, 1 << 47)]);
    bad_guest("PAT", &[(Field::GuestPat, 3)]);
    bad_guest("EFER: a reserved", &[(Field::GuestEfer, efer::LMA | efer::LME | 1 << 9)]);
    bad_guest("LMA differs from the IA-32e", &[(Field::GuestEfer, 0)]);
    bad_guest("LMA differs from LME", &[(Field::GuestEfer, efer::LMA)]);
    bad_guest_with(0, "PCIDE", |c| {
        protected(c);
        c.vmwrite(Field::GuestCr4, cr4::VMXE | cr4::PCIDE);
    });
}

#[test]
fn guest_segments() {
    bad_guest("TR selector", &[(Field::GuestTrSelector, 4)]);
    bad_guest("LDTR selector", &[(Field::GuestLdtrRights, 0x82), (Field::GuestLdtrSelector, 4)]);
    bad_restricted("SS selector", &[(Field::GuestSsSelector, 3)]);
    bad_guest("TR base", &[(Field::GuestTrBase, 1 << 47)]);
    bad_guest("FS base", &[(Field::GuestFsBase, 1 << 47)]);
    bad_guest("GS base", &[(Field::GuestGsBase, 1 << 47)]);
    bad_guest("LDTR base", &[(Field::GuestLdtrRights, 0x82), (Field::GuestLdtrBase, 1 << 47)]);
    bad_guest("CS base", &[(Field::GuestCsBase, 1 << 32)]);
    bad_guest("SS, DS or ES base", &[(Field::GuestSsBase, 1 << 32)]);

    bad_guest("CS type", &[(Field::GuestCsRights, 0xa09a)]);
    bad_restricted("CS type", &[(Field::GuestCsRights, 0xa093)]);
    bad_guest("CS DPL", &[(Field::GuestCsRights, 0xa0fb)]);
    bad_guest("CS DPL", &[(Field::GuestCsRights, 0xa0ff)]);
    bad_guest("CS: S or P", &[(Field::GuestCsRights, 0xa01b)]);
    bad_guest("reserved bit", &[(Field::GuestCsRights, 0xa19b)]);
    bad_guest("L and D", &[(Field::GuestCsRights, 0xe09b)]);
    bad_guest("G set", &[(Field::GuestCsLimit, 0xffff_f000)]);
    bad_guest("G clear", &[(Field::GuestCsRights, 0x209b)]);

    bad_guest("SS type", &[(Field::GuestSsRights, 0xc091)]);
    bad_guest("SS: S or P", &[(Field::GuestSsRights, 0xc013)]);
    bad_restricted("SS DPL", &[(Field::GuestSsRights, 0xc0f3), (Field::GuestCsRights, 0xa0fb)]);
    bad_guest_with(0, "SS DPL: not 0", |c| {
        real(c);
        set(c, &[(Field::GuestSsRights, 0xf3)]);
    });

    bad_guest("not accessed", &[(Field::GuestDsRights, 0x92)]);
    bad_guest("cannot be read", &[(Field::GuestDsRights, 0x99)]);
    bad_guest("data segment: S or P", &[(Field::GuestEsRights, 0x13)]);
    bad_restricted("DPL below RPL", &[(Field::GuestFsRights, 0x93), (Field::GuestFsSelector, 3)]);

    bad_guest("TR type", &[(Field::GuestTrRights, 0x83)]);
    bad_guest("TR type", &[(Field::GuestTrRights, 0x89)]);
    bad_guest("TR: S set", &[(Field::GuestTrRights, 0x9b)]);
    bad_guest("TR: S set", &[(Field::GuestTrRights, 0x8b | UNUSABLE)]);
    bad_guest("LDTR type", &[(Field::GuestLdtrRights, 0x83)]);
    bad_guest("LDTR: S set", &[(Field::GuestLdtrRights, 0x02)]);

    bad_guest("base not canonical", &[(Field::GuestGdtrBase, 1 << 47)]);
    bad_guest("limit above", &[(Field::GuestIdtrLimit, 0x1_0000)]);
    bad_guest("limit above", &[(Field::GuestGdtrLimit, 0x1_0000)]);
}

#[test]
fn virtual_8086_segments() {
    for (field, value, what) in [
        (Field::GuestDsBase, 0x1010, "base"),
        (Field::GuestEsLimit, 0xfffff, "limit"),
        (Field::GuestGsRights, 0x93, "access rights"),
    ] {
        bad_guest_with(0, what, |c| {
            virtual_8086(c);
            c.vmwrite(field, value);
        });
    }
}

#[test]
fn guest_rip_and_rflags() {
    bad_guest("RIP not canonical", &[(Field::GuestRip, 1 << 47)]);
    bad_guest_with(0, "RIP above", |c| {
        protected(c);
        c.vmwrite(Field::GuestRip, 1 << 32);
    });
    bad_guest("RFLAGS: a reserved", &[(Field::GuestRflags, 0)]);
    bad_guest("RFLAGS: a reserved", &[(Field::GuestRflags, 2 | 1 << 15)]);
    bad_guest_with(0, "VM set", |c| {
        virtual_8086(c);
        c.vmwrite(Field::GuestCr0, cr0::NE);
    });
    bad_guest("RFLAGS.IF clear", &[(Field::EntryInterruptionInformation, VALID | 0x20)]);
}

#[test]
fn guest_activity_and_interruptibility() {
    let nmi = VALID | u64::from(interruption::TYPE_NMI) | 2;
    let (sti, mov_ss, smi, nmi_blocking) = (1, 2, 4, 8);
    let interruptible = (Field::GuestRflags, 0x202);
    bad_guest("does not exist", &[(Field::GuestActivity, 4)]);
    bad_guest(
        "HLT with SS.DPL",
        &[(Field::GuestActivity, 1), (Field::GuestSsRights, 0xc0f3), (Field::GuestCsRights, 0xa0fb)],
    );
    bad_guest("inactive in an STI", &[interruptible, (Field::GuestActivity, 1), (Field::GuestInterruptibility, sti)]);
    bad_guest("does not take", &[(Field::GuestActivity, 3), (Field::EntryInterruptionInformation, nmi)]);
    bad_guest(
        "does not take",
        &[interruptible, (Field::GuestActivity, 2), (Field::EntryInterruptionInformation, VALID | 0x20)],
    );
    bad_guest("interruptibility: a reserved", &[(Field::GuestInterruptibility, 1 << 5)]);
    bad_guest("both STI and MOV SS", &[interruptible, (Field::GuestInterruptibility, sti | mov_ss)]);
    bad_guest("STI with RFLAGS.IF clear", &[(Field::GuestInterruptibility, sti)]);
    bad_guest("SMI", &[(Field::GuestInterruptibility, smi)]);
    bad_guest(
        "external interrupt in an STI",
        &[interruptible, (Field::GuestInterruptibility, sti), (Field::EntryInterruptionInformation, VALID | 0x20)],
    );
    bad_guest_with(3, "NMI in a MOV SS", |c| {
        set(c, &[(Field::GuestInterruptibility, mov_ss), (Field::EntryInterruptionInformation, nmi)]);
    });
    bad_guest_with(0, "virtual NMIs are blocked", |c| {
        toggle(c, Field::PinBasedControls, u64::from(pin::NMI_EXITING | pin::VIRTUAL_NMIS));
        set(c, &[(Field::GuestInterruptibility, nmi_blocking), (Field::EntryInterruptionInformation, nmi)]);
    });
    bad_guest("pending debug exceptions: a reserved", &[(Field::GuestPendingDebugExceptions, 1 << 5)]);
    bad_guest(
        "BS does not fit",
        &[(Field::GuestInterruptibility, mov_ss), (Field::GuestPendingDebugExceptions, 1 << 14)],
    );
    bad_guest("BS does not fit", &[(Field::GuestInterruptibility, mov_ss), (Field::GuestRflags, 0x102)]);
    good(|c| set(c, &[(Field::GuestInterruptibility, mov_ss), (Field::GuestRflags, 0x102), (Field::GuestDebugctl, 2)]));
}

#[test]
fn link_pointer_and_pdptes_have_qualifications() {
    bad_guest_with(4, "link pointer", |c| c.vmwrite(Field::VmcsLinkPointer, 0x3000));
    bad_guest_with(4, "link pointer", |c| c.vmwrite(Field::VmcsLinkPointer, 8));
    bad_guest_with(2, "PDPTE", |c| {
        protected(c);
        set(
            c,
            &[
                (Field::GuestCr0, cr0::PE | cr0::NE | cr0::PG),
                (Field::GuestCr4, cr4::VMXE | cr4::PAE),
                (Field::GuestPdpte2, 1 | 1 << 1),
            ],
        );
    });
}

#[test]
fn pdptes_come_from_memory_without_ept() {
    use silicon_memory::HostPhysical;
    let core = good(|c| {
        protected(c);
        c.vmwrite(Field::SecondaryControls, 0);
        set(
            c,
            &[
                (Field::GuestCr0, cr0::PE | cr0::NE | cr0::PG),
                (Field::GuestCr4, cr4::VMXE | cr4::PAE),
                (Field::GuestCr3, 0x2020),
                (Field::GuestPdpte1, 0x1e6 | 1),
            ],
        );
        c.memory.page(HostPhysical(0x2000)).unwrap().0.store(0x28, 0x7001_u64);
    });
    assert_eq!(core.vmx.pdptes, [0, 0x7001, 0, 0]);
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
    core.vmwrite(Field::EntryInterruptionInformation, VALID | u64::from(interruption::TYPE_OTHER));
    assert_eq!(core.vmlaunch(), Ok(Entered::Guest));
    assert!(core.vmx.monitor_trap_pending);
}

#[test]
fn a_control_that_guest_checks_depend_on_makes_them_run_again() {
    let mut core = good(protected);
    assert!(core.vmresume().is_ok());
    toggle(&mut core, Field::SecondaryControls, secondary::UNRESTRICTED_GUEST.into());
    assert!(matches!(core.vmresume(), Err(EntryFailure::Exit { reason: ExitReason::EntryFailureGuestState, .. })));
    assert!(core.vmresume().is_err(), "the failure does not make the state pass");
}
