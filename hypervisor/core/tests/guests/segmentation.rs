//! Segments: limits, types, the instructions that look at descriptors, fast system calls, and the I/O permission bit map.

use iced_x86::code_asm::*;

use crate::legacy::{
    CODE_32, DATA_32, FLAT_DATA, FREE, LEVEL_3, LOW, Legacy, TSS, TSS_MAP, TSS_SELECTOR, USER_CODE, USER_DATA,
    USER_STACK, descriptor, finished,
};

const POINTERS: u32 = LOW + 0x800;

/// Loads FS; clobbers EAX.
fn load_fs(c: &mut Legacy, selector: u16) {
    emit!(c; mov(eax, u32::from(selector)); mov(fs, ax));
}

#[test]
fn limits_go_up_to_the_last_byte_and_expand_down_segments_begin_behind_theirs() {
    const BYTES: u16 = FREE;
    const DOWN: u16 = FREE + 8;
    const DOWN_16: u16 = FREE + 16;
    const USER_STACK_BYTES: u16 = FREE + 24;
    let m = finished(|c| {
        c.descriptor(BYTES, descriptor(LOW, 0xff, 0x493));
        c.descriptor(DOWN, descriptor(LOW, 0xff, 0x497));
        c.descriptor(DOWN_16, descriptor(LOW, 0xff, 0x097));
        load_fs(c, BYTES);
        emit!(c; mov(al, byte_ptr(0xff).fs()));
        c.faulting(|c| emit!(c; mov(ax, word_ptr(0xff).fs())));
        c.faulting(|c| emit!(c; mov(dword_ptr(0xffff_fffe_u32).fs(), eax)));
        load_fs(c, DOWN);
        emit!(c; mov(al, byte_ptr(0x100).fs()));
        c.faulting(|c| emit!(c; mov(al, byte_ptr(0xff).fs())));
        load_fs(c, DOWN_16);
        emit!(c; mov(al, byte_ptr(0xffff).fs()));
        c.faulting(|c| emit!(c; mov(al, byte_ptr(0x1_0000).fs())));
        // The stack segment has an exception of its own.
        c.descriptor(USER_STACK_BYTES, descriptor(LOW, 0xff, 0x4f3));
        c.user(2, |c| {
            emit!(c; mov(eax, u32::from(USER_STACK_BYTES | 3)); mov(ss, ax); mov(esp, 0x100); push(eax));
            emit!(c; mov(esp, 0x104); push(eax));
        });
        c.user(2, |c| {
            emit!(c; mov(eax, u32::from(USER_STACK_BYTES | 3)); mov(ss, ax); mov(eax, dword_ptr(0xfd).ss()));
        });
        // Popping at the end of the segment.
        c.user(2, |c| {
            emit!(c; mov(eax, u32::from(USER_STACK_BYTES | 3)); mov(ss, ax); mov(esp, 0xfc); pop(eax); pop(eax));
        });
    });
    assert_eq!(m.faults(), [(13, 0), (13, 0), (13, 0), (13, 0), (12, 0), (12, 0), (12, 0)]);
}

#[test]
fn types_decide_what_may_be_done() {
    const READ_ONLY: u16 = FREE;
    const EXECUTE_ONLY: u16 = FREE + 8;
    let m = finished(|c| {
        c.descriptor(READ_ONLY, descriptor(0, 0xf_ffff, 0xc91));
        c.descriptor(EXECUTE_ONLY, descriptor(0, 0xf_ffff, 0xc99));
        load_fs(c, READ_ONLY);
        emit!(c; mov(al, byte_ptr(LOW).fs()));
        c.faulting(|c| emit!(c; mov(byte_ptr(LOW).fs(), al)));
        c.faulting(|c| emit!(c; mov(byte_ptr(LOW).cs(), al)));
        c.faulting(|c| load_fs(c, EXECUTE_ONLY));
        load_fs(c, 0);
        c.faulting(|c| emit!(c; mov(al, byte_ptr(LOW).fs())));
        // Loads: beyond the table, a TSS, not present, too privileged, SS of another level or read-only.
        c.descriptor(FREE + 16, FLAT_DATA & !(1 << 47));
        for selector in [0x800, TSS_SELECTOR, FREE + 16, DATA_32 | 3] {
            c.faulting(|c| load_fs(c, selector));
        }
        for selector in [0, USER_DATA, READ_ONLY, FREE + 16, CODE_32] {
            c.faulting(|c| emit!(c; mov(eax, u32::from(selector)); mov(ss, ax)));
        }
        c.user(2, |c| load_fs(c, DATA_32));
    });
    let expected = [
        (13, 0),
        (13, 0),
        (13, u32::from(EXECUTE_ONLY)),
        (13, 0),
        (13, 0x800),
        (13, u32::from(TSS_SELECTOR)),
        (11, u32::from(FREE + 16)),
        (13, u32::from(DATA_32)),
        (13, 0),
        (13, u32::from(USER_DATA & !3)),
        (13, u32::from(READ_ONLY)),
        (12, u32::from(FREE + 16)),
        (13, u32::from(CODE_32)),
        (13, u32::from(DATA_32)),
    ];
    assert_eq!(m.faults(), expected);
}

