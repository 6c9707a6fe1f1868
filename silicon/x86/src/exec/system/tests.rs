use x86_defs::control::{cr0, cr4, efer};
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::index;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{primary, secondary};

use crate::core::test::{core, peek, poke, real_mode};
use crate::core::{SegmentRegister, TableRegister};
use crate::event::{dr6, dr7};
use crate::exec::run_test::run;
use crate::{Core, Leave};

fn user() -> Core {
    let mut core = core();
    core.seg[index::CS] = SegmentRegister { selector: 0x1b, base: 0, limit: u32::MAX, rights: 0xa0fb };
    core.seg[index::SS] = SegmentRegister { selector: 0x23, base: 0, limit: u32::MAX, rights: 0xc0f3 };
    core.update_mode();
    core
}

fn expect_fault(core: &mut Core, bytes: &[u8], vector: u8, error_code: Option<u32>) {
    assert_eq!(run(core, bytes), Err(Leave::Fault), "{bytes:02x?}");
    assert_eq!((core.fault.vector, core.fault.error_code), (vector, error_code), "{bytes:02x?}");
}

fn expect_exit(core: &mut Core, bytes: &[u8], reason: ExitReason, qualification: u64, information: u32) {
    assert_eq!(run(core, bytes), Err(Leave::Exit), "{bytes:02x?}");
    let exit = core.vmx.exit;
    assert_eq!(exit.reason, Some(reason), "{bytes:02x?}");
    assert_eq!((exit.qualification, exit.instruction_info), (qualification, information), "{bytes:02x?}");
    assert_eq!(exit.instruction_length as usize, bytes.len());
}

#[test]
fn privileged_instructions_fault_in_user_mode_before_they_exit() {
    for bytes in [
        &[0xf4_u8][..],      // hlt
        &[0x0f, 0x30],       // wrmsr
        &[0x0f, 0x32],       // rdmsr
        &[0x0f, 0x22, 0xc0], // mov cr0, rax
        &[0x0f, 0x20, 0xd8], // mov rax, cr3
        &[0x0f, 0x06],       // clts
        &[0x0f, 0x01, 0x38], // invlpg [rax]
        &[0x0f, 0x08],       // invd
        &[0x0f, 0x01, 0xf8], // swapgs
        &[0xfa],             // cli
        &[0xe4, 0x10],       // in al, 10h
    ] {
        let mut core = user();
        core.seg[index::TR].limit = 0x60;
        core.vmx.controls.primary = u32::MAX;
        expect_fault(&mut core, bytes, vector::GP, Some(0));
    }
}

#[test]
fn user_mode_instruction_prevention_covers_the_five_stores() {
    for bytes in [
        &[0x0f_u8, 0x01, 0x00][..], // sgdt
        &[0x0f, 0x01, 0x08],        // sidt
        &[0x0f, 0x00, 0xc0],        // sldt eax
        &[0x0f, 0x00, 0xc8],        // str eax
        &[0x0f, 0x01, 0xe0],        // smsw eax
    ] {
        let mut core = user();
        core.gpr[0] = 0x3000;
        assert_eq!(run(&mut core, bytes), Ok(()));
        core.cr4 |= cr4::UMIP;
        expect_fault(&mut core, bytes, vector::GP, Some(0));
    }
}

#[test]
fn a_write_of_cr0_exits_where_it_differs_from_the_shadow_of_owned_bits() {
    let mut core = core();
    core.vmx.controls.cr0_mask = cr0::TS | cr0::NE;
    core.vmx.controls.cr0_shadow = cr0::NE;
    core.gpr[3] = core.cr0 | cr0::TS;
    expect_exit(&mut core, &[0x0f, 0x22, 0xc3], ExitReason::ControlRegisterAccess, 3 << 8, 0);
    core.gpr[3] = core.cr0 | cr0::MP;
    assert_eq!(run(&mut core, &[0x0f, 0x22, 0xc3]), Ok(()));
    assert_ne!(core.cr0 & cr0::MP, 0);
}

#[test]
fn invalid_values_of_control_registers_are_refused_and_change_nothing() {
    let mut core = core();
    core.vmx.controls.secondary = secondary::UNRESTRICTED_GUEST;
    let good = core.cr0;
    for bad in [good & !cr0::PE, good | cr0::NW, good & !cr0::PG, good | 1 << 40] {
        core.gpr[0] = bad;
        expect_fault(&mut core, &[0x0f, 0x22, 0xc0], vector::GP, Some(0));
        assert_eq!(core.cr0, good);
    }
    let good = core.cr4;
    for bad in [good & !cr4::PAE, good | 1 << 40] {
        core.gpr[0] = bad;
        expect_fault(&mut core, &[0x0f, 0x22, 0xe0], vector::GP, Some(0));
        assert_eq!(core.cr4, good);
    }
    // Bit 63 is reserved without PCIDs.
    core.gpr[0] = core.cr3 | 1 << 63;
    expect_fault(&mut core, &[0x0f, 0x22, 0xd8], vector::GP, Some(0));
}

