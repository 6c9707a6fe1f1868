//! Debug registers, single-step, and what holds their traps off.

use iced_x86::code_asm::*;

use crate::case::Case;
use crate::machine::{DEVICE, HEAP, Machine, finished};

/// A record of each debug exception: DR6, RIP, RFLAGS.
const RECORDS: u64 = HEAP + 0x10_0000;
const TF: i32 = 0x100;
const DEBUGCTL: u32 = 0x1d9;

/// A #DB handler that records, clears DR6 and stops single-stepping after `steps` records.
fn handler(c: &mut Case, steps: i32) {
    c.handler(1, |c| {
        let mut on = c.label();
        emit!(c;
            mov(rax, qword_ptr(RECORDS)); mov(rcx, rax); shl(rcx, 5); add(rcx, RECORDS as i32 + 32);
            mov(rdx, dr6); mov(qword_ptr(rcx), rdx);
            mov(rdx, qword_ptr(rsp + 24)); mov(qword_ptr(rcx + 8), rdx);
            mov(rdx, qword_ptr(rsp + 40)); mov(qword_ptr(rcx + 16), rdx);
            inc(rax); mov(qword_ptr(RECORDS), rax);
            xor(edx, edx); mov(dr6, rdx);
            cmp(rax, steps); jb(on); and(dword_ptr(rsp + 40), !TF);
            set_label(&mut on); or(dword_ptr(rsp + 40), 0x10000));
    });
}

/// DR6 without the bits that are always one, and RIP of each debug exception.
fn records(m: &Machine) -> Vec<(u64, u64)> {
    (0..m.read_u64(RECORDS))
        .map(|i| {
            let at = RECORDS + 32 + 32 * i;
            (m.read_u64(at) & 0xe00f, m.read_u64(at + 8))
        })
        .collect()
}

fn dr(c: &mut Case, register: AsmRegisterDr, value: u64) {
    emit!(c; mov(rax, value); mov(register, rax));
}

fn set_tf(c: &mut Case) {
    emit!(c; pushfq(); or(qword_ptr(rsp), TF); popfq());
}

#[test]
fn data_breakpoints_of_all_lengths_trap_behind_the_access() {
    let m = finished(|c| {
        handler(c, i32::MAX);
        emit!(c; mov(rbx, HEAP));
        // 0: write of 1, 1: read or write of 2, 2: write of 8, 3: read or write of 4.
        dr(c, dr0, HEAP + 0x11);
        dr(c, dr1, HEAP + 0x22);
        dr(c, dr2, HEAP + 0x38);
        dr(c, dr3, HEAP + 0x44);
        dr(c, dr7, 0xf971_04aa);
        emit!(c; mov(byte_ptr(rbx + 0x11), 1));
        c.note("write 1");
        emit!(c; mov(al, byte_ptr(rbx + 0x11)); mov(ax, word_ptr(rbx + 0x23)));
        c.note("read 2");
        emit!(c; mov(rax, qword_ptr(rbx + 0x38)); mov(word_ptr(rbx + 0x3f), ax));
        c.note("write 8");
        emit!(c; add(dword_ptr(rbx + 0x44), 1));
        c.note("modify 4");
        // All around, and a neighbour of each: nothing.
        emit!(c; mov(byte_ptr(rbx + 0x10), 1); mov(byte_ptr(rbx + 0x12), 1); mov(qword_ptr(rbx + 0x30), rax));
        emit!(c; mov(dword_ptr(rbx + 0x40), eax); mov(eax, dword_ptr(rbx + 0x48)));
        // Two at once.
        emit!(c; movups(xmm0, xmmword_ptr(rbx + 0x10)); movups(xmmword_ptr(rbx + 0x37), xmm0));
        c.note("two");
        dr(c, dr7, 0x400);
        emit!(c; mov(byte_ptr(rbx + 0x11), 1));
    });
    let expected = [(1, "write 1"), (2, "read 2"), (4, "write 8"), (8, "modify 4"), (12, "two")];
    assert_eq!(records(&m), expected.map(|(bits, name)| (bits, m.case.mark(name))));
}