#[test]
fn far_pointers_load_a_segment_and_a_register_or_nothing() {
    let m = finished(|c| {
        c.words(POINTERS, &[0x1234_5678, u32::from(USER_DATA), 0x9abc_def0, 0x800]);
        emit!(c; les(eax, fword_ptr(POINTERS)); mov(ebx, es));
        c.result(0, eax);
        c.result(1, ebx);
        emit!(c; lfs(ax, dword_ptr(POINTERS + 2)); mov(ebx, fs));
        c.result(2, eax);
        c.result(3, ebx);
        emit!(c; mov(eax, 7); mov(ecx, u32::from(DATA_32)); mov(es, cx));
        c.faulting(|c| emit!(c; lgs(eax, fword_ptr(POINTERS + 8))));
        c.faulting(|c| emit!(c; les(eax, fword_ptr(POINTERS + 8))));
        c.result(4, eax);
        emit!(c; mov(ebx, es));
        c.result(5, ebx);
        c.faulting(|c| emit!(c; lss(esp, fword_ptr(POINTERS))));
        // A register is no far pointer (LES EAX, EAX is the VEX prefix; LSS EAX, EAX is nothing).
        c.faulting(|c| emit!(c; db(&[0x0f, 0xb2, 0xc0])));
        emit!(c; mov(dword_ptr(POINTERS + 16), esp); mov(dword_ptr(POINTERS + 20), i32::from(DATA_32)));
        emit!(c; lss(esp, fword_ptr(POINTERS + 16)); lds(ecx, fword_ptr(POINTERS + 16)); mov(ebx, ds));
        c.result(6, ebx);
    });
    // LFS AX reads the offset from the upper half of the first word, and the selector behind it.
    let user = u32::from(USER_DATA);
    assert_eq!(m.results(), [0x1234_5678, user, 0x1234_1234, user, 7, DATA_32.into(), DATA_32.into()]);
    assert_eq!(m.faults(), [(13, 0x800), (13, 0x800), (13, u32::from(USER_DATA & !3)), (6, 0)]);
}

/// Result slot = ZF.
fn zero_flag(c: &mut Legacy, slot: u32) {
    emit!(c; setz(cl); movzx(ecx, cl));
    c.result(slot, ecx);
}

#[test]
fn lar_lsl_verr_verw_and_arpl_see_what_the_level_may_see() {
    let m = finished(|c| {
        c.descriptor(FREE, descriptor(0, 0x123, 0xc99));
        c.user(2, |c| {
            emit!(c; mov(ebx, u32::from(USER_DATA)); xor(eax, eax); lar(eax, ebx));
            zero_flag(c, 0);
            c.result(1, eax);
            emit!(c; mov(eax, 5); mov(ebx, u32::from(DATA_32)); lar(eax, ebx));
            zero_flag(c, 2);
            c.result(3, eax);
            emit!(c; mov(ebx, u32::from(USER_CODE)); lsl(eax, ebx));
            zero_flag(c, 4);
            c.result(5, eax);
            emit!(c; mov(ebx, u32::from(USER_CODE)); verr(bx));
            zero_flag(c, 6);
            emit!(c; verw(bx));
            zero_flag(c, 7);
            emit!(c; mov(ebx, 0x800); verr(bx));
            zero_flag(c, 8);
            emit!(c; mov(eax, 0x10); mov(ebx, 3); arpl(ax, bx));
            zero_flag(c, 9);
            c.result(10, eax);
            emit!(c; mov(ebx, 2); arpl(ax, bx));
            zero_flag(c, 11);
            c.result(12, eax);
        });
        emit!(c; mov(ebx, u32::from(FREE)); lsl(eax, ebx));
        c.result(13, eax);
        emit!(c; verr(bx));
        zero_flag(c, 14);
        emit!(c; mov(ebx, u32::from(TSS_SELECTOR)); lar(eax, ebx));
        c.result(15, eax);
    });
    let rights = |d: u64| (d >> 32 & 0x00f0_ff00) as u32;
    let data = rights(FLAT_DATA | LEVEL_3);
    assert_eq!(m.results(), [1, data, 0, 5, 1, u32::MAX, 1, 0, 0, 1, 0x13, 0, 0x13, 0x12_3fff, 0, 0x8b00]);
}

