//! Control registers, what VM-entry and VM-exit load and save, and MSR areas.

use silicon_x86::model::Model;
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::controls::{entry, exit, primary, secondary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{CODE, DATA, Guest, PAGES};

const HLT: u8 = 0xf4;

#[test]
fn masks_and_shadows_decide_what_the_guest_sees_and_what_exits() {
    // MOV rcx, CR0; MOV CR0, rdx.
    let mut guest = Guest::new(&[0x0f, 0x20, 0xc1, 0x0f, 0x22, 0xc2, HLT]);
    guest.write(Field::Cr0Mask, cr0::NE | cr0::CD).write(Field::Cr0Shadow, cr0::CD);
    let shown = cr0::PE | cr0::ET | cr0::PG | cr0::CD;
    guest.gpr(2, shown | cr0::MP);
    guest.expect_end();
    assert_eq!(guest.core().gpr[1], shown);
    assert_eq!(guest.core().cr0 & (cr0::MP | cr0::NE | cr0::CD), cr0::MP | cr0::NE, "the host's bits stay");
    guest.gpr(2, shown & !cr0::CD).write(Field::GuestRip, CODE + 3);
    assert_eq!(guest.expect(R::ControlRegisterAccess).qualification, 2 << 8);
}

#[test]
fn cr4_bits_of_the_host_exit_when_they_differ_from_the_shadow() {
    // MOV CR4, rdx.
    let mut guest = Guest::new(&[0x0f, 0x22, 0xe2, HLT]);
    guest.write(Field::Cr4Mask, cr4::VMXE | cr4::PGE).write(Field::Cr4Shadow, 0);
    guest.gpr(2, cr4::PAE | cr4::DE);
    guest.expect_end();
    assert_eq!(guest.core().cr4, cr4::PAE | cr4::VMXE | cr4::DE);
    guest.gpr(2, cr4::PAE | cr4::PGE).write(Field::GuestRip, CODE);
    assert_eq!(guest.expect(R::ControlRegisterAccess).qualification, 4 | 2 << 8);
}

#[test]
fn clts_and_lmsw_have_their_own_qualifications() {
    // CLTS.
    let mut guest = Guest::new(&[0x0f, 0x06, HLT]);
    guest.write(Field::Cr0Mask, cr0::TS).write(Field::Cr0Shadow, cr0::TS);
    assert_eq!(guest.expect(R::ControlRegisterAccess).qualification, 2 << 4);
    // LMSW cx.
    let mut guest = Guest::new(&[0x0f, 0x01, 0xf1, HLT]);
    guest.gpr(1, 0xf).write(Field::Cr0Mask, cr0::TS).write(Field::Cr0Shadow, 0);
    assert_eq!(guest.expect(R::ControlRegisterAccess).qualification, 3 << 4 | 0xf << 16);
    // LMSW [rax].
    let mut guest = Guest::new(&[0x0f, 0x01, 0x30, HLT]);
    guest.gpr(0, DATA).write(Field::Cr0Mask, cr0::TS).write(Field::Cr0Shadow, 0);
    guest.poke(DATA, 9);
    let exit = guest.expect(R::ControlRegisterAccess);
    assert_eq!((exit.qualification, exit.guest_linear), (3 << 4 | 1 << 6 | 9 << 16, DATA));
}

#[test]
fn cr3_targets_do_not_exit() {
    // MOV CR3, rcx.
    let mut guest = Guest::new(&[0x0f, 0x22, 0xd9, HLT]);
    guest.primary(primary::CR3_LOAD_EXITING).gpr(1, 0x8_0000);
    guest.write(Field::Cr3Target2, 0x8_0000).write(Field::Cr3TargetCount, 3);
    guest.expect_end();
    guest.write(Field::Cr3TargetCount, 2).write(Field::GuestRip, CODE);
    guest.expect(R::ControlRegisterAccess);
}

#[test]
fn an_unrestricted_guest_runs_in_real_mode() {
    let mut guest = Guest::new(&[HLT]);
    guest.clear_bits(Field::EntryControls, entry::IA32E_MODE_GUEST);
    guest.write(Field::GuestCr0, cr0::NE | cr0::ET).write(Field::GuestCr4, cr4::VMXE).write(Field::GuestEfer, 0);
    guest.write(Field::GuestCsRights, 0x9b).write(Field::GuestCsLimit, 0xffff);
    guest.write(Field::GuestSsRights, 0x93).write(Field::GuestSsLimit, 0xffff);
    guest.expect(R::Hlt);
    assert_eq!(guest.core().cr0 & cr0::PE, 0);
    guest.clear_bits(Field::SecondaryControls, secondary::UNRESTRICTED_GUEST);
    assert!(guest.core().vmresume().is_err());
}

#[test]
fn secondary_controls_count_only_when_activated() {
    // WBINVD.
    let mut guest = Guest::new(&[0x0f, 0x09, HLT]);
    guest.secondary(secondary::WBINVD_EXITING).write(Field::GuestCr3, 0x8_0000);
    guest.expect(R::WbinvdOrWbnoinvd);
    guest.clear_bits(Field::PrimaryControls, primary::ACTIVATE_SECONDARY_CONTROLS);
    guest.expect_end();
}

#[test]
fn the_preemption_timer_debug_controls_pat_and_efer_are_saved_and_loaded_as_asked() {
    // MOV DR7, rcx; WRMSR.
    let code = [0x0f, 0x23, 0xf9, 0x0f, 0x30, HLT];
    for saves in [false, true] {
        let mut guest = Guest::new(&code);
        guest.primary(primary::USE_MSR_BITMAPS).write(Field::MsrBitmaps, PAGES);
        guest.set_bits(Field::EntryControls, entry::LOAD_DEBUG_CONTROLS);
        let controls = exit::SAVE_DEBUG_CONTROLS | exit::SAVE_PAT | exit::SAVE_EFER;
        if saves {
            guest.set_bits(Field::ExitControls, controls);
        } else {
            guest.clear_bits(Field::ExitControls, controls);
        }
        // The PAT; DR7 has a bit for it to be seen by.
        guest.gpr(1, 0x277).gpr(0, 0x0606_0606).gpr(2, 0x0606_0606);
        guest.write(Field::GuestDr7, 0x401);
        guest.core().gpr[1] = 0x277;
        guest.expect_end();
        let pat = guest.read(Field::GuestPat);
        assert_eq!(pat == 0x0606_0606_0606_0606, saves, "PAT {pat:#x}");
        let dr7 = guest.read(Field::GuestDr7);
        assert_eq!(dr7 != 0x401, saves, "DR7 {dr7:#x}");
    }
}

#[test]
fn debug_controls_pat_and_efer_that_are_not_loaded_stay_what_the_exit_left() {
    let mut guest = Guest::new(&[HLT]);
    guest.write(Field::GuestDr7, 0x455).write(Field::GuestPat, 0).write(Field::GuestEfer, 0);
    guest.clear_bits(Field::EntryControls, entry::LOAD_DEBUG_CONTROLS | entry::LOAD_EFER);
    guest.expect(R::Hlt);
    assert_eq!(guest.core().dr[7], 0x400);
    assert_eq!(guest.core().efer & (efer::LMA | efer::LME), efer::LMA | efer::LME, "from IA-32e mode guest");
}

#[test]
fn a_vm_exit_stores_whether_the_guest_was_in_ia32e_mode() {
    let mut guest = Guest::new(&[HLT]);
    guest.expect(R::Hlt);
    assert_ne!(guest.read(Field::EntryControls) as u32 & entry::IA32E_MODE_GUEST, 0);
    assert_ne!(guest.read(Field::ExitControls) as u32 & exit::HOST_ADDRESS_SPACE_SIZE, 0);
}

#[test]
fn translations_of_each_vpid_are_its_own() {
    // MOV rcx, [rax]; HLT.
    let mut guest = Guest::new(&[0x48, 0x8b, 0x08, HLT]);
    guest.secondary(secondary::ENABLE_VPID).write(Field::VirtualProcessorIdentifier, 1).gpr(0, DATA);
    guest.poke(DATA, 1);
    guest.poke(DATA + 0x1000, 2);
    guest.expect_end();
    // The guest's table now leads elsewhere; the cached translation stays until INVVPID.
    guest.poke(0x8_3000 + (DATA >> 12) * 8, (DATA + 0x1000) | 7);
    guest.write(Field::GuestRip, CODE);
    guest.expect_end();
    assert_eq!(guest.core().gpr[1], 1, "cached");
    guest.write(Field::GuestRip, CODE).write(Field::VirtualProcessorIdentifier, 2);
    guest.expect_end();
    assert_eq!(guest.core().gpr[1], 2, "another VPID");
    guest.write(Field::GuestRip, CODE).write(Field::VirtualProcessorIdentifier, 1);
    guest.core().invvpid(1, [1, 0]).expect("a valid descriptor");
    guest.expect_end();
    assert_eq!(guest.core().gpr[1], 2, "invalidated");
}

#[test]
fn an_ept_violation_says_what_was_tried_and_where() {
    // MOV [rax], rcx.
    let mut guest = Guest::new(&[0x48, 0x89, 0x08, HLT]);
    guest.gpr(0, DATA + 0x18);
    guest.poke(crate::guest::EPT_LEAVES + (DATA >> 12) * 8, DATA | 1 | 6 << 3);
    let exit = guest.expect(R::EptViolation);
    assert_eq!(exit.qualification & 0x1bf, 2 | 1 << 3 | 1 << 7 | 1 << 8);
    assert_eq!((exit.guest_linear, exit.guest_physical), (DATA + 0x18, DATA + 0x18));
    assert_eq!(exit.instruction_length, 3);
}

#[test]
fn msr_areas_are_processed_at_entry_and_exit() {
    let mut guest = Guest::new(&[HLT]);
    for (i, (msr, value)) in [(0xc000_0102, 0x1111), (0xc000_0102, 0), (0xc000_0102, 0x3333)].into_iter().enumerate() {
        guest.poke(PAGES + i as u64 * 16, msr);
        guest.poke(PAGES + i as u64 * 16 + 8, value);
    }
    for (address, count, at) in [
        (Field::EntryMsrLoadAddress, Field::EntryMsrLoadCount, PAGES),
        (Field::ExitMsrStoreAddress, Field::ExitMsrStoreCount, PAGES + 16),
        (Field::ExitMsrLoadAddress, Field::ExitMsrLoadCount, PAGES + 32),
    ] {
        guest.write(address, at).write(count, 1);
    }
    guest.expect(R::Hlt);
    assert_eq!(guest.peek(PAGES + 24), 0x1111);
    assert_eq!(guest.core().msrs.kernel_gs_base, 0x3333);
}

#[test]
fn pkrs_is_saved_and_loaded_as_asked() {
    let model = || Model::parse("glassvisor-v2,+pks").expect("the feature is known");
    // WRMSR.
    let code = [0x0f, 0x30, HLT];
    for (loads, writes) in [(false, false), (true, false), (false, true), (true, true)] {
        let code = if writes { &code[..] } else { &code[2..] };
        let mut guest = Guest::with_model(code, model());
        guest.primary(primary::USE_MSR_BITMAPS).write(Field::MsrBitmaps, PAGES);
        guest.gpr(0, 8).gpr(1, 0x6e1).gpr(2, 0);
        guest.core().set_pkrs(0xc0);
        guest.write(Field::GuestPkrs, 0x30);
        if loads {
            guest.set_bits(Field::EntryControls, entry::LOAD_PKRS);
        }
        guest.expect_end();
        let left = if writes {
            8
        } else if loads {
            0x30
        } else {
            0xc0
        };
        assert_eq!(guest.read(Field::GuestPkrs), left, "loads {loads}, writes {writes}");
    }
    for (controls, control, field) in [
        (Field::EntryControls, entry::LOAD_PKRS, Field::GuestPkrs),
        (Field::ExitControls, exit::LOAD_PKRS, Field::HostPkrs),
    ] {
        let mut guest = Guest::with_model(&[HLT], model());
        guest.write(field, 1 << 32);
        guest.clear_bits(controls, control);
        assert!(guest.core().vmlaunch().is_ok(), "{field:?} without its control");
        let mut guest = Guest::with_model(&[HLT], model());
        guest.write(field, 1 << 32);
        guest.set_bits(controls, control);
        assert!(guest.core().vmlaunch().is_err(), "{field:?}");
    }
}
