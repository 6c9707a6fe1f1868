use x86_defs::control::{cr0, efer};
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;

use crate::core::test::{core, peek, poke, real_mode};
use crate::core::{SegmentRegister, TableRegister};
use crate::exec::run_test::run;
use crate::{Core, Leave};

const GDT: u64 = 0x1000;
const TSS: u64 = 0x4000;

/// 8 code64, 0x10 data, 0x18 user data, 0x20 user code64, 0x28 code32, 0x30 16-byte gate, 0x40 TSS.
fn long() -> Core {
    let mut core = core();
    let user = 3 << 45;
    let code = 0x00af_9b00_0000_ffff;
    let data = 0x00cf_9200_0000_ffff;
    let gate = 0x5000 | 8 << 16 | 0xec << 40;
    for (i, d) in [0, code, data, data | user, code | user, 0x00cf_9a00_0000_ffff, gate, 0, 0x0000_8900_4000_0067, 0]
        .into_iter()
        .enumerate()
    {
        poke(&core, GDT + i as u64 * 8, d);
    }
    core.gdtr = TableRegister { base: GDT, limit: 0x4f };
    core.seg[index::TR] = SegmentRegister { selector: 0x40, base: TSS, limit: 0x67, rights: rights::P | 11 };
    poke(&core, TSS + 4, 0x7100);
    core.rip = 0x1234;
    core
}

fn to_user(core: &mut Core) {
    core.seg[index::CS] = SegmentRegister { selector: 0x23, base: 0, limit: u32::MAX, rights: 0xa0fb };
    core.seg[index::SS] = SegmentRegister { selector: 0x1b, base: 0, limit: u32::MAX, rights: 0xc0f3 };
    core.update_mode();
}

fn expect_fault(core: &mut Core, bytes: &[u8], vector: u8, error_code: u32) {
    assert_eq!(run(core, bytes), Err(Leave::Fault), "{bytes:02x?}");
    assert_eq!((core.fault.vector, core.fault.error_code), (vector, Some(error_code)), "{bytes:02x?}");
}

fn frame(core: &mut Core, words: &[u64]) {
    core.gpr[4] = 0x6000;
    for (i, word) in words.iter().enumerate() {
        poke(core, 0x6000 + i as u64 * 8, *word);
    }
}

const IRETQ: &[u8] = &[0x48, 0xcf];

#[test]
fn syscall_and_sysret_go_to_the_kernel_and_back() {
    let mut core = long();
    to_user(&mut core);
    core.msrs.star = 8 << 32 | 0x13 << 48;
    core.msrs.lstar = 0x9_0000;
    core.msrs.fmask = rflags::IF | rflags::DF;
    core.set_rflags(rflags::IF | rflags::CF);
    run(&mut core, &[0x0f, 0x05]).unwrap();
    assert_eq!((core.rip, core.gpr[1], core.mode.cpl), (0x9_0000, 0x1236, 0));
    assert_eq!(core.gpr[11], rflags::IF | rflags::CF | rflags::FIXED);
    assert_eq!(core.rflags() & (rflags::IF | rflags::CF), rflags::CF);
    assert_eq!((core.seg[index::CS].selector, core.seg[index::SS].selector), (8, 0x10));
    run(&mut core, &[0x48, 0x0f, 0x07]).unwrap();
    assert_eq!((core.rip, core.mode.cpl, core.mode.is_64()), (0x1236, 3, true));
    assert_eq!((core.seg[index::CS].selector, core.seg[index::SS].selector), (0x23, 0x1b));
    assert_ne!(core.rflags() & rflags::IF, 0);
}

#[test]
fn sysret_to_a_non_canonical_address_faults_in_the_kernel() {
    let mut core = long();
    core.gpr[1] = 0x8000_0000_0000;
    expect_fault(&mut core, &[0x48, 0x0f, 0x07], vector::GP, 0);
    assert_eq!(core.mode.cpl, 0);
}

#[test]
fn syscall_without_its_enable_bit_is_undefined() {
    let mut core = long();
    core.efer &= !efer::SCE;
    assert_eq!(run(&mut core, &[0x0f, 0x05]), Err(Leave::Fault));
    assert_eq!(core.fault.vector, vector::UD);
}

#[test]
fn iretq_to_user_code_restores_flags_stack_and_unblocks_nmis() {
    let mut core = long();
    core.events.nmi_blocked = true;
    frame(&mut core, &[0x4444, 0x23, rflags::IF | rflags::RF | rflags::ZF, 0x8888, 0x1b]);
    core.seg[index::FS].base = 0x1_0000;
    run(&mut core, IRETQ).unwrap();
    assert_eq!((core.rip, core.gpr[4], core.mode.cpl), (0x4444, 0x8888, 3));
    assert_eq!(core.rflags(), rflags::IF | rflags::RF | rflags::ZF | rflags::FIXED);
    assert!(!core.events.nmi_blocked);
    assert!(core.seg[index::DS].unusable(), "a kernel data segment is not left to user code");
}

#[test]
fn iretq_at_the_same_level_takes_the_stack_from_the_frame() {
    let mut core = long();
    frame(&mut core, &[0x4444, 8, rflags::FIXED, 0x7777, 0x10]);
    run(&mut core, IRETQ).unwrap();
    assert_eq!((core.rip, core.gpr[4], core.mode.cpl), (0x4444, 0x7777, 0));
}