#[test]
fn a_repeated_store_traps_after_the_element_and_goes_on() {
    let m = finished(|c| {
        handler(c, i32::MAX);
        dr(c, dr0, HEAP + 0x104);
        dr(c, dr7, 0x1_0402);
        emit!(c; mov(rdi, HEAP + 0x100); mov(ecx, 16); mov(al, 7));
        c.note("rep");
        emit!(c; rep().stosb());
        c.result(0, rdi);
        c.result(1, rcx);
        emit!(c; mov(rdi, HEAP + 0x104); stosb());
        c.note("after");
    });
    // In the middle of the repetition RIP is that of the instruction, and RF is set.
    assert_eq!(records(&m), [(1, m.case.mark("rep") + 1), (1, m.case.mark("after"))]);
    assert_eq!(m.read_u64(RECORDS + 32 + 16) & 0x1_0000, 0x1_0000);
    assert_eq!(m.results(), [HEAP + 0x110, 0]);
    assert_eq!(m.read::<16>(HEAP + 0x100), [7; 16]);
}

#[test]
fn a_breakpoint_on_device_memory_and_one_on_a_port() {
    let m = finished(|c| {
        handler(c, i32::MAX);
        emit!(c; mov(rax, cr4); or(rax, 8); mov(cr4, rax));
        dr(c, dr0, DEVICE + 4);
        dr(c, dr1, 0x500);
        dr(c, dr7, 0xe3_040a);
        emit!(c; mov(ebx, DEVICE as u32); mov(dword_ptr(rbx), eax); mov(eax, dword_ptr(rbx + 4)));
        c.note("port read");
        emit!(c; mov(dx, 0x502u32); out(dx, al));
        c.note("port write");
        emit!(c; mov(dx, 0x504u32); in_(al, dx); mov(dx, 0x4ffu32); in_(eax, dx));
        c.note("port overlap");
        emit!(c; mov(rsi, HEAP); mov(ecx, 2); mov(dx, 0x500u32); rep().outsb());
        c.note("string");
    });
    // The first access to the device, a neighbour, does not count; nor does the port behind.
    let (port, string) = (m.case.mark("port overlap"), m.case.mark("string"));
    let expected =
        [(1, m.case.mark("port read")), (2, m.case.mark("port write")), (2, port), (2, string - 2), (2, string)];
    assert_eq!(records(&m), expected);
}

#[test]
fn an_instruction_breakpoint_faults_once_and_rf_lets_it_pass() {
    let mut m = Machine::new(1, |c| {
        handler(c, i32::MAX);
        let mut target = c.label();
        emit!(c; lea(rax, ptr(target)); mov(dr2, rax); mov(eax, 0x420); mov(dr7, rax); xor(ebx, ebx));
        emit!(c; set_label(&mut target); inc(ebx); cmp(ebx, 3); jb(target));
        c.result(0, rbx);
        dr(c, dr7, 0x400);
    });
    m.finish();
    let records = records(&m);
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|r| r.0 == 4 && r.1 == records[0].1));
    assert_eq!(m.result(0), 3);
}

#[test]
fn single_step_traps_after_each_instruction_and_each_iteration() {
    let m = finished(|c| {
        handler(c, 5);
        emit!(c; mov(rdi, HEAP); mov(ecx, 3));
        set_tf(c);
        c.note("first");
        c.note("rep");
        emit!(c; rep().stosb());
        c.note("behind");
    });
    // `note` puts a NOP behind its address.
    let (rep, behind) = (m.case.mark("rep") + 1, m.case.mark("behind"));
    assert_eq!(records(&m), [m.case.mark("rep"), rep, rep, rep, behind].map(|rip| (0x4000, rip)));
}

