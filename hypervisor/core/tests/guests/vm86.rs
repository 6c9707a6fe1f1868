//! Virtual-8086 mode, with and without its extensions.

use iced_x86::code_asm::*;

use crate::legacy::{LOW, Legacy, RING0, TSS, TSS_MAP, finished};

const VME: u64 = 1;
const PVI: u64 = 2;
const IOPL_3: u32 = 0x3000;
const VM: u32 = 1 << 17;
const VIF: u32 = 1 << 19;
const VIP: u32 = 1 << 20;
/// Paragraph of the program, and where its data is.
const PROGRAM: u16 = (LOW >> 4) as u16;
const DATA: u32 = LOW + 0x800;

fn program(c: &mut Legacy, body: impl FnOnce(&mut CodeAssembler)) {
    c.code16(LOW, body);
}

#[test]
fn iret_enters_the_mode_and_an_interrupt_leaves_it_with_all_segments_on_the_stack() {
    let m = finished(|c| {
        program(c, |a| {
            a.mov(ax, cs).unwrap();
            a.mov(word_ptr(0x800), ax).unwrap();
            a.mov(ax, gs).unwrap();
            a.mov(word_ptr(0x802), ax).unwrap();
            a.mov(ax, 0x1234).unwrap();
            a.mov(ds, ax).unwrap();
            a.int(0x30).unwrap();
        });
        c.vm86(IOPL_3 | 0x202, PROGRAM);
    });
    let taken = m.taken();
    assert_eq!((taken[0].vector, taken[0].cs, taken[0].esp), (0x30, PROGRAM.into(), RING0 - 36));
    assert_eq!(taken[0].eflags & (VM | IOPL_3 | 0x200), VM | IOPL_3 | 0x200);
    // SS, ES, DS, FS, GS above ESP.
    let paragraph = u32::from(PROGRAM);
    let stack: Vec<_> = (3..9).map(|i| m.word(RING0 - 36 + 4 * i)).collect();
    assert_eq!(stack, [0xff0, paragraph, paragraph, 0x1234, paragraph, paragraph]);
    assert_eq!(m.word(DATA), paragraph << 16 | paragraph);
}

#[test]
fn without_iopl_what_touches_interrupts_faults_and_protected_mode_instructions_do_not_exist() {
    for (bytes, vector, error) in [
        (&[0xfa][..], 13, 0),            // CLI
        (&[0xfb], 13, 0),                // STI
        (&[0x9c], 13, 0),                // PUSHF
        (&[0x9d], 13, 0),                // POPF
        (&[0xcf], 13, 0),                // IRET
        (&[0xcd, 0x30], 13, 0),          // INT
        (&[0xcc], 13, 3 << 3 | 2),       // INT3: a gate of level 0
        (&[0xf4], 13, 0),                // HLT
        (&[0x0f, 0x20, 0xc0], 13, 0),    // MOV EAX, CR0
        (&[0x0f, 0x00, 0xc8], 6, 0),     // STR
        (&[0x0f, 0x02, 0xc0], 6, 0),     // LAR
        (&[0x63, 0xc0], 6, 0),           // ARPL
        (&[0xa1, 0xff, 0xff], 13, 0),    // a word over the end of the segment
        (&[0xea, 0, 0, 0, 0xff], 13, 0), // a jump to the interrupts' own table: code there is #GP's
    ] {
        let m = finished(|c| {
            c.memory(LOW, bytes);
            // What the jump finds: HLT.
            c.memory(0xff000, &[0xf4]);
            c.vm86(0x202, PROGRAM);
        });
        assert_eq!(m.faults(), [(vector, error)], "{bytes:02x?}");
        assert_eq!(m.taken()[0].eflags & VM, VM);
    }
}

#[test]
fn ports_are_the_bit_maps_whatever_iopl_is() {
    let m = finished(|c| {
        c.memory(TSS + u32::from(TSS_MAP) + 0x500 / 8, &[2]);
        program(c, |a| {
            a.mov(dx, 0x500u32).unwrap();
            a.out(dx, al).unwrap();
            a.inc(dx).unwrap();
            a.out(dx, al).unwrap();
        });
        c.vm86(IOPL_3, PROGRAM);
    });
    assert_eq!(m.faults(), [(13, 0)]);
    assert_eq!(m.machine.log.iter().map(|a| a.address).collect::<Vec<_>>(), [0x500]);
}