#[test]
fn a_bad_iret_frame_faults_with_its_selector_and_changes_nothing() {
    for (words, error) in [
        ([0x4444, 0, 2, 0x8888, 0x1b], 0),                // null CS
        ([0x4444, 0x10, 2, 0x8888, 0x1b], 0x10),          // data as code
        ([0x4444, 0x20, 2, 0x8888, 0x1b], 0x20),          // RPL does not fit
        ([0x4444, 0x23, 2, 0x8888, 0], 0),                // null SS for ring 3
        ([0x4444, 0x23, 2, 0x8888, 0x13], 0x10),          // kernel stack for ring 3
        ([0x1_0000_0000_0000, 0x23, 2, 0x8888, 0x1b], 0), // RIP not canonical
        ([0x4444, 0x103, 2, 0x8888, 0x1b], 0x100),        // beyond the table
    ] {
        let mut core = long();
        frame(&mut core, &words);
        expect_fault(&mut core, IRETQ, vector::GP, error);
        assert_eq!((core.gpr[4], core.seg[index::CS].selector, core.mode.cpl), (0x6000, 8, 0));
    }
}

#[test]
fn user_code_cannot_change_iopl_or_if_by_iret() {
    let mut core = long();
    to_user(&mut core);
    core.set_rflags(rflags::IF);
    frame(&mut core, &[0x4444, 0x23, rflags::IOPL | rflags::CF, 0x8888, 0x1b]);
    run(&mut core, IRETQ).unwrap();
    assert_eq!(core.rflags(), rflags::IF | rflags::CF | rflags::FIXED);
}

#[test]
fn a_far_call_through_a_64_bit_gate_switches_the_stack() {
    let mut core = long();
    to_user(&mut core);
    // call far [rax] (m16:32), selector of the gate; the offset is ignored.
    poke(&core, 0x3000, 0x33 << 32 | 0xdead);
    core.gpr[0] = 0x3000;
    run(&mut core, &[0xff, 0x18]).unwrap();
    assert_eq!((core.rip, core.mode.cpl, core.gpr[4]), (0x5000, 0, 0x7100 - 32));
    let words: Vec<u64> = (0..4).map(|i| peek(&core, 0x7100 - 32 + i * 8)).collect();
    assert_eq!(words, [0x1236, 0x23, 0x8000, 0x1b]);
    // And back: retfq.
    run(&mut core, &[0x48, 0xcb]).unwrap();
    assert_eq!((core.rip, core.mode.cpl, core.gpr[4]), (0x1236, 3, 0x8000));
}

#[test]
fn a_far_jump_enters_protected_mode_after_cr0_pe() {
    let mut core = real_mode();
    core.gdtr = TableRegister { base: GDT, limit: 0x4f };
    poke(&core, GDT + 0x28, 0x00cf_9a00_0000_ffff);
    core.cr0 |= cr0::PE;
    core.update_mode();
    // jmp dword 0x28:0x12345
    run(&mut core, &[0x66, 0xea, 0x45, 0x23, 0x01, 0x00, 0x28, 0x00]).unwrap();
    assert_eq!((core.rip, core.seg[index::CS].selector, core.seg[index::CS].rights), (0x1_2345, 0x28, 0xc09b));
    assert_eq!(peek(&core, GDT + 0x28) >> 40 & 1, 1, "the accessed bit is set in memory");
}

#[test]
fn a_far_call_in_real_mode_pushes_cs_ip() {
    let mut core = real_mode();
    core.gpr[4] = 0x100;
    core.rip = 0x50;
    // call 0x1000:0x0020
    run(&mut core, &[0x9a, 0x20, 0x00, 0x00, 0x10]).unwrap();
    assert_eq!((core.rip, core.seg[index::CS].base, core.gpr[4]), (0x20, 0x1_0000, 0xfc));
    assert_eq!(peek(&core, 0xf8) >> 32, 0x55);
}

#[test]
fn a_jump_to_a_tss_in_protected_mode_exits_as_a_task_switch() {
    let mut core = long();
    core.efer = 0;
    core.cr0 &= !cr0::PG;
    core.seg[index::CS].rights = 0xc09b;
    core.update_mode();
    core.tlb_select();
    assert_eq!(run(&mut core, &[0xea, 0, 0, 0, 0, 0x40, 0]), Err(Leave::Exit));
    assert_eq!((core.vmx.exit.reason, core.vmx.exit.qualification), (Some(ExitReason::TaskSwitch), 2 << 30 | 0x40));
    assert_eq!(core.vmx.exit.instruction_length, 7);
}

#[test]
fn int3_of_user_code_needs_a_gate_of_its_level() {
    let mut core = long();
    to_user(&mut core);
    core.idtr = TableRegister { base: 0x2000, limit: 0xfff };
    poke(&core, 0x2030, 0x0000_8e00_0008_5000);
    expect_fault(&mut core, &[0xcc], vector::GP, 3 << 3 | 2);
    poke(&core, 0x2030, 0x0000_ee00_0008_5000);
    core.events.vectoring = None;
    run(&mut core, &[0xcc]).unwrap();
    assert_eq!((core.rip, core.mode.cpl, peek(&core, 0x7100 - 40)), (0x5000, 0, 0x1235));
}

#[test]
fn an_intercepted_int3_is_a_software_exception_with_its_length() {
    let mut core = long();
    core.vmx.controls.exception_bitmap = 1 << vector::BP;
    assert_eq!(run(&mut core, &[0xcc]), Err(Leave::Exit));
    assert_eq!((core.vmx.exit.interruption, core.vmx.exit.instruction_length), (0x8000_0603, 1));
    assert_eq!(core.rip, 0x1234);
}
