//! Hardware task switches, which exit and are carried out by the hypervisor.

use hypervisor::MemoryFlags;
use iced_x86::code_asm::*;
use x86_defs::vmx::ExitReason;

use crate::legacy::{self, DIRECTORY, FREE, Legacy, TSS, TSS_SELECTOR, descriptor, finished, gate};
use crate::machine::{GDT, IDT, RESULTS};

/// The TSS of the other task, its selector, and its stack.
const OTHER: u32 = 0x3_8000;
const OTHER_SELECTOR: u16 = FREE;
const OTHER_STACK: u32 = 0x5_0000;
const TASK_GATE: u16 = FREE + 8;

/// The other task: `body`, then IRET, again and again.
fn other(c: &mut Legacy, body: impl FnOnce(&mut Legacy)) {
    let mut over = c.label();
    emit!(c; jmp(over));
    let start = c.here();
    body(c);
    emit!(c; iretd(); jmp(start); set_label(&mut over); nop());
    c.task(OTHER, OTHER_SELECTOR, start, OTHER_STACK);
    c.memory(GDT as u32 + u32::from(TASK_GATE), &gate(OTHER_SELECTOR, 0, 0xe5, 0).to_le_bytes());
}

fn call_far(c: &mut Legacy, selector: u16) {
    emit!(c; db(&[0x9a, 0, 0, 0, 0, selector as u8, (selector >> 8) as u8]));
}

fn jump_far(c: &mut Legacy, selector: u16) {
    emit!(c; db(&[0xea, 0, 0, 0, 0, selector as u8, (selector >> 8) as u8]));
}

/// Result slot = EFLAGS.
fn flags_into(c: &mut Legacy, slot: u32) {
    emit!(c; pushfd(); pop(eax));
    c.result(slot, eax);
}

#[test]
fn a_call_of_a_tss_runs_the_task_nested_and_iret_comes_back_with_all_registers() {
    let m = finished(|c| {
        other(c, |c| {
            emit!(c; str(ax); movzx(eax, ax));
            c.result(0, eax);
            c.result(1, esp);
            flags_into(c, 2);
            emit!(c; mov(eax, cr0));
            c.result(3, eax);
            emit!(c; mov(ebx, 99));
        });
        emit!(c; mov(ebx, 7); mov(esi, 8); stc());
        call_far(c, OTHER_SELECTOR);
        flags_into(c, 4);
        c.result(5, ebx);
        c.result(6, esi);
        emit!(c; str(ax); movzx(eax, ax));
        c.result(7, eax);
        // Once more: it goes on behind its IRET, with its own registers, and TS is set by each switch.
        emit!(c; clts());
        call_far(c, OTHER_SELECTOR);
        emit!(c; mov(eax, cr0));
        c.result(8, eax);
    });
    assert_eq!(m.result(0), u32::from(OTHER_SELECTOR));
    assert_eq!(m.result(1), OTHER_STACK);
    assert_eq!(m.result(2) & 0x4001, 0x4000, "NT is set and the flags are the task's own");
    assert_eq!(m.result(3) & 8, 8, "CR0.TS");
    assert_eq!(m.result(4) & 0x4001, 1);
    assert_eq!([m.result(5), m.result(6), m.result(7)], [7, 8, TSS_SELECTOR.into()]);
    assert_eq!(m.result(8) & 8, 8);
    assert_eq!(m.word(OTHER) & 0xffff, u32::from(TSS_SELECTOR), "the link");
    assert_eq!(m.word(OTHER + 52), 99, "EBX of the other task");
    assert_eq!(m.machine.vm.statistics().vcpus[0].exits[&ExitReason::TaskSwitch], 4);
}

#[test]
fn a_task_gate_works_for_call_and_jump_and_a_busy_task_cannot_be_entered_again() {
    let m = finished(|c| {
        other(c, |c| {
            emit!(c; inc(dword_ptr(RESULTS as u32)));
            c.faulting(|c| call_far(c, OTHER_SELECTOR));
            c.faulting(|c| jump_far(c, TASK_GATE));
            // The handler has cleared NT.
            emit!(c; push(0x4002); popfd());
        });
        call_far(c, TASK_GATE);
    });
    assert_eq!(m.result(0), 1);
    let selector = u32::from(OTHER_SELECTOR);
    assert_eq!(m.faults(), [(13, selector), (13, selector)]);
}

