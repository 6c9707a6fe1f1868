use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};

use super::*;
use crate::core::test::{peek, poke, real_mode};
use crate::core::{SegmentRegister, TableRegister};
use crate::event::{EventKind, Injection};

const GDT: u64 = 0x1000;
const OLD: u64 = 0x4000;
const NEW: u64 = 0x5000;
const OLD_SELECTOR: u16 = 0x40;
const NEW_SELECTOR: u16 = 0x48;

const CODE: u64 = 0x00cf_9b00_0000_ffff;
const DATA: u64 = 0x00cf_9300_0000_ffff;
const USER: u64 = 3 << 45;

fn tss_descriptor(base: u64, kind: u64) -> u64 {
    0x67 | base << 16 | (0x80 | kind) << 40
}

/// 32-bit protected mode in the task of [`OLD`]; the TSS at [`NEW`] has flat segments of level 0.
fn old_task() -> Core {
    let mut core = real_mode();
    core.cr0 = cr0::PE | cr0::NE | cr0::ET;
    for i in index::ES..=index::GS {
        core.seg[i] = SegmentRegister { selector: 0x10, base: 0, limit: u32::MAX, rights: 0xc093 };
    }
    core.seg[index::CS] = SegmentRegister { selector: 8, base: 0, limit: u32::MAX, rights: 0xc09b };
    core.seg[index::TR] = SegmentRegister { selector: OLD_SELECTOR, base: OLD, limit: 0x67, rights: rights::P | 11 };
    for (i, d) in [0, CODE, DATA, CODE | USER, DATA | USER, DATA & !(1 << 47), 0x0000_8200_2000_ffff].iter().enumerate()
    {
        poke(&core, GDT + i as u64 * 8, *d);
    }
    poke(&core, GDT + u64::from(OLD_SELECTOR), tss_descriptor(OLD, 11));
    poke(&core, GDT + u64::from(NEW_SELECTOR), tss_descriptor(NEW, 9));
    core.gdtr = TableRegister { base: GDT, limit: 0x7f };
    core.gpr[..8].copy_from_slice(&[1, 2, 3, 4, 0x8000, 6, 7, 8]);
    core.rip = 0x1234;
    core.set_rflags(rflags::CF);
    core.update_mode();
    core.tlb_select();
    for (i, value) in [0x5678, 0x202, 11, 12, 13, 14, 0x9000, 16, 17, 18].into_iter().enumerate() {
        put(&core, NEW + 32 + 4 * i as u64, value);
    }
    for (i, selector) in [0x10, 8, 0x10, 0x10, 0, 0x10, 0x30].into_iter().enumerate() {
        put(&core, NEW + 72 + 4 * i as u64, selector);
    }
    core
}

fn put(core: &Core, at: u64, value: u32) {
    core.memory.page(silicon_memory::HostPhysical(at)).expect("test memory").0.store(at, value);
}

fn at(core: &Core, at: u64) -> u32 {
    peek(core, at) as u32
}

fn request(source: TaskSwitch) -> TaskSwitchRequest {
    TaskSwitchRequest { source, selector: NEW_SELECTOR, instruction_length: 7, event: None }
}

fn is_busy(core: &Core, selector: u16) -> bool {
    peek(core, GDT + u64::from(selector)) >> 41 & 1 != 0
}