#[test]
fn paging_with_lme_switches_ia32e_mode_on() {
    let mut core = real_mode();
    core.vmx.controls.secondary = secondary::UNRESTRICTED_GUEST;
    core.cr0 = cr0::PE | cr0::NE | cr0::ET;
    core.seg[index::CS].rights = 0xc09b;
    core.efer = efer::LME;
    core.update_mode();
    core.gpr[0] = core.cr0 | cr0::PG;
    expect_fault(&mut core, &[0x0f, 0x22, 0xc0], vector::GP, Some(0));
    core.cr4 |= cr4::PAE;
    assert_eq!(run(&mut core, &[0x0f, 0x22, 0xc0]), Ok(()));
    assert_eq!(core.efer, efer::LME | efer::LMA);
    assert!(core.mode.is_ia32e() && !core.mode.is_64());
}

#[test]
fn sti_opens_a_shadow_only_when_interrupts_were_off() {
    let mut core = core();
    assert_eq!(run(&mut core, &[0xfb]), Ok(()));
    assert!(core.events.sti_shadow && !core.interrupts_open());
    core.events.sti_shadow = false;
    assert_eq!(run(&mut core, &[0xfb]), Ok(()));
    assert!(!core.events.sti_shadow && core.interrupts_open());
}

#[test]
fn debug_registers_exit_or_are_guarded_by_general_detect() {
    let mut core = core();
    core.dr[7] |= dr7::GD;
    expect_fault(&mut core, &[0x0f, 0x21, 0xf0], vector::DB, None);
    assert_eq!(core.fault.address, dr6::BD);
    core.vmx.controls.primary = primary::MOV_DR_EXITING;
    // mov rbx, dr6
    expect_exit(&mut core, &[0x0f, 0x21, 0xf3], ExitReason::MovDr, 6 | 1 << 4 | 3 << 8, 0);
    // mov rax, dr4 with CR4.DE
    core.cr4 |= cr4::DE;
    expect_exit(&mut core, &[0x0f, 0x21, 0xe0], ExitReason::MovDr, 4 | 1 << 4, 0);
    core.vmx.controls.primary = 0;
    expect_fault(&mut core, &[0x0f, 0x21, 0xe0], vector::UD, None);
    // mov dr7, rax
    expect_fault(&mut user(), &[0x0f, 0x23, 0xf8], vector::GP, Some(0));
}

#[test]
fn without_an_msr_bitmap_every_msr_access_exits() {
    let mut core = core();
    core.gpr[1] = 0x10;
    expect_exit(&mut core, &[0x0f, 0x32], ExitReason::Rdmsr, 0, 0);
    expect_exit(&mut core, &[0x0f, 0x30], ExitReason::Wrmsr, 0, 0);
}

#[test]
fn descriptor_table_exits_describe_the_memory_operand() {
    let mut core = core();
    core.vmx.controls.secondary = secondary::DESCRIPTOR_TABLE_EXITING;
    // lgdt [rbx+rsi*4+0x10]
    let information = 2 | 2 << 7 | 3 << 15 | 6 << 18 | 3 << 23 | 1 << 11 | 2 << 28;
    expect_exit(&mut core, &[0x0f, 0x01, 0x54, 0xb3, 0x10], ExitReason::GdtrOrIdtrAccess, 0x10, information);
    // lldt cx
    let information = 1 << 10 | 1 << 3 | 2 << 28;
    expect_exit(&mut core, &[0x0f, 0x00, 0xd1], ExitReason::LdtrOrTrAccess, 0, information);
}

#[test]
fn vmx_instructions_exit_with_their_operands() {
    let mut core = core();
    expect_exit(&mut core, &[0x0f, 0x01, 0xc1], ExitReason::Vmcall, 0, 0);
    // vmread rcx, rdx: field in rdx.
    expect_exit(&mut core, &[0x0f, 0x78, 0xd1], ExitReason::Vmread, 0, 1 << 10 | 1 << 3 | 2 << 28);
    // vmptrld [rip+0x20]: displacement plus next RIP, no base.
    core.rip = 0x1000;
    let information = 2 << 7 | 3 << 15 | 1 << 22 | 1 << 27;
    expect_exit(&mut core, &[0x0f, 0xc7, 0x35, 0x20, 0, 0, 0], ExitReason::Vmptrld, 0x1027, information);
    // vmxon needs CR4.VMXE.
    expect_fault(&mut core, &[0xf3, 0x0f, 0xc7, 0x30], vector::UD, None);
}