/// Stores FLAGS, as PUSHF shows them, at `at` of the data segment.
fn store_flags(a: &mut CodeAssembler, at: u32) {
    a.pushf().unwrap();
    a.pop(ax).unwrap();
    a.mov(word_ptr(at), ax).unwrap();
}

#[test]
fn with_extensions_the_program_has_its_own_interrupt_flag_and_interrupts() {
    const HANDLER: u16 = 0xa00;
    let m = finished(|c| {
        c.cr4(VME);
        // INT 0x30 is the monitor's, all others are the program's.
        c.memory(TSS + u32::from(TSS_MAP) - 32 + 6, &[1]);
        c.words(4 * 0x21, &[u32::from(HANDLER) << 16]);
        program(c, |a| {
            a.sti().unwrap();
            store_flags(a, 0x800);
            a.cli().unwrap();
            store_flags(a, 0x802);
            a.sti().unwrap();
            a.int(0x21).unwrap();
            store_flags(a, 0x806);
            // POPF changes VIF too.
            a.push(0x3002).unwrap();
            a.popf().unwrap();
            store_flags(a, 0x808);
            a.sti().unwrap();
            a.int(0x30).unwrap();
        });
        c.code16(u32::from(HANDLER) << 4, |a| {
            store_flags(a, 0x804);
            a.iret().unwrap();
        });
        c.vm86(2, PROGRAM);
    });
    let flags: Vec<_> = (0..5).map(|i| m.word(DATA + 2 * i) & 0x3200).collect();
    assert_eq!(flags, [0x3200, 0x3000, 0x3000, 0x3200, 0x3000]);
    let taken = m.taken();
    assert_eq!((taken[0].vector, taken[0].error), (13, 0));
    assert_eq!(taken[0].eflags & (VIF | 0x3200), VIF, "neither IF nor IOPL has changed");
}

#[test]
fn a_pending_virtual_interrupt_stops_the_program_from_enabling_them() {
    for bytes in [&[0xfb][..], &[0x68, 0x00, 0x02, 0x9d], &[0x66, 0x9c], &[0x66, 0x9d], &[0x66, 0xcf]] {
        let m = finished(|c| {
            c.cr4(VME);
            c.memory(LOW, bytes);
            c.vm86(2 | VIP, PROGRAM);
        });
        assert_eq!(m.faults(), [(13, 0)], "{bytes:02x?}");
    }
    // Popping TF is the monitor's too.
    let m = finished(|c| {
        c.cr4(VME);
        c.memory(LOW, &[0x68, 0x00, 0x01, 0x9d]);
        c.vm86(2, PROGRAM);
    });
    assert_eq!(m.faults(), [(13, 0)]);
}

#[test]
fn a_redirected_interrupt_with_iopl_3_changes_if_itself() {
    let m = finished(|c| {
        c.cr4(VME);
        c.memory(TSS + u32::from(TSS_MAP) - 32 + 6, &[1]);
        c.words(4 * 0x21, &[u32::from(PROGRAM) << 16 | 0x100]);
        program(c, |a| a.int(0x21).unwrap());
        c.code16(LOW + 0x100, |a| {
            store_flags(a, 0x800);
            a.pop(ax).unwrap();
            a.pop(bx).unwrap();
            a.pop(cx).unwrap();
            a.mov(word_ptr(0x802), ax).unwrap();
            a.mov(word_ptr(0x804), bx).unwrap();
            a.mov(word_ptr(0x806), cx).unwrap();
            a.int(0x30).unwrap();
        });
        c.vm86(IOPL_3 | 0x202, PROGRAM);
    });
    assert_eq!(m.faults(), [(0x30, 0)]);
    assert_eq!(m.word(DATA) & 0x3200, 0x3000);
    assert_eq!([m.word(DATA + 2) & 0xffff, m.word(DATA + 4) & 0xffff], [2, PROGRAM.into()]);
    assert_eq!(m.word(DATA + 6) & 0x3200, 0x3200);
}

#[test]
fn protected_mode_virtual_interrupts_give_user_code_a_flag_of_its_own() {
    let m = finished(|c| {
        c.cr4(PVI);
        c.user(2, |c| emit!(c; sti()));
        c.user(2 | VIF, |c| emit!(c; cli()));
        c.user(2 | VIP, |c| emit!(c; cli(); sti()));
    });
    assert_eq!(m.faults(), [(0x30, 0), (0x30, 0), (13, 0)]);
    let flags: Vec<_> = m.taken().iter().map(|t| t.eflags & (VIF | VIP | 0x200)).collect();
    assert_eq!(flags, [VIF, 0, VIP]);
}