#[test]
fn a_call_saves_the_old_task_links_the_new_one_to_it_and_leaves_both_busy() {
    let mut core = old_task();
    core.dr[7] = 0x4ff;
    assert_eq!(core.switch_task(&request(TaskSwitch::Call)), Ok(Switched { trap: false }));
    assert_eq!(at(&core, OLD + 32), 0x123b);
    assert_eq!(at(&core, OLD + 36), (rflags::CF | rflags::FIXED) as u32);
    assert_eq!([at(&core, OLD + 40), at(&core, OLD + 56), at(&core, OLD + 68)], [1, 0x8000, 8]);
    assert_eq!([at(&core, OLD + 72), at(&core, OLD + 76)], [0x10, 8]);
    assert_eq!((core.rip, core.gpr[0], core.gpr[4], core.gpr[7]), (0x5678, 11, 0x9000, 18));
    assert_eq!(core.rflags(), 0x202 | rflags::NT);
    assert_eq!(at(&core, NEW) & 0xffff, u32::from(OLD_SELECTOR));
    assert!(is_busy(&core, OLD_SELECTOR) && is_busy(&core, NEW_SELECTOR));
    assert_eq!((core.seg[index::TR].selector, core.seg[index::TR].base), (NEW_SELECTOR, NEW));
    assert_eq!(core.seg[index::TR].rights & rights::TYPE, 11);
    assert!(core.seg[index::FS].unusable() && !core.seg[index::GS].unusable());
    assert_eq!((core.seg[index::LDTR].selector, core.seg[index::LDTR].base), (0x30, 0x2000));
    assert_ne!(core.cr0 & cr0::TS, 0);
    assert_eq!(core.dr[7], 0x4aa, "local breakpoints are those of the old task");
}

#[test]
fn a_jump_leaves_the_old_task_available_and_iret_goes_back_without_nt() {
    let mut core = old_task();
    core.switch_task(&request(TaskSwitch::Jump)).unwrap();
    assert!(!is_busy(&core, OLD_SELECTOR) && is_busy(&core, NEW_SELECTOR));
    assert_eq!((core.rflags() & rflags::NT, at(&core, NEW)), (0, 0));

    let mut core = old_task();
    core.switch_task(&request(TaskSwitch::Call)).unwrap();
    let back = TaskSwitchRequest { selector: OLD_SELECTOR, instruction_length: 1, ..request(TaskSwitch::Iret) };
    core.switch_task(&back).unwrap();
    assert!(is_busy(&core, OLD_SELECTOR) && !is_busy(&core, NEW_SELECTOR));
    assert_eq!((core.rip, core.gpr[0], core.rflags()), (0x123b, 1, rflags::CF | rflags::FIXED));
    assert_eq!(at(&core, NEW + 36) & rflags::NT as u32, 0, "NT is not saved by IRET");
    assert_eq!(at(&core, NEW + 32), 0x5679);
}

#[test]
fn an_exception_through_a_task_gate_pushes_its_error_code_and_returns_to_the_instruction() {
    let mut core = old_task();
    let event = Injection {
        vector: vector::GP,
        kind: EventKind::HardwareException,
        error_code: Some(0x58),
        instruction_length: 0,
    };
    let request = TaskSwitchRequest { instruction_length: 0, event: Some(event), ..request(TaskSwitch::IdtGate) };
    core.switch_task(&request).unwrap();
    assert_eq!((core.gpr[4], at(&core, 0x8ffc), at(&core, OLD + 32)), (0x8ffc, 0x58, 0x1234));
}

#[test]
fn what_is_wrong_with_the_descriptor_is_an_exception_of_the_old_task() {
    let gp = vector::GP;
    for (source, descriptor, vector, error) in [
        (TaskSwitch::Call, tss_descriptor(NEW, 11), gp, NEW_SELECTOR),
        (TaskSwitch::Jump, DATA, gp, NEW_SELECTOR),
        (TaskSwitch::Jump, tss_descriptor(NEW, 9) & !(1 << 47), vector::NP, NEW_SELECTOR),
        (TaskSwitch::Jump, tss_descriptor(NEW, 9) - 1, vector::TS, NEW_SELECTOR),
        (TaskSwitch::Iret, tss_descriptor(NEW, 9), vector::TS, NEW_SELECTOR),
    ] {
        let mut core = old_task();
        poke(&core, GDT + u64::from(NEW_SELECTOR), descriptor);
        assert_eq!(core.switch_task(&request(source)), Err(Leave::Fault), "{descriptor:x}");
        assert_eq!((core.fault.vector, core.fault.error_code), (vector, Some(u32::from(error))), "{descriptor:x}");
        assert_eq!((core.rip, core.seg[index::TR].selector), (0x1234, OLD_SELECTOR));
    }
}