#[test]
fn sysenter_and_sysexit_go_to_level_0_and_back() {
    let m = finished(|c| {
        let mut over = c.label();
        emit!(c; jmp(over));
        let kernel = c.here();
        c.result(0, esp);
        emit!(c; mov(eax, cs); mov(ebx, ss); pushfd(); pop(esi));
        c.result(1, eax);
        c.result(2, ebx);
        c.result(3, esi);
        emit!(c; sysexit(); set_label(&mut over); nop());
        c.address(POINTERS, kernel);
        c.faulting(|c| emit!(c; sysenter()));
        c.faulting(|c| emit!(c; sysexit()));
        for (msr, value) in [(0x174, u32::from(CODE_32)), (0x175, 0x5000)] {
            emit!(c; mov(ecx, msr); mov(eax, value); xor(edx, edx); wrmsr());
        }
        emit!(c; mov(ecx, 0x176); mov(eax, dword_ptr(POINTERS)); xor(edx, edx); wrmsr());
        c.user(0x202, |c| {
            let mut back = c.label();
            let at = POINTERS + 4;
            c.address(at, back);
            emit!(c; mov(edx, dword_ptr(at)); mov(ecx, esp); sysenter(); set_label(&mut back); mov(eax, cs));
            c.result(4, eax);
            c.result(5, esp);
        });
        c.user(2, |c| emit!(c; sysexit()));
    });
    let [entry_stack, code, stack, flags, user_cs, user_stack] = m.results();
    assert_eq!([entry_stack, code, stack], [0x5000, CODE_32.into(), DATA_32.into()]);
    assert_eq!(flags & 0x200, 0);
    assert_eq!([user_cs, user_stack], [USER_CODE.into(), USER_STACK]);
    assert_eq!(m.faults(), [(13, 0), (13, 0), (0x30, 0), (13, 0)]);
}

#[test]
fn the_io_permission_bit_map_allows_ports_one_by_one() {
    const IOPL_3: u32 = 0x3002;
    let m = finished(|c| {
        // Port 0x571 is not allowed.
        c.memory(TSS + u32::from(TSS_MAP) + 0x571 / 8, &[1 << 1]);
        c.memory(LOW, &[1, 2, 3, 4]);
        c.user(2, |c| emit!(c; mov(edx, 0x570); in_(al, dx); out(dx, al)));
        c.user(2, |c| emit!(c; mov(edx, 0x571); in_(al, dx)));
        c.user(2, |c| emit!(c; mov(edx, 0x570); out(dx, ax)));
        c.user(2, |c| emit!(c; mov(edx, 0x572); out(dx, eax)));
        c.user(2, |c| emit!(c; mov(edx, 0x56e); out(dx, eax)));
        // Beyond the limit of the TSS; the map has no byte behind its last one either.
        c.user(2, |c| emit!(c; mov(edx, 0x8000); out(dx, al)));
        c.user(2, |c| emit!(c; mov(edx, (0xfff - u32::from(TSS_MAP)) * 8); out(dx, al)));
        c.user(2, |c| emit!(c; mov(edx, (0xffe - u32::from(TSS_MAP)) * 8); out(dx, al)));
        // String instructions, element by element.
        c.user(2, |c| emit!(c; mov(edx, 0x570); mov(esi, LOW); mov(ecx, 4); rep().outsb()));
        c.user(2, |c| emit!(c; mov(edx, 0x571); mov(edi, LOW); mov(ecx, 4); rep().insb()));
        c.user(IOPL_3, |c| emit!(c; mov(edx, 0x571); out(dx, al); cli(); sti()));
        c.user(2, |c| emit!(c; cli()));
    });
    let (ok, gp) = ((0x30, 0), (13, 0));
    assert_eq!(m.faults(), [ok, gp, gp, ok, gp, gp, gp, ok, ok, gp, ok, gp]);
    let strings: Vec<_> = m.machine.log.iter().filter(|a| a.address == 0x570).map(|a| a.value()).collect();
    assert_eq!(strings[2..], [1, 2, 3, 4]);
}

#[test]
fn user_mode_instruction_prevention_and_the_time_stamp_and_counter_bits_of_cr4() {
    const UMIP: u64 = 1 << 11;
    const TSD: u64 = 1 << 2;
    const PCE: u64 = 1 << 8;
    let run = |bits: u64| {
        let m = finished(|c| {
            c.cr4(bits);
            c.user(2, |c| emit!(c; sgdt(fword_ptr(LOW))));
            c.user(2, |c| emit!(c; sidt(fword_ptr(LOW))));
            c.user(2, |c| emit!(c; sldt(ax)));
            c.user(2, |c| emit!(c; str(ax)));
            c.user(2, |c| emit!(c; smsw(ax)));
            c.user(2, |c| emit!(c; rdtsc()));
            c.user(2, |c| emit!(c; rdtscp()));
            c.user(2, |c| emit!(c; xor(ecx, ecx); rdpmc()));
            // At level 0 none of them is held back; there is no counter.
            emit!(c; sgdt(fword_ptr(LOW)); str(ax); smsw(ax); rdtsc());
        });
        m.faults().iter().map(|f| f.0).collect::<Vec<_>>()
    };
    let ok = 0x30;
    assert_eq!(run(0), [ok, ok, ok, ok, ok, ok, ok, 13]);
    assert_eq!(run(UMIP), [13, 13, 13, 13, 13, ok, ok, 13]);
    assert_eq!(run(TSD | PCE), [ok, ok, ok, ok, ok, 13, 13, 13]);
}
