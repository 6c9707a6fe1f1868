//! Call gates, far returns, and the level that they go to.

use iced_x86::code_asm::*;

use crate::legacy::{
    CODE_32, DATA_32, FLAT_CODE, FLAT_DATA, FREE, LEVEL_3, LOW, Legacy, RING0, TSS, USER_CODE, USER_DATA, USER_STACK,
    descriptor, finished, gate,
};
use crate::machine::RESULTS;

/// Where far pointers of cases are.
const POINTERS: u32 = LOW + 0x800;

fn call_far(c: &mut Legacy, selector: u16) {
    emit!(c; db(&[0x9a, 0, 0, 0, 0, selector as u8, (selector >> 8) as u8]));
}

fn jump_far(c: &mut Legacy, selector: u16) {
    emit!(c; db(&[0xea, 0, 0, 0, 0, selector as u8, (selector >> 8) as u8]));
}

/// Code that is only reached by a transfer.
fn aside(c: &mut Legacy, body: impl FnOnce(&mut Legacy)) -> CodeLabel {
    let mut over = c.label();
    emit!(c; jmp(over));
    let at = c.here();
    body(c);
    emit!(c; set_label(&mut over); nop());
    at
}

#[test]
fn a_call_gate_to_an_inner_level_copies_parameters_to_the_stack_of_the_tss() {
    let m = finished(|c| {
        let inner = aside(c, |c| {
            for (slot, offset) in [(0, 8), (1, 12), (2, 16), (3, 20), (4, 4)] {
                emit!(c; mov(eax, dword_ptr(esp + offset)); mov(dword_ptr(RESULTS as u32 + 8 * slot), eax));
            }
            c.result(5, esp);
            emit!(c; mov(eax, cs); mov(dword_ptr(RESULTS as u32 + 48), eax); retf_1(8));
        });
        c.call_gate(FREE, inner, CODE_32, 0xec, 2);
        c.user(2, |c| {
            emit!(c; push(0x11); push(0x22));
            call_far(c, FREE | 3);
            c.result(7, esp);
            emit!(c; mov(eax, cs); mov(dword_ptr(RESULTS as u32 + 64), eax));
        });
    });
    let user = u32::from(USER_CODE);
    let expected = [0x22, 0x11, USER_STACK - 8, USER_DATA.into(), user, RING0 - 24, CODE_32.into(), USER_STACK, user];
    assert_eq!(m.results(), expected);
    assert_eq!(m.faults(), [(0x30, 0)]);
}

#[test]
fn a_16_bit_call_gate_pushes_words() {
    let m = finished(|c| {
        let back = aside(c, |c| c.end());
        c.address(POINTERS, back);
        c.memory(POINTERS + 4, &CODE_32.to_le_bytes());
        c.code16(LOW, |a| {
            a.mov(ebx, esp).unwrap();
            a.pop(eax).unwrap();
            a.mov(dword_ptr(RESULTS as u32), eax).unwrap();
            a.mov(dword_ptr(RESULTS as u32 + 8), ebx).unwrap();
            a.jmp(fword_ptr(POINTERS)).unwrap();
        });
        c.descriptor(FREE, descriptor(LOW, 0xffff, 0x9b));
        c.descriptor(FREE + 8, gate(FREE, 0xdead_0000, 0x84, 0));
        emit!(c; mov(dword_ptr(RESULTS as u32 + 16), esp));
        c.note("call");
        call_far(c, FREE + 8);
    });
    // IP in the low word, CS in the high one; a label is followed by a NOP, and the call has seven bytes.
    assert_eq!(m.result(0), u32::from(CODE_32) << 16 | (m.mark("call") + 8) & 0xffff);
    assert_eq!(m.result(2) - m.result(1), 4);
}

#[test]
fn what_is_wrong_with_a_gate_or_its_target_is_named() {
    const TARGET: u16 = FREE + 8;
    let target = u32::from(TARGET);
    let own = u32::from(FREE);
    for (gate_descriptor, target_descriptor, vector, error) in [
        (gate(TARGET, 0, 0x8c, 0), FLAT_CODE, 13, own),
        (gate(TARGET, 0, 0x6c, 0), FLAT_CODE, 11, own),
        (gate(0, 0, 0xec, 0), FLAT_CODE, 13, 0),
        (gate(0x7f8 + 8, 0, 0xec, 0), FLAT_CODE, 13, 0x800),
        (gate(TARGET, 0, 0xec, 0), FLAT_DATA, 13, target),
        (gate(TARGET, 0, 0xec, 0), FLAT_CODE & !(1 << 47), 11, target),
        (gate(TARGET, 0x1000, 0xec, 0), descriptor(0, 0xfff, 0x49b), 13, 0),
        (gate(TARGET, 0, 0xe2, 0), FLAT_CODE, 13, own),
    ] {
        let m = finished(|c| {
            c.descriptor(FREE, gate_descriptor);
            c.descriptor(TARGET, target_descriptor);
            c.user(2, |c| call_far(c, FREE | 3));
        });
        assert_eq!(m.faults(), [(vector, error)], "{gate_descriptor:x} {target_descriptor:x}");
    }
}