#[test]
fn what_is_wrong_with_a_segment_is_an_exception_of_the_new_task() {
    const CS: u64 = 76;
    for (offset, selector, vector, error) in [
        (CS, 0x10, vector::TS, 0x10),
        (CS, 0x1b - 3, vector::TS, 0x18),
        (CS, 0, vector::TS, 0),
        (80, 0x20, vector::TS, 0x20),
        (80, 0x28, vector::SS, 0x28),
        (80, 0, vector::TS, 0),
        (84, 0x28, vector::NP, 0x28),
        (84, 0x78, vector::TS, 0x78),
        (96, 0x10, vector::TS, 0x10),
        (96, 0x34, vector::TS, 0x34),
    ] {
        let mut core = old_task();
        put(&core, NEW + offset, selector);
        assert_eq!(core.switch_task(&request(TaskSwitch::Jump)), Err(Leave::Fault), "{offset} {selector:x}");
        assert_eq!((core.fault.vector, core.fault.error_code), (vector, Some(error)), "{offset} {selector:x}");
        assert_eq!((core.rip, core.seg[index::TR].selector), (0x5678, NEW_SELECTOR));
    }
}

#[test]
fn exceptions_of_an_external_event_have_ext_and_contributory_ones_make_a_double_fault() {
    let external = Injection { vector: 0x20, kind: EventKind::External, error_code: None, instruction_length: 0 };
    let page_fault = Injection {
        vector: vector::PF,
        kind: EventKind::HardwareException,
        error_code: Some(0),
        instruction_length: 0,
    };
    for (event, vector, error) in [(external, vector::TS, 0x11), (page_fault, vector::DF, 0)] {
        let mut core = old_task();
        put(&core, NEW + 76, 0x10);
        let request = TaskSwitchRequest { event: Some(event), ..request(TaskSwitch::IdtGate) };
        assert_eq!(core.switch_task(&request), Err(Leave::Fault));
        assert_eq!((core.fault.vector, core.fault.error_code), (vector, Some(error)));
    }
}

#[test]
fn a_task_of_virtual_8086_mode_has_segments_of_paragraphs() {
    let mut core = old_task();
    put(&core, NEW + 36, (rflags::VM | rflags::FIXED) as u32);
    put(&core, NEW + 76, 0x200);
    core.switch_task(&request(TaskSwitch::Jump)).unwrap();
    assert_eq!((core.seg[index::CS].base, core.seg[index::CS].limit, core.mode.cpl), (0x2000, 0xffff, 3));
}

#[test]
fn a_16_bit_tss_has_its_own_layout_and_no_cr3() {
    let mut core = old_task();
    poke(&core, GDT + u64::from(NEW_SELECTOR), tss_descriptor(NEW, 1) - 0x67 + 0x2b);
    let words = [0x5678_u16, 0x202, 11, 12, 13, 14, 0x9000, 16, 17, 18, 0x10, 8, 0x10, 0x10, 0x30];
    for (i, word) in words.into_iter().enumerate() {
        let at = NEW + 14 + 2 * i as u64;
        core.memory.page(silicon_memory::HostPhysical(at)).unwrap().0.store(at, word);
    }
    core.switch_task(&request(TaskSwitch::Call)).unwrap();
    assert_eq!((core.rip, core.gpr[4], core.gpr[7]), (0x5678, 0x9000, 18));
    assert_eq!((core.seg[index::DS].selector, core.seg[index::LDTR].selector), (0x10, 0x30));
    assert!(core.seg[index::FS].unusable() && core.seg[index::GS].unusable());
    assert_eq!(core.seg[index::TR].rights & rights::TYPE, 3);
}

#[test]
fn the_t_flag_asks_for_a_debug_trap() {
    let mut core = old_task();
    put(&core, NEW + 100, 1);
    assert_eq!(core.switch_task(&request(TaskSwitch::Jump)), Ok(Switched { trap: true }));
}
