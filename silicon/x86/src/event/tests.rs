use x86_defs::control::{cr0, efer};
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::interruption;

use super::*;
use crate::core::test::{core as core64, peek, poke, real_mode};
use crate::core::{Fault, SegmentRegister, TableRegister};
use crate::{Core, Leave};

const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const TSS: u64 = 0x4000;
const HANDLER: u64 = 0x5000;
/// Top of the ring-0 stack of the TSS.
const RING0: u64 = 0x7100;
/// Top of the first stack of the interrupt stack table.
const IST1: u64 = 0x9008;

const CODE64: u64 = 0x00af_9b00_0000_ffff;
const CODE32: u64 = 0x00cf_9b00_0000_ffff;
const DATA: u64 = 0x00cf_9300_0000_ffff;
const USER: u64 = 3 << 45;

/// Descriptor tables in memory: 8 code, 0x10 data, 0x18 user code, 0x20 user data.
fn tables(core: &mut Core, code: u64) {
    for (i, d) in [0, code, DATA, code | USER, DATA | USER].into_iter().enumerate() {
        poke(core, GDT + i as u64 * 8, d);
    }
    core.gdtr = TableRegister { base: GDT, limit: 0x7f };
    core.seg[index::TR] = SegmentRegister { selector: 0x40, base: TSS, limit: 0x67, rights: rights::P | 11 };
}

fn gate64(core: &Core, vector: u8, kind: u64, dpl: u64, ist: u64) {
    let low =
        (HANDLER & 0xffff) | 8 << 16 | ist << 32 | kind << 40 | dpl << 45 | 1 << 47 | (HANDLER >> 16 & 0xffff) << 48;
    poke(core, IDT + u64::from(vector) * 16, low);
    poke(core, IDT + u64::from(vector) * 16 + 8, HANDLER >> 32);
}

/// 64-bit mode at CPL 0 with interrupt gates for every exception.
fn kernel64() -> Core {
    let mut core = core64();
    tables(&mut core, CODE64);
    core.idtr = TableRegister { base: IDT, limit: 0x2ff };
    for vector in 0..32 {
        gate64(&core, vector, 14, 0, 0);
    }
    // The 64-bit TSS is packed: RSP0 at 4, IST1 at 36.
    poke(&core, TSS + 4, RING0);
    poke(&core, TSS + 36, IST1);
    core.rip = 0x1234;
    core
}

fn user64() -> Core {
    let mut core = kernel64();
    core.seg[index::CS] = SegmentRegister { selector: 0x1b, base: 0, limit: u32::MAX, rights: 0xa0fb };
    core.seg[index::SS] = SegmentRegister { selector: 0x23, base: 0, limit: u32::MAX, rights: 0xc0f3 };
    core.update_mode();
    core
}

/// 32-bit protected mode, paging off.
fn kernel32() -> Core {
    let mut core = real_mode();
    core.cr0 = cr0::PE | cr0::NE | cr0::ET;
    core.efer = 0;
    for i in index::ES..=index::GS {
        core.seg[i] = SegmentRegister { selector: 0x10, base: 0, limit: u32::MAX, rights: 0xc093 };
    }
    core.seg[index::CS] = SegmentRegister { selector: 8, base: 0, limit: u32::MAX, rights: 0xc09b };
    core.gpr[4] = 0x8000;
    core.rip = 0x1234;
    tables(&mut core, CODE32);
    core.idtr = TableRegister { base: IDT, limit: 0xff };
    core.update_mode();
    core.tlb_select();
    core
}

fn gate32(core: &Core, vector: u8, kind: u64, dpl: u64) {
    poke(core, IDT + u64::from(vector) * 8, HANDLER | 8 << 16 | kind << 40 | dpl << 45 | 1 << 47);
}

fn fault(vector: u8, error_code: Option<u32>, address: u64) -> Fault {
    Fault { vector, error_code, address }
}

fn external(vector: u8) -> Injection {
    Injection { vector, kind: EventKind::External, error_code: None, instruction_length: 0 }
}

#[test]
fn a_fault_in_64_bit_mode_pushes_an_aligned_frame_with_rf_and_its_error_code() {
    let mut core = kernel64();
    core.gpr[4] = 0x8009;
    core.set_rflags(rflags::IF | rflags::ZF | rflags::TF);
    core.fault = fault(vector::GP, Some(0x18), 0);
    core.deliver_fault().unwrap();
    assert_eq!((core.rip, core.gpr[4]), (HANDLER, 0x8000 - 48));
    let frame: Vec<u64> = (0..6).map(|i| peek(&core, 0x8000 - 48 + i * 8)).collect();
    let flags = rflags::IF | rflags::ZF | rflags::TF | rflags::RF | rflags::FIXED;
    assert_eq!(frame, [0x18, 0x1234, 8, flags, 0x8009, 0x10]);
    assert_eq!(core.rflags() & (rflags::IF | rflags::TF | rflags::RF), 0);
}

