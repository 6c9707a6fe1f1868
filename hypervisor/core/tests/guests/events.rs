//! Exceptions on top of exceptions, shadows and NMI blocking.

use iced_x86::code_asm::*;

use crate::legacy::{self, CODE_32, FREE, Legacy};
use crate::machine::{Ending, IDT, Machine};

/// A handler that leaves its vector and error code in result slots and ends the case.
fn last_handler(c: &mut Legacy, vector: u8) {
    let mut over = c.label();
    emit!(c; jmp(over));
    let at = c.here();
    emit!(c; pop(eax));
    c.result(0, eax);
    emit!(c; mov(eax, u32::from(vector)));
    c.result(1, eax);
    c.end();
    emit!(c; set_label(&mut over); nop());
    c.gate(vector, at, CODE_32, 0x8e);
}

fn no_gate(c: &mut Legacy, vector: u32) {
    c.memory(IDT as u32 + 8 * vector, &[0; 8]);
}

/// Raises `vector`, one of #DE, #UD, #GP and #PF.
fn raise(c: &mut Legacy, vector: u32) {
    match vector {
        0 => emit!(c; xor(ecx, ecx); div(ecx)),
        6 => emit!(c; ud2()),
        13 => emit!(c; mov(eax, 0x7f8); mov(fs, ax)),
        _ => emit!(c; mov(eax, dword_ptr(0x40_0000))),
    }
}

#[test]
fn contributory_exceptions_and_page_faults_add_up_to_double_faults_and_benign_ones_do_not() {
    // A gate that is missing is #GP (13 * 8 + 2 would be named in its error code), one that is not present #NP.
    for (first, expected) in [(0, (0, 8)), (13, (0, 8)), (14, (0, 8)), (6, (6 * 8 + 2 + 1, 13))] {
        let m = legacy::finished(|c| {
            c.paging();
            // The window of 4 MiB is not there.
            c.words(legacy::DIRECTORY + 4, &[0]);
            last_handler(c, 8);
            if first == 6 {
                last_handler(c, 13);
            } else {
                no_gate(c, 13);
            }
            no_gate(c, first);
            raise(c, first);
        });
        assert_eq!((m.result(0), m.result(1)), expected, "vector {first}");
    }
}

#[test]
fn a_fault_of_the_double_fault_handlers_gate_shuts_the_processor_down() {
    let mut m = legacy::machine(|c| {
        no_gate(c, 8);
        no_gate(c, 13);
        raise(c, 13);
    });
    assert_eq!(m.machine.run(), Ending::Shutdown);
}

#[test]
fn error_codes_of_faults_in_delivery_say_whether_the_program_asked_for_the_event() {
    let m = legacy::finished(|c| {
        // INT n: EXT is clear. #UD: set. A gate to a segment that is not there names the segment.
        no_gate(c, 0x41);
        c.faulting(|c| emit!(c; int(0x41)));
        c.memory(IDT as u32 + 8 * 0x42, &legacy::gate(0x7f0, 0, 0x8e, 0).to_le_bytes());
        c.faulting(|c| emit!(c; int(0x42)));
        c.memory(IDT as u32 + 8 * 0x43, &legacy::gate(CODE_32, 0, 0x0e, 0).to_le_bytes());
        c.faulting(|c| emit!(c; int(0x43)));
        // Beyond the limit of the IDT.
        c.faulting(|c| emit!(c; int(0xff)));
        // The gate is of a more privileged level.
        c.memory(IDT as u32 + 8 * 0x44, &legacy::gate(CODE_32, 0, 0x8e, 0).to_le_bytes());
        c.user(2, |c| emit!(c; int(0x44)));
        c.descriptor(FREE, legacy::FLAT_CODE & !(1 << 47));
        c.memory(IDT as u32 + 8 * 6, &legacy::gate(FREE, 0, 0x8e, 0).to_le_bytes());
        c.faulting(|c| emit!(c; ud2()));
    });
    let idt = |vector: u32| vector * 8 + 2;
    let expected =
        [(13, idt(0x41)), (13, 0x7f0), (11, idt(0x43)), (13, idt(0xff)), (13, idt(0x44)), (11, u32::from(FREE) | 1)];
    assert_eq!(m.faults(), expected);
}

#[test]
fn an_nmi_blocks_the_next_one_until_iret_and_its_delivery_can_wait_for_memory() {
    let mut m = Machine::new(1, |c| {
        // Counts in result 0; the depth is in result 1.
        c.handler(2, |c| {
            let results = crate::machine::RESULTS;
            emit!(c; mov(ecx, results as u32); inc(qword_ptr(rcx)); inc(qword_ptr(rcx + 8)));
            emit!(c; mov(rax, qword_ptr(rcx + 8)); cmp(rax, qword_ptr(rcx + 16)));
            let mut below = c.label();
            emit!(c; jbe(below); mov(qword_ptr(rcx + 16), rax); set_label(&mut below); nop());
            // The first sends two more, of which one is kept.
            let mut again = c.label();
            emit!(c; cmp(qword_ptr(rcx), 1); jne(again));
            for _ in 0..2 {
                c.write_msr(0x830, 0x4_4400);
                emit!(c; nop(); nop());
            }
            emit!(c; set_label(&mut again); mov(ecx, results as u32); dec(qword_ptr(rcx + 8)));
        });
        c.x2apic();
        c.write_msr(0x830, 0x4_4400);
        emit!(c; nop(); nop(); nop());
    });
    m.finish();
    assert_eq!(m.results(), [2, 0, 1]);
}

/// A pending interrupt whose handler notes where it came in.
fn pending_interrupt(c: &mut crate::case::Case) {
    c.handler(0x50, |c| {
        let results = crate::machine::RESULTS;
        emit!(c; mov(ecx, results as u32); mov(rax, qword_ptr(rcx)); inc(qword_ptr(rcx)));
        emit!(c; mov(rdx, qword_ptr(rsp + 24)); mov(qword_ptr(rcx + rax * 8 + 8), rdx));
        c.write_msr(0x80b, 0);
    });
    c.x2apic();
}

/// Makes the interrupt pending, with interrupts off.
fn make_pending(c: &mut crate::case::Case) {
    emit!(c; cli());
    c.write_msr(0x83f, 0x50);
}

#[test]
fn sti_and_mov_ss_hold_interrupts_off_for_one_instruction_and_a_second_sti_does_not_renew_it() {
    let m = crate::machine::finished(|c| {
        pending_interrupt(c);
        make_pending(c);
        emit!(c; sti(); inc(ebx); inc(ebx));
        c.note("one behind");
        make_pending(c);
        emit!(c; sti(); sti());
        c.note("second sti");
        make_pending(c);
        // MOV SS in the shadow of STI has its own.
        emit!(c; mov(eax, ss); sti(); mov(ss, ax); inc(ebx));
        c.note("after mov ss");
        make_pending(c);
        // The window closes before it was ever open.
        emit!(c; sti(); cli(); inc(ebx); inc(ebx));
        emit!(c; mov(rcx, crate::machine::RESULTS); mov(rax, qword_ptr(rcx)));
        c.result(8, rax);
    });
    let expected = [m.case.mark("one behind") - 2, m.case.mark("second sti"), m.case.mark("after mov ss")];
    assert_eq!(m.results::<4>()[1..], expected);
    assert_eq!(m.result(8), 3, "the fourth is still pending");
}