#[test]
fn a_jump_between_tasks_leaves_the_one_it_comes_from_available() {
    let m = finished(|c| {
        other(c, |c| {
            flags_into(c, 0);
            jump_far(c, TSS_SELECTOR);
        });
        jump_far(c, OTHER_SELECTOR);
        emit!(c; mov(eax, dword_ptr(GDT as u32 + u32::from(OTHER_SELECTOR) + 4)));
        c.result(1, eax);
        emit!(c; mov(eax, dword_ptr(GDT as u32 + u32::from(TSS_SELECTOR) + 4)));
        c.result(2, eax);
    });
    assert_eq!(m.result(0) & 0x4000, 0, "no NT");
    assert_eq!([m.result(1) >> 8 & 0xff, m.result(2) >> 8 & 0xff], [0x89, 0x8b]);
}

#[test]
fn an_exception_through_a_task_gate_finds_its_error_code_and_returns_to_the_instruction() {
    let m = finished(|c| {
        other(c, |c| {
            // The task's IRET does not remove the error code.
            emit!(c; pop(eax));
            c.result(0, eax);
            c.result(1, esp);
            // Step over the instruction of three bytes.
            emit!(c; mov(eax, dword_ptr(TSS + 32)));
            c.result(2, eax);
            emit!(c; add(dword_ptr(TSS + 32), 3));
        });
        c.memory(IDT as u32 + 13 * 8, &gate(OTHER_SELECTOR, 0, 0x85, 0).to_le_bytes());
        emit!(c; mov(eax, 0x77));
        c.note("faulting");
        emit!(c; mov(fs, ax); mov(ecx, 5));
        c.result(3, ecx);
    });
    // A label is followed by a NOP.
    assert_eq!(m.results(), [0x74, OTHER_STACK, m.mark("faulting") + 1, 5]);
}

#[test]
fn int_n_through_a_task_gate_comes_back_behind_itself() {
    let m = finished(|c| {
        other(c, |c| emit!(c; inc(dword_ptr(RESULTS as u32))));
        c.memory(IDT as u32 + 0x40 * 8, &gate(OTHER_SELECTOR, 0, 0xe5, 0).to_le_bytes());
        emit!(c; int(0x40); int(0x40));
        c.user(0x202, |c| emit!(c; int(0x40); mov(ebx, 3)));
        c.result(1, ebx);
    });
    assert_eq!(m.results(), [3, 3]);
    assert_eq!(m.faults(), [(0x30, 0)]);
}

#[test]
fn a_broken_task_faults_in_its_own_context_and_a_missing_one_in_the_callers() {
    let m = finished(|c| {
        other(c, |_| {});
        // In the caller: not present, too small, not in the GDT.
        for (selector, d) in [(0x50, descriptor(OTHER, 0x67, 0x09)), (0x58, descriptor(OTHER, 0x66, 0x89))] {
            c.descriptor(selector, d);
            c.faulting(|c| call_far(c, selector));
        }
        c.faulting(|c| call_far(c, 0x800));
        // In the new task: its DS is no segment. TR is the new one.
        c.words(OTHER + 84, &[u32::from(TSS_SELECTOR)]);
        c.faulting(|c| call_far(c, OTHER_SELECTOR));
        emit!(c; str(ax); movzx(eax, ax));
        c.result(0, eax);
    });
    assert_eq!(m.faults(), [(11, 0x50), (10, 0x58), (13, 0x800), (10, TSS_SELECTOR.into())]);
    assert_eq!(m.result(0), u32::from(OTHER_SELECTOR));
}

#[test]
fn iret_with_nt_and_a_link_to_an_idle_task_is_an_invalid_tss() {
    let m = finished(|c| {
        other(c, |_| {});
        c.words(TSS, &[u32::from(OTHER_SELECTOR)]);
        emit!(c; push(0x4002); popfd());
        c.faulting(|c| emit!(c; iretd()));
    });
    assert_eq!(m.faults(), [(10, OTHER_SELECTOR.into())]);
}