#[test]
fn branch_step_traps_after_taken_branches_only_and_a_debug_exception_ends_it() {
    let m = finished(|c| {
        handler(c, 3);
        let (over, mut not) = (c.label(), c.label());
        c.write_msr(DEBUGCTL, 2);
        c.read_msr(DEBUGCTL);
        c.result(0, rax);
        set_tf(c);
        emit!(c; xor(eax, eax); jnz(not); nop(); jmp(over); set_label(&mut not); nop());
        c.set(over);
        c.note("taken");
        c.note("end");
        c.read_msr(DEBUGCTL);
        c.result(1, rax);
        // LBR is accepted and not kept; other bits are not there.
        c.write_msr(DEBUGCTL, 1);
        c.read_msr(DEBUGCTL);
        c.result(2, rax);
        c.faulting(|c| c.write_msr(DEBUGCTL, 0x40));
    });
    // The label is the NOP before.
    let taken = m.case.mark("taken") - 1;
    assert_eq!(records(&m), [taken, taken + 1, taken + 2].map(|rip| (0x4000, rip)));
    assert_eq!(m.results(), [2, 0, 0]);
    assert_eq!(m.faults().iter().map(|f| (f.vector, f.error)).collect::<Vec<_>>(), [(13, 0)]);
}

#[test]
fn mov_ss_holds_traps_off_until_after_the_next_instruction() {
    let m = finished(|c| {
        handler(c, 2);
        emit!(c; mov(rbx, HEAP); mov(word_ptr(rbx), 0x10));
        dr(c, dr0, HEAP);
        dr(c, dr7, 0xf_0402);
        emit!(c; mov(ss, word_ptr(rbx)));
        emit!(c; nop(); nop());
        c.note("end 1");
        dr(c, dr7, 0x400);
        // No single-step trap behind MOV SS either: that of the POPF's successor is the MOV's own.
        emit!(c; mov(ecx, 0x10));
        set_tf(c);
        emit!(c; mov(ss, cx));
        emit!(c; nop());
        c.note("end 2");
    });
    assert_eq!(records(&m), [(1, m.case.mark("end 1") - 1), (0x4000, m.case.mark("end 2"))]);
}

#[test]
fn general_detect_faults_before_the_access_and_is_cleared_for_the_handler() {
    let m = finished(|c| {
        handler(c, i32::MAX);
        dr(c, dr7, 0x2400);
        c.note("access");
        emit!(c; mov(rax, dr0); mov(rax, dr7));
        c.result(0, rax);
    });
    assert_eq!(records(&m), [(0x2000, m.case.mark("access") + 1)]);
    assert_eq!(m.result(0), 0x400);
}

#[test]
fn dr4_and_dr5_are_dr6_and_dr7_unless_debug_extensions_are_on() {
    let m = finished(|c| {
        // MOV RAX, DR4 and MOV RAX, DR5.
        emit!(c; mov(eax, 0xf00f); mov(dr6, rax); db(&[0x0f, 0x21, 0xe0]));
        c.result(0, rax);
        emit!(c; db(&[0x0f, 0x21, 0xe8]));
        c.result(1, rax);
        emit!(c; mov(rax, cr4); or(rax, 8); mov(cr4, rax));
        c.faulting(|c| emit!(c; db(&[0x0f, 0x21, 0xe0])));
        c.faulting(|c| emit!(c; mov(rax, u64::MAX); mov(dr7, rax)));
        c.faulting(|c| emit!(c; mov(rax, u64::MAX); mov(dr6, rax)));
    });
    assert_eq!(m.results(), [0xffff_efff, 0x400]);
    assert_eq!(m.faults().iter().map(|f| (f.vector, f.error)).collect::<Vec<_>>(), [(6, 0), (13, 0), (13, 0)]);
}

#[test]
fn int1_is_a_trap_without_a_bit_in_dr6() {
    let m = finished(|c| {
        handler(c, i32::MAX);
        emit!(c; int1());
        c.note("behind");
    });
    assert_eq!(records(&m), [(0, m.case.mark("behind"))]);
}

#[test]
fn int_n_with_tf_steps_over_the_handler() {
    let m = finished(|c| {
        handler(c, 2);
        c.handler(0x40, |c| emit!(c; nop()));
        set_tf(c);
        emit!(c; int(0x40));
        c.note("behind");
        emit!(c; nop());
        c.note("end");
    });
    let behind = m.case.mark("behind");
    // IRET restores TF, and the trap comes after the next instruction.
    assert_eq!(records(&m), [behind + 1, behind + 2].map(|rip| (0x4000, rip)));
}