#[test]
fn a_trap_gate_leaves_interrupts_enabled() {
    let mut core = kernel64();
    gate64(&core, 3, 15, 0, 0);
    core.set_rflags(rflags::IF);
    core.fault = fault(3, None, 0);
    core.deliver_fault().unwrap();
    assert_ne!(core.rflags() & rflags::IF, 0);
}

#[test]
fn an_interrupt_of_user_code_switches_to_the_stack_of_the_tss_with_a_null_ss() {
    let mut core = user64();
    core.inject(external(0x1f)).unwrap();
    assert_eq!(core.gpr[4], RING0 - 40);
    assert_eq!((core.mode.cpl, core.seg[index::SS].selector, core.seg[index::CS].selector), (0, 0, 8));
    assert!(core.seg[index::SS].unusable());
    assert_eq!(peek(&core, RING0 - 8), 0x23);
    assert_eq!(peek(&core, RING0 - 32), 0x1b);
    assert_eq!(peek(&core, RING0 - 40), 0x1234);
}

#[test]
fn the_interrupt_stack_table_is_used_at_the_same_level_too_and_aligned() {
    let mut core = kernel64();
    gate64(&core, 8, 14, 0, 1);
    core.fault = fault(vector::DF, Some(0), 0);
    core.deliver_fault().unwrap();
    assert_eq!(core.gpr[4], (IST1 & !15) - 48);
}

#[test]
fn a_page_fault_sets_cr2_when_it_is_delivered_and_not_when_it_exits() {
    let mut core = kernel64();
    core.fault = fault(vector::PF, Some(2), 0xdead_0000);
    core.deliver_fault().unwrap();
    assert_eq!(core.cr2, 0xdead_0000);

    let mut core = kernel64();
    core.vmx.controls.exception_bitmap = 1 << vector::PF;
    core.fault = fault(vector::PF, Some(2), 0xdead_0000);
    assert_eq!(core.deliver_fault(), Err(Leave::Exit));
    assert_eq!(core.cr2, 0);
    let exit = core.vmx.exit;
    assert_eq!(exit.reason, Some(ExitReason::ExceptionOrNmi));
    assert_eq!((exit.qualification, exit.interruption_error), (0xdead_0000, 2));
    let information =
        interruption::VALID | interruption::DELIVER_ERROR_CODE | interruption::TYPE_HARDWARE_EXCEPTION | 14;
    assert_eq!((exit.interruption, exit.idt_vectoring), (information, 0));
    assert_eq!(core.rip, 0x1234);
}

#[test]
fn a_missing_gate_is_a_general_protection_fault_that_names_it_and_is_external() {
    let mut core = kernel64();
    core.idtr.limit = 0x1ff;
    core.gpr[4] = 0x8000;
    core.inject(external(0x80)).unwrap();
    // #GP((0x80 << 3) | IDT | EXT) at the interrupted instruction.
    assert_eq!(peek(&core, 0x8000 - 48), 0x80 << 3 | 3);
    assert_eq!(peek(&core, 0x8000 - 40), 0x1234);
}

#[test]
fn contributory_faults_make_a_double_fault() {
    let mut core = kernel64();
    // The gate of #NP is not present: #NP(11 << 3 | IDT | EXT) while #NP is delivered.
    poke(&core, IDT + u64::from(vector::NP) * 16, 0x0000_0e00_0008_5000);
    core.fault = fault(vector::NP, Some(0x18), 0);
    core.deliver_fault().unwrap();
    assert_eq!(core.rip, HANDLER);
    assert_eq!(peek(&core, 0x8000 - 48), 0, "#DF has error code zero");
}

#[test]
fn a_fault_during_the_delivery_of_a_double_fault_is_a_triple_fault() {
    let mut core = kernel64();
    core.idtr.limit = 0;
    core.fault = fault(vector::GP, Some(0), 0);
    assert_eq!(core.deliver_fault(), Err(Leave::Exit));
    assert_eq!(core.vmx.exit.reason, Some(ExitReason::TripleFault));
    assert_eq!(core.rip, 0x1234);
}