#[test]
fn a_task_has_address_space_and_ldt_of_its_own() {
    const DIRECTORY_2: u32 = 0x7_0000;
    const WINDOW: u32 = 0x40_0000;
    const LDT: u32 = 0x3_9000;
    let m = finished(|c| {
        c.paging();
        // The window of 4 MiB shows physical 0 in the other task.
        let mut directory: Vec<u32> = (0..1024).map(|i| i << 22 | 0x87).collect();
        directory[1] = 0x87;
        c.words(DIRECTORY_2, &directory);
        other(c, |c| {
            emit!(c; mov(eax, dword_ptr(WINDOW + RESULTS as u32 + 8)));
            c.result(0, eax);
            emit!(c; mov(eax, 0xc); mov(fs, ax); mov(eax, dword_ptr(4).fs()));
            c.result(2, eax);
            emit!(c; mov(eax, cr3));
            c.result(3, eax);
        });
        c.words(OTHER + 28, &[DIRECTORY_2]);
        c.words(OTHER + 96, &[0x50]);
        c.descriptor(0x50, descriptor(LDT, 0xf, 0x82));
        c.memory(LDT + 8, &descriptor(LDT + 0x100, 0xff, 0x493).to_le_bytes());
        c.words(LDT + 0x104, &[0xfee1]);
        emit!(c; mov(eax, 42));
        c.result(1, eax);
        call_far(c, OTHER_SELECTOR);
        emit!(c; mov(eax, cr3));
        c.result(4, eax);
        emit!(c; sldt(ax); movzx(eax, ax));
        c.result(5, eax);
    });
    assert_eq!(m.results(), [42, 42, 0xfee1, DIRECTORY_2, DIRECTORY, 0]);
}

#[test]
fn memory_that_is_first_touched_in_the_middle_of_a_switch_does_not_disturb_it() {
    const FAR_TSS: u32 = 0x100_0000;
    const FAR_LDT: u32 = 0x180_0000;
    const LDT_SELECTOR: u16 = 0x50;
    let mut m = legacy::machine(|c| {
        let mut over = c.label();
        emit!(c; jmp(over));
        c.note("start");
        emit!(c; mov(eax, dword_ptr(4).fs()));
        c.result(0, eax);
        emit!(c; pushfd(); pop(eax));
        c.result(1, eax);
        emit!(c; iretd(); set_label(&mut over); nop());
        c.descriptor(OTHER_SELECTOR, descriptor(FAR_TSS, 0x67, 0x89));
        c.descriptor(LDT_SELECTOR, descriptor(FAR_LDT, 0xf, 0x82));
        c.words(0x3_9104, &[0xfee1]);
        emit!(c; mov(ebx, 7));
        call_far(c, OTHER_SELECTOR);
        c.result(2, ebx);
    });
    let start = m.mark("start");
    let mut tss = [0_u32; 26];
    (tss[7], tss[8], tss[9], tss[14]) = (DIRECTORY, start, 2, OTHER_STACK);
    (tss[18], tss[19], tss[20], tss[21], tss[22]) = (0x10, 8, 0x10, 0x10, 0xc);
    tss[24] = LDT_SELECTOR.into();
    let bytes: Vec<u8> = tss.iter().flat_map(|w| w.to_le_bytes()).collect();
    for at in [FAR_TSS, FAR_LDT] {
        m.machine.add_memory(at.into(), 0x1000, MemoryFlags::ReadWrite);
    }
    m.machine.write_extra(0, 0, &bytes);
    // Not accessed yet: the switch also writes to it.
    m.machine.write_extra(1, 8, &descriptor(0x3_9100, 0xff, 0x492).to_le_bytes());
    m.machine.finish();
    assert_eq!(m.result(0), 0xfee1);
    assert_eq!(m.result(1) & 0x4000, 0x4000);
    assert_eq!(m.result(2), 7);
    assert_eq!(m.machine.vm.statistics().vcpus[0].exits[&ExitReason::TaskSwitch], 2);
}

#[test]
fn the_t_flag_of_a_task_is_a_debug_trap_before_its_first_instruction() {
    let m = finished(|c| {
        other(c, |c| {
            c.note("start");
        });
        c.words(OTHER + 100, &[0x68 << 16 | 1]);
        c.faulting(|c| call_far(c, OTHER_SELECTOR));
    });
    let taken = m.taken();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].vector, taken[0].dr6 & 0xe00f), (1, 0x8000));
    assert!(taken[0].eip < m.mark("start"));
}

#[test]
fn a_double_fault_task_gets_a_stack_that_works() {
    let m = finished(|c| {
        other(c, |c| {
            c.result(0, esp);
            emit!(c; str(ax); movzx(eax, ax));
            c.result(1, eax);
            c.end();
        });
        c.memory(IDT as u32 + 8 * 8, &gate(OTHER_SELECTOR, 0, 0x85, 0).to_le_bytes());
        // No handler can be entered: the gate of #GP and #SS is not present, so their delivery is #NP.
        c.memory(IDT as u32 + 13 * 8, &[0; 8]);
        c.memory(IDT as u32 + 11 * 8, &[0; 8]);
        emit!(c; mov(eax, 0x7f0); mov(fs, ax));
    });
    assert_eq!(m.results(), [OTHER_STACK - 4, OTHER_SELECTOR.into()]);
}