#[test]
fn port_accesses_exit_with_size_direction_and_encoding() {
    let mut core = core();
    core.vmx.controls.primary = primary::UNCONDITIONAL_IO_EXITING;
    core.gpr[2] = 0x3f8;
    expect_exit(&mut core, &[0xe4, 0x71], ExitReason::IoInstruction, 1 << 3 | 1 << 6 | 0x71 << 16, 0);
    expect_exit(&mut core, &[0x66, 0xef], ExitReason::IoInstruction, 1 | 0x3f8 << 16, 0);
    // rep outsd
    core.gpr[1] = 2;
    core.gpr[6] = 0x6000;
    let q = 3 | 1 << 4 | 1 << 5 | 0x3f8 << 16;
    expect_exit(&mut core, &[0xf3, 0x6f], ExitReason::IoInstruction, q, 2 << 7 | 3 << 15);
    assert_eq!(core.vmx.exit.guest_linear, 0x6000);
    // A count of zero does nothing.
    core.gpr[1] = 0;
    assert_eq!(run(&mut core, &[0xf3, 0x6f]), Ok(()));
}

#[test]
fn the_bit_map_of_the_tss_opens_ports_to_user_code() {
    let mut core = user();
    core.seg[index::TR] = SegmentRegister { selector: 0x40, base: 0x4000, limit: 0x6b, rights: 0x8b };
    poke(&core, 0x4060, 0x68 << 48);
    // Ports 0-7 but 1 are open.
    poke(&core, 0x4068, 0xff02);
    assert_eq!(run(&mut core, &[0xe4, 0x00]), Ok(()));
    assert_eq!(core.gpr[0] & 0xff, 0xff, "nothing answers");
    expect_fault(&mut core, &[0xe4, 0x01], vector::GP, Some(0));
    expect_fault(&mut core, &[0x66, 0xe5, 0x07], vector::GP, Some(0));
    // Beyond the limit.
    expect_fault(&mut core, &[0xe4, 0x20], vector::GP, Some(0));
}

#[test]
fn the_time_is_offset_and_may_be_kept_from_user_code() {
    let mut core = core();
    core.vmx.controls.primary = primary::USE_TSC_OFFSETTING;
    core.vmx.controls.tsc_offset = 5 << 32;
    core.charge(4000);
    assert_eq!(run(&mut core, &[0x0f, 0x31]), Ok(()));
    assert_eq!((core.gpr[2], core.gpr[0]), (5, 1000));
    let mut core = user();
    core.cr4 |= cr4::TSD;
    expect_fault(&mut core, &[0x0f, 0x31], vector::GP, Some(0));
}

#[test]
fn random_numbers_set_carry_alone_and_exit_on_demand() {
    let mut core = core();
    core.set_rflags(rflags::STATUS);
    assert_eq!(run(&mut core, &[0x48, 0x0f, 0xc7, 0xf0]), Ok(()));
    assert_eq!(core.flags.bits(), rflags::CF);
    assert_ne!(core.gpr[0], 0);
    core.vmx.controls.secondary = secondary::RDRAND_EXITING;
    expect_exit(&mut core, &[0x48, 0x0f, 0xc7, 0xf1], ExitReason::Rdrand, 0, 1 << 3 | 2 << 11);
}

#[test]
fn lgdt_and_sgdt_are_inverse() {
    let mut core = core();
    poke(&core, 0x3000, 0x5678_9abc_def0_0123);
    poke(&core, 0x3008, 0xffff);
    core.gpr[0] = 0x3000;
    expect_fault(&mut core, &[0x0f, 0x01, 0x10], vector::GP, Some(0));
    poke(&core, 0x3008, 0);
    poke(&core, 0x3000, 0x0000_1234_5000_0fff);
    assert_eq!(run(&mut core, &[0x0f, 0x01, 0x10]), Ok(()));
    assert_eq!(core.gdtr, TableRegister { base: 0x1234_5000, limit: 0xfff });
    core.gpr[0] = 0x3100;
    assert_eq!(run(&mut core, &[0x0f, 0x01, 0x00]), Ok(()));
    assert_eq!((peek(&core, 0x3100), peek(&core, 0x3108) & 0xffff), (0x0000_1234_5000_0fff, 0));
}

#[test]
fn clac_and_stac_select_the_privilege_that_recomputing_the_mode_would() {
    let mut core = core();
    core.cr4 |= cr4::SMAP;
    core.update_mode();
    for bytes in [[0x0f, 0x01, 0xcb], [0x0f, 0x01, 0xca]] {
        run(&mut core, &bytes).unwrap();
        let fast = (core.mode, core.mmu.need_read, core.mmu.need_write);
        core.update_mode();
        assert_eq!(fast, (core.mode, core.mmu.need_read, core.mmu.need_write));
    }
}