#[test]
fn the_double_fault_table_is_that_of_the_manual() {
    use deliver::{Outcome, combine};
    let exception =
        |vector| Injection { vector, kind: EventKind::HardwareException, error_code: None, instruction_length: 0 };
    for (first, second, outcome) in [
        (vector::GP, vector::GP, Outcome::DoubleFault),
        (vector::GP, vector::PF, Outcome::Serial),
        (vector::PF, vector::GP, Outcome::DoubleFault),
        (vector::PF, vector::PF, Outcome::DoubleFault),
        (vector::UD, vector::GP, Outcome::Serial),
        (vector::GP, vector::UD, Outcome::Serial),
        (vector::DF, vector::PF, Outcome::TripleFault),
        (vector::DF, vector::NP, Outcome::TripleFault),
        (vector::DE, vector::SS, Outcome::DoubleFault),
    ] {
        assert_eq!(combine(&exception(first), &exception(second)), outcome, "{first} then {second}");
    }
    assert_eq!(combine(&external(vector::GP), &exception(vector::GP)), Outcome::Serial);
}

#[test]
fn an_intercepted_fault_during_delivery_exits_with_the_event_that_was_delivered() {
    let mut core = kernel64();
    core.idtr.limit = 0x1ff;
    core.vmx.controls.exception_bitmap = 1 << vector::GP;
    assert_eq!(core.inject(external(0x80)), Err(Leave::Exit));
    let exit = core.vmx.exit;
    assert_eq!(exit.interruption & interruption::VECTOR, u32::from(vector::GP));
    assert_eq!(exit.interruption_error, 0x80 << 3 | 3);
    assert_eq!(exit.idt_vectoring, interruption::VALID | interruption::TYPE_EXTERNAL | 0x80);
}

#[test]
fn the_exception_bitmap_does_not_apply_to_an_injected_exception() {
    let mut core = kernel64();
    core.vmx.controls.exception_bitmap = 1 << vector::GP;
    let event = Injection {
        vector: vector::GP,
        kind: EventKind::HardwareException,
        error_code: Some(0),
        instruction_length: 0,
    };
    core.inject(event).unwrap();
    assert_eq!(core.rip, HANDLER);
}

#[test]
fn an_injected_software_interrupt_returns_behind_its_instruction() {
    let mut core = user64();
    gate64(&core, 0x1e, 14, 3, 0);
    let event = Injection { vector: 0x1e, kind: EventKind::SoftwareInterrupt, error_code: None, instruction_length: 2 };
    core.inject(event).unwrap();
    assert_eq!(peek(&core, RING0 - 40), 0x1236);
}

#[test]
fn a_software_interrupt_needs_the_privilege_of_its_gate() {
    let mut core = user64();
    let event = Injection { vector: 0x1e, kind: EventKind::SoftwareInterrupt, error_code: None, instruction_length: 2 };
    core.inject(event).unwrap();
    // #GP((0x1e << 3) | IDT), EXT clear, at the instruction itself.
    assert_eq!(peek(&core, RING0 - 48), 0x1e << 3 | 2);
    assert_eq!(peek(&core, RING0 - 40), 0x1234);
}

#[test]
fn an_nmi_blocks_nmis_and_ends_shadows() {
    let mut core = kernel64();
    core.events.sti_shadow = true;
    core.inject(Injection { vector: 2, kind: EventKind::Nmi, error_code: None, instruction_length: 0 }).unwrap();
    assert!(core.events.nmi_blocked && !core.events.sti_shadow);
}

#[test]
fn real_mode_pushes_three_words_and_takes_cs_ip_from_the_vector_table() {
    let mut core = real_mode();
    core.idtr = TableRegister { base: 0, limit: 0x3ff };
    poke(&core, 0x21 * 4, 0x1000_2345);
    core.seg[index::SS] = SegmentRegister { selector: 0x900, base: 0x9000, limit: 0xffff, rights: 0x93 };
    core.gpr[4] = 0x100;
    core.rip = 0x77;
    core.set_rflags(rflags::IF | rflags::CF);
    core.inject(external(0x21)).unwrap();
    assert_eq!((core.rip, core.seg[index::CS].selector, core.seg[index::CS].base), (0x2345, 0x1000, 0x1_0000));
    assert_eq!(core.gpr[4], 0xfa);
    assert_eq!(peek(&core, 0x90fa) & 0xffff_ffff_ffff, 0x0203_0000_0077);
    assert_eq!(core.rflags() & rflags::IF, 0);
}

#[test]
fn a_32_bit_gate_switches_to_the_stack_of_a_32_bit_tss() {
    let mut core = kernel32();
    core.seg[index::CS] = SegmentRegister { selector: 0x1b, base: 0, limit: u32::MAX, rights: 0xc0fb };
    core.seg[index::SS] = SegmentRegister { selector: 0x23, base: 0, limit: u32::MAX, rights: 0xc0f3 };
    core.update_mode();
    gate32(&core, 0x1c, 14, 0);
    poke(&core, TSS + 4, RING0 | 0x10 << 32);
    core.inject(external(0x1c)).unwrap();
    assert_eq!((core.rip, core.mode.cpl, core.gpr[4]), (HANDLER, 0, RING0 - 20));
    assert_eq!(core.seg[index::SS].selector, 0x10);
    assert_eq!(peek(&core, RING0 - 8), 0x23 << 32 | 0x8000);
    assert_eq!(peek(&core, RING0 - 20), 0x1b << 32 | 0x1234);
}