#[test]
fn what_is_wrong_with_the_stack_of_an_inner_level_is_an_invalid_tss() {
    const CODE_1: u16 = FREE + 8;
    const DATA_1: u16 = FREE + 16;
    let level_1 = 1 << 45;
    let data = FLAT_DATA | level_1;
    for (stack, descriptor, vector, error) in [
        (0, data, 10, 0),
        (DATA_1, data, 10, u32::from(DATA_1)),
        (DATA_1 | 1, FLAT_DATA, 10, u32::from(DATA_1)),
        (DATA_1 | 1, FLAT_CODE | level_1, 10, u32::from(DATA_1)),
        (DATA_1 | 1, data & !(1 << 47), 12, u32::from(DATA_1)),
        (0x801, data, 10, 0x800),
        (DATA_1 | 1, 0x0040_b300_0000_0003 | level_1, 12, u32::from(DATA_1)),
    ] {
        let m = finished(|c| {
            c.words(TSS + 12, &[USER_STACK - 0x100, u32::from(stack)]);
            c.descriptor(FREE, gate(CODE_1, 0, 0xec, 0));
            c.descriptor(CODE_1, FLAT_CODE | level_1);
            c.descriptor(DATA_1, descriptor);
            c.user(2, |c| call_far(c, FREE | 3));
        });
        assert_eq!(m.faults(), [(vector, error)], "{stack:x} {descriptor:x}");
    }
}

#[test]
fn a_jump_through_a_gate_cannot_change_the_level_and_conforming_code_keeps_it() {
    let m = finished(|c| {
        let conforming = aside(c, |c| {
            emit!(c; mov(eax, cs); mov(dword_ptr(RESULTS as u32), eax); retf());
        });
        c.call_gate(FREE, conforming, CODE_32, 0xec, 0);
        c.descriptor(FREE + 8, FLAT_CODE | 1 << 42);
        c.call_gate(FREE + 16, conforming, FREE + 8, 0xec, 5);
        c.user(2, |c| jump_far(c, FREE | 3));
        c.user(2, |c| call_far(c, FREE + 16));
        c.user(2, |c| {
            emit!(c; mov(dword_ptr(RESULTS as u32 + 8), esp); push(i32::from(USER_CODE)));
            // A jump there returns as a call would: by a frame made by hand.
            emit!(c; add(esp, 4); int(0x30));
        });
        // Level 0 code may not be called directly, nor may less privileged code be.
        c.user(2, |c| call_far(c, CODE_32));
        c.faulting(|c| call_far(c, USER_CODE));
    });
    assert_eq!(m.faults(), [(13, CODE_32.into()), (0x30, 0), (0x30, 0), (13, CODE_32.into()), (13, 0x18)]);
    assert_eq!(m.results(), [u32::from(FREE + 8) | 3, USER_STACK]);
}

#[test]
fn a_far_return_to_an_outer_level_releases_parameters_on_both_stacks_and_drops_inner_segments() {
    let m = finished(|c| {
        let user = aside(c, |c| {
            // DS was of level 0.
            emit!(c; mov(ebx, ds); mov(ecx, es); push(i32::from(USER_DATA)); pop(ds));
            c.result(0, ebx);
            c.result(1, ecx);
            emit!(c; add(esp, 4));
            c.result(2, esp);
            emit!(c; int(0x30));
        });
        c.address(POINTERS, user);
        emit!(c; push(i32::from(USER_DATA)); pop(es));
        c.faulting(|c| {
            emit!(c; push(i32::from(USER_DATA)); push(0x5000); push(1); push(2); push(i32::from(USER_CODE)));
            emit!(c; push(dword_ptr(POINTERS)); retf_1(8));
        });
    });
    // Parameters of the outer stack are released before the user's own PUSH and POP.
    assert_eq!(m.results(), [0, USER_DATA.into(), 0x5000 + 8 + 4]);
}

#[test]
fn what_is_wrong_with_a_return_to_an_outer_level_is_found_before_it() {
    let user_code = u32::from(USER_CODE);
    let user_data = u32::from(USER_DATA);
    for (code, stack, vector, error) in [
        (user_code, 0, 13, 0),
        (user_code, u32::from(DATA_32), 13, u32::from(DATA_32)),
        (user_code, user_data & !3, 13, user_data & !3),
        (user_code, user_code, 13, user_code & !3),
        (user_code, u32::from(FREE) | 3, 12, u32::from(FREE)),
        (user_code & !3, user_data, 13, user_code & !3),
        (u32::from(CODE_32) | 3, user_data, 13, u32::from(CODE_32)),
        (u32::from(FREE + 8) | 3, user_data, 11, u32::from(FREE + 8)),
        (0, user_data, 13, 0),
        (0x803, user_data, 13, 0x800),
    ] {
        let m = finished(|c| {
            c.descriptor(FREE, FLAT_DATA & !(1 << 47) | LEVEL_3);
            c.descriptor(FREE + 8, FLAT_CODE & !(1 << 47) | LEVEL_3);
            for iret in [false, true] {
                c.faulting(|c| {
                    emit!(c; push(stack as i32); push(0x5000));
                    if iret {
                        emit!(c; push(2));
                    }
                    emit!(c; push(code as i32); push(0x1000));
                    if iret {
                        emit!(c; iretd());
                    } else {
                        emit!(c; retf());
                    }
                });
            }
        });
        assert_eq!(m.faults(), [(vector, error); 2], "{code:x} {stack:x}");
        assert!(m.taken().iter().all(|t| t.cs == u32::from(CODE_32)));
    }
}
