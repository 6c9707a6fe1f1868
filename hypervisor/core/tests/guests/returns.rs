//! IRET, SYSRET and SYSCALL around 64-bit code in every form that is refused, and in some that look as if they were.

use iced_x86::code_asm::*;

use crate::case::Case;
use crate::machine::{CODE_64, DATA, Fault, HEAP, Machine, PML4, USER_CODE, USER_DATA, finished};

const NT: i32 = 1 << 14;
const UD: u8 = 6;
const GP: u64 = 13;
const EFER: u32 = 0xc000_0080;
const STAR: u32 = 0xc000_0081;
const NOT_CANONICAL: u64 = 0x8000_0000_0000;
/// A page of user code.
const USER_PAGE: u64 = 0x5000_0000;
const PRESENT_USER: u64 = 5;

fn errors(m: &Machine) -> Vec<(u64, u64)> {
    m.faults().iter().map(|f: &Fault| (f.vector, f.error)).collect()
}

/// IRETQ to RAX with these selectors.
fn iret(c: &mut Case, code: u16, stack: u16) {
    emit!(c; mov(rcx, rsp); push(i32::from(stack)); push(rcx); push(2); push(i32::from(code)); push(rax); iretq());
}

#[test]
fn iretq_refuses_bad_selectors_and_addresses_and_leaves_the_stack_pointer() {
    let m = finished(|c| {
        emit!(c; mov(rbp, rsp));
        for (rip, code, stack) in [
            (NOT_CANONICAL, CODE_64, DATA),
            (0, 0, DATA),
            (0, DATA, DATA),
            (0, USER_CODE, 0),
            (0, USER_CODE, 3),
            (0, USER_CODE, DATA),
            (0, USER_CODE, CODE_64 | 3),
            (0, CODE_64, USER_DATA),
            (0, 0x7ff8, DATA),
        ] {
            emit!(c; mov(rax, rip));
            c.faulting(|c| iret(c, code, stack));
            // The frame is still on the stack.
            emit!(c; add(rsp, 40); cmp(rsp, rbp));
            let mut same = c.label();
            emit!(c; je(same); ud2());
            emit!(c; set_label(&mut same));
        }
    });
    let expected = [0, 0, 0x10, 0, 0, 0x10, 8, 0x18, 0x7ff8].map(|error| (GP, error));
    assert_eq!(errors(&m), expected);
}

#[test]
fn iretq_with_nt_is_a_fault_as_there_are_no_tasks_to_return_to() {
    let m = finished(|c| {
        emit!(c; pushfq(); or(dword_ptr(rsp), NT); popfq());
        c.faulting(|c| emit!(c; iretq()));
        emit!(c; pushfq(); and(dword_ptr(rsp), !NT); popfq());
    });
    assert_eq!(errors(&m), [(GP, 0)]);
}

#[test]
fn a_null_stack_segment_is_legal_in_64_bit_code_of_the_supervisor() {
    let m = finished(|c| {
        let after = c.label();
        emit!(c; lea(rax, ptr(after)));
        iret(c, CODE_64, 0);
        c.set(after);
        emit!(c; mov(eax, ss));
        c.result(0, rax);
        emit!(c; push(0x55); pop(rax));
        c.result(1, rax);
    });
    assert_eq!(m.results(), [0, 0x55]);
    assert!(m.faults().is_empty());
}

/// EFER.SCE on; SYSRET returns to the selectors from `USER_DATA - 8` on.
fn enable_syscall(c: &mut Case) {
    c.write_msr(STAR, (u64::from(USER_DATA) - 8) << 48 | u64::from(CODE_64) << 32);
    emit!(c; mov(ecx, EFER); rdmsr(); or(eax, 1); wrmsr());
}

#[test]
fn sysret_to_an_address_that_is_not_canonical_faults_in_the_kernel_on_the_users_stack() {
    const USER_RSP: u64 = HEAP + 0x800;
    let m = finished(|c| {
        enable_syscall(c);
        emit!(c; mov(rbp, rsp); mov(rcx, NOT_CANONICAL); mov(r11, 2_u64));
        c.faulting(|c| emit!(c; mov(rsp, USER_RSP); sysretq()));
        emit!(c; mov(rsp, rbp));
    });
    assert_eq!(errors(&m), [(GP, 0)]);
    // The frame of the exception: CS and RSP.
    assert_eq!((m.read_u64(USER_RSP - 32), m.read_u64(USER_RSP - 16)), (CODE_64.into(), USER_RSP));
}

#[test]
fn sysret_to_32_bit_code_which_has_no_syscall() {
    let mut m = Machine::new(1, |c| {
        c.handler(UD, |c| {
            // RIP and CS of the frame, under three registers.
            c.result(0, rax);
            emit!(c; mov(rax, qword_ptr(rsp + 24)));
            c.result(1, rax);
            emit!(c; mov(rax, qword_ptr(rsp + 32)));
            c.result(2, rax);
            c.end();
        });
        enable_syscall(c);
        emit!(c; mov(rcx, USER_PAGE | 0xffff_0000_0000_0000); mov(r11, 2_u64); sysret());
    });
    // A small page in the place of a large one, in a GiB that user code may enter.
    let gib = USER_PAGE >> 30;
    m.write_u64(PML4 + 0x1000 + 8 * gib, (PML4 + 0x2000 + 0x1000 * gib) | 7);
    m.write_u64(PML4 + 0x2000 + 8 * (USER_PAGE >> 21), 0);
    m.map(USER_PAGE, HEAP, PRESENT_USER);
    // mov eax, cs; dec eax (in 64-bit code a REX prefix); syscall
    m.write(HEAP, &[0x8c, 0xc8, 0x48, 0x0f, 0x05]);
    m.finish();
    let code = u64::from(USER_DATA) - 8;
    assert_eq!(m.results(), [code - 1, USER_PAGE + 3, code]);
}