#[test]
fn a_bad_ring_0_stack_is_an_invalid_tss_fault() {
    let mut core = kernel32();
    core.seg[index::CS] = SegmentRegister { selector: 0x1b, base: 0, limit: u32::MAX, rights: 0xc0fb };
    core.seg[index::SS] = SegmentRegister { selector: 0x23, base: 0, limit: u32::MAX, rights: 0xc0f3 };
    core.update_mode();
    gate32(&core, 0x1c, 14, 0);
    // SS of the TSS is the user's.
    poke(&core, TSS + 4, RING0 | 0x23 << 32);
    core.vmx.controls.exception_bitmap = 1 << vector::TS;
    assert_eq!(core.inject(external(0x1c)), Err(Leave::Exit));
    assert_eq!(core.vmx.exit.interruption_error, 0x20 | 1);
}

#[test]
fn a_task_gate_exits_as_a_task_switch_with_the_event() {
    let mut core = kernel32();
    poke(&core, GDT + 0x38, 0x0000_8900_6000_0067);
    poke(&core, IDT + 8 * 8, 0x0000_8500_0038_0000);
    core.fault = fault(vector::DF, Some(0), 0);
    assert_eq!(core.deliver_fault(), Err(Leave::Exit));
    let exit = core.vmx.exit;
    assert_eq!((exit.reason, exit.qualification), (Some(ExitReason::TaskSwitch), 3 << 30 | 0x38));
    assert_eq!(exit.idt_vectoring & interruption::VECTOR, 8);
}

#[test]
fn an_interrupt_of_virtual_8086_mode_saves_and_clears_the_data_segments() {
    let mut core = kernel32();
    gate32(&core, 0x1c, 14, 0);
    poke(&core, TSS + 4, RING0 | 0x10 << 32);
    for (i, selector) in
        [(index::ES, 1), (index::CS, 2), (index::SS, 3), (index::DS, 4), (index::FS, 5), (index::GS, 6)]
    {
        core.seg[i] = SegmentRegister { selector, base: u64::from(selector) << 4, limit: 0xffff, rights: 0xf3 };
    }
    core.gpr[4] = 0x44;
    core.set_rflags(rflags::VM | rflags::IF);
    core.update_mode();
    core.inject(external(0x1c)).unwrap();
    let frame: Vec<u32> = (0..9).map(|i| peek(&core, RING0 - 36 + i * 4) as u32).collect();
    assert_eq!(frame, [0x1234, 2, (rflags::VM | rflags::IF | rflags::FIXED) as u32, 0x44, 3, 1, 4, 5, 6]);
    assert!(core.seg[index::DS].unusable() && core.seg[index::GS].unusable());
    assert_eq!((core.mode.cpl, core.rflags() & rflags::VM), (0, 0));
}

#[test]
fn a_single_step_trap_is_taken_after_the_instruction_and_clears_tf() {
    let mut core = kernel64();
    core.set_rflags(rflags::TF);
    let before = core.rflags();
    core.end_of_step(before, Step::Straight);
    assert!(core.pending_debug());
    core.deliver_debug_trap().unwrap();
    assert_eq!(core.dr[6] & debug::dr6::BS, debug::dr6::BS);
    assert!(!core.pending_debug() && core.rflags() & rflags::TF == 0);
    assert_eq!(peek(&core, 0x8000 - 24) & rflags::RF, 0, "a trap does not set RF");
}

#[test]
fn an_instruction_breakpoint_hits_once_because_of_rf() {
    let mut core = kernel64();
    core.dr[1] = 0x1234;
    core.dr[7] = 0x400 | 1 << 2;
    assert_eq!(core.instruction_breakpoint(), Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.fault.address), (vector::DB, 2));
    core.rflags_rest |= rflags::RF;
    assert_eq!(core.instruction_breakpoint(), Ok(()));
    core.rflags_rest &= !rflags::RF;
    core.rip += 1;
    assert_eq!(core.instruction_breakpoint(), Ok(()));
}

#[test]
fn interrupts_are_open_with_if_and_without_a_shadow() {
    let mut core = kernel64();
    assert!(!core.interrupts_open());
    core.set_rflags(rflags::IF);
    assert!(core.interrupts_open());
    core.events.mov_ss_shadow = true;
    assert!(!core.interrupts_open());
    assert_ne!(core.efer & efer::LMA, 0);
}
