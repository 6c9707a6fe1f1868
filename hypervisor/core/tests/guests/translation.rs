//! Address translation as the guest sees it, and the counts of the modelled TLB.

use iced_x86::code_asm::*;

use crate::case::Case;
use crate::machine::{HEAP, Machine, PML4, RESULTS, TABLES};

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;
/// A linear address that nothing else uses, with room for many pages.
const LINEAR: u64 = 0x40_0000_0000;
/// Three pages with different contents.
const A: u64 = HEAP + 0x1000;
const B: u64 = HEAP + 0x2000;

/// A machine whose page at [`LINEAR`] is page A; the body finds the address of its entry in the function's argument.
fn with_page(flags: u64, body: impl FnOnce(&mut Case, u64)) -> Machine {
    // The first two tables of a machine belong to the first mapping: the last of them holds its entry.
    let entry = TABLES + 0x1000;
    let mut m = Machine::new(1, |c| body(c, entry));
    m.map(LINEAR, A, flags);
    assert_eq!(m.entry(LINEAR, 0), entry);
    m.write_u64(A, 0xaaaa);
    m.write_u64(B, 0xbbbb);
    m.finish();
    m
}

/// RBX = the page, RSI = its entry.
fn addresses(c: &mut Case, entry: u64) {
    emit!(c; mov(rbx, LINEAR); mov(rsi, entry));
}

/// Reads the first word of the page into a slot.
fn look(c: &mut Case, slot: u64) {
    emit!(c; mov(rax, qword_ptr(rbx)));
    c.result(slot, rax);
}

/// Lets the entry lead to page B.
fn remap(c: &mut Case, flags: u64) {
    emit!(c; mov(rax, B | flags); mov(qword_ptr(rsi), rax));
}

#[test]
fn a_changed_entry_is_seen_after_invlpg_and_the_old_one_before() {
    let m = with_page(PRESENT | WRITABLE, |c, entry| {
        addresses(c, entry);
        look(c, 0);
        remap(c, PRESENT | WRITABLE);
        look(c, 1);
        emit!(c; invlpg(ptr(rbx)));
        look(c, 2);
    });
    assert_eq!(m.results(), [0xaaaa, 0xaaaa, 0xbbbb], "a TLB hides the change until told");
}

#[test]
fn moving_to_cr3_drops_all_but_global_pages() {
    for (flags, expected) in [(0, [0xaaaa, 0xbbbb, 0xbbbb]), (GLOBAL, [0xaaaa, 0xaaaa, 0xbbbb])] {
        let m = with_page(PRESENT | WRITABLE | flags, |c, entry| {
            addresses(c, entry);
            emit!(c; mov(rax, cr4); or(rax, 0x80); mov(cr4, rax));
            look(c, 0);
            remap(c, PRESENT | WRITABLE | flags);
            emit!(c; mov(rax, cr3); mov(cr3, rax));
            look(c, 1);
            // Clearing PGE drops global pages as well.
            emit!(c; mov(rax, cr4); and(rax, !0x80); mov(cr4, rax));
            look(c, 2);
        });
        assert_eq!(m.results(), expected);
    }
}

#[test]
fn process_context_identifiers_keep_translations_apart() {
    let m = with_page(PRESENT | WRITABLE, |c, entry| {
        addresses(c, entry);
        emit!(c; mov(rax, cr4); or(rax, 1 << 17); mov(cr4, rax));
        let switch = |c: &mut Case, pcid: u64, keep: bool| {
            emit!(c; mov(rax, PML4 | pcid | u64::from(keep) << 63); mov(cr3, rax));
        };
        switch(c, 1, false);
        look(c, 0);
        remap(c, PRESENT | WRITABLE);
        // Another identifier has nothing cached; going back without a flush finds the old entry.
        switch(c, 2, false);
        look(c, 1);
        switch(c, 1, true);
        look(c, 2);
        // INVLPG concerns the current identifier only.
        switch(c, 2, true);
        emit!(c; invlpg(ptr(rbx)));
        switch(c, 1, true);
        look(c, 3);
        switch(c, 1, false);
        look(c, 4);
        emit!(c; mov(rax, cr3));
        c.result(5, rax);
        // PCIDE cannot be set while CR3 has an identifier, nor paging turned off with it.
        c.faulting(|c| emit!(c; mov(rax, cr0); mov(ecx, 0x7fff_ffffu32); and(rax, rcx); mov(cr0, rax)));
    });
    assert_eq!(m.results(), [0xaaaa, 0xbbbb, 0xaaaa, 0xaaaa, 0xbbbb, PML4 | 1]);
    assert_eq!(m.faults().len(), 1);
}

#[test]
fn invpcid_drops_what_its_type_says() {
    // Type, PCID in the descriptor, whether the page of PCID 1 is stale afterwards, and with it a global page.
    for (kind, pcid, private_stale, global_stale) in [
        (0_u64, 1_u64, false, true),
        (0, 2, true, true),
        (1, 1, false, true),
        (1, 2, true, true),
        (2, 0, false, false),
        (3, 0, false, true),
    ] {
        for global in [false, true] {
            let flags = PRESENT | WRITABLE | if global { GLOBAL } else { 0 };
            let m = with_page(flags, |c, entry| {
                addresses(c, entry);
                emit!(c; mov(rax, cr4); or(rax, (1 << 17) | 0x80); mov(cr4, rax));
                emit!(c; mov(rax, PML4 | 1); mov(cr3, rax));
                look(c, 0);
                remap(c, flags);
                emit!(c; mov(rax, pcid); mov(qword_ptr(HEAP), rax); mov(qword_ptr(HEAP + 8), rbx));
                emit!(c; mov(rax, kind); invpcid(rax, xmmword_ptr(HEAP)));
                look(c, 1);
            });
            let stale = if global { global_stale } else { private_stale };
            let expected = if stale { 0xaaaa } else { 0xbbbb };
            assert_eq!(m.results(), [0xaaaa, expected], "type {kind}, PCID {pcid}, global {global}");
        }
    }
}

#[test]
fn invpcid_refuses_what_does_not_exist() {
    let m = with_page(PRESENT, |c, _| {
        emit!(c; mov(qword_ptr(HEAP), 0); mov(qword_ptr(HEAP + 8), 0));
        c.faulting(|c| emit!(c; mov(eax, 4u32); invpcid(rax, xmmword_ptr(HEAP))));
        // Without PCIDE there is only identifier 0.
        emit!(c; mov(qword_ptr(HEAP), 1));
        c.faulting(|c| emit!(c; mov(eax, 1u32); invpcid(rax, xmmword_ptr(HEAP))));
        emit!(c; mov(qword_ptr(HEAP), 0x1000));
        c.faulting(|c| emit!(c; mov(eax, 1u32); invpcid(rax, xmmword_ptr(HEAP))));
        // An address that is not canonical.
        emit!(c; mov(qword_ptr(HEAP), 0); mov(rax, 1_u64 << 63); mov(qword_ptr(HEAP + 8), rax));
        c.faulting(|c| emit!(c; xor(eax, eax); invpcid(rax, xmmword_ptr(HEAP))));
    });
    let vectors: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error)).collect();
    assert_eq!(vectors, [(13, 0); 4]);
}

#[test]
fn accessed_and_dirty_flags_are_set_when_they_should_be() {
    let m = with_page(PRESENT | WRITABLE, |c, entry| {
        addresses(c, entry);
        let entry_into = |c: &mut Case, slot| {
            emit!(c; mov(rax, qword_ptr(rsi)));
            c.result(slot, rax);
        };
        entry_into(c, 0);
        look(c, 4);
        entry_into(c, 1);
        emit!(c; mov(byte_ptr(rbx + 8), 1));
        entry_into(c, 2);
        // Cleared flags stay clear while the translation is cached, and are set again after INVLPG.
        emit!(c; and(qword_ptr(rsi), !0x60); mov(byte_ptr(rbx + 8), 2));
        entry_into(c, 3);
        emit!(c; invlpg(ptr(rbx)); mov(byte_ptr(rbx + 8), 3));
        entry_into(c, 4);
    });
    let entry = A | PRESENT | WRITABLE;
    assert_eq!(m.results(), [entry, entry | ACCESSED, entry | ACCESSED | DIRTY, entry, entry | ACCESSED | DIRTY]);
    let upper = m.read_u64(PML4 + (LINEAR >> 39 & 0x1ff) * 8);
    assert_eq!(upper & (ACCESSED | DIRTY), ACCESSED, "only the last level has a dirty flag");
}

#[test]
fn a_locked_operation_that_fails_to_compare_still_dirties_the_page() {
    let m = with_page(PRESENT | WRITABLE, |c, entry| {
        addresses(c, entry);
        emit!(c; xor(eax, eax); mov(ecx, 1u32); lock().cmpxchg(qword_ptr(rbx), rcx); mov(rax, qword_ptr(rsi)));
        c.result(0, rax);
    });
    assert_eq!(m.result(0) & DIRTY, DIRTY);
}

#[test]
fn write_protection_concerns_supervisor_writes_while_cr0_wp_is_set() {
    let m = with_page(PRESENT, |c, entry| {
        addresses(c, entry);
        look(c, 0);
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 1)));
        emit!(c; mov(rax, cr0); mov(rcx, rax); btr(rcx, 16); mov(cr0, rcx); mov(byte_ptr(rbx), 0x11); mov(cr0, rax));
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 2)));
        look(c, 1);
    });
    assert_eq!(m.results(), [0xaaaa, 0xaa11]);
    let faults: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error, f.cr2)).collect();
    assert_eq!(faults, [(14, 3, LINEAR); 2]);
}

#[test]
fn supervisor_mode_access_prevention_is_lifted_by_stac() {
    let m = with_page(PRESENT | WRITABLE | USER, |c, entry| {
        addresses(c, entry);
        look(c, 0);
        emit!(c; mov(rax, cr4); or(rax, 1 << 21); mov(cr4, rax));
        c.faulting(|c| look(c, 1));
        emit!(c; stac());
        look(c, 2);
        emit!(c; mov(byte_ptr(rbx), 0x22); clac());
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 0x33)));
        emit!(c; mov(rax, cr4); btr(rax, 21); mov(cr4, rax));
        look(c, 3);
    });
    assert_eq!(m.results(), [0xaaaa, 0, 0xaaaa, 0xaa22]);
    let faults: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error)).collect();
    assert_eq!(faults, [(14, 1), (14, 3)]);
}

#[test]
fn supervisor_mode_execution_prevention_and_no_execute_fault_on_the_fetch() {
    for (flags, smep, expected) in [
        (USER, false, None),
        (USER, true, Some(0x11)),
        (0, true, None),
        (NO_EXECUTE, false, Some(0x11)),
        (USER | NO_EXECUTE, true, Some(0x11)),
    ] {
        let m = with_page(PRESENT | WRITABLE | flags, |c, entry| {
            addresses(c, entry);
            if smep {
                emit!(c; mov(rax, cr4); or(rax, 1 << 20); mov(cr4, rax));
            }
            // RET, written as data.
            emit!(c; mov(byte_ptr(rbx), 0xc3_u32));
            let after = c.label();
            emit!(c; lea(r15, ptr(after)); mov(rdi, rsp); call(rbx));
            c.set(after);
            emit!(c; mov(rsp, rdi));
        });
        let faults: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error, f.rip)).collect();
        let expected: Vec<_> = expected.into_iter().map(|error| (14, error, LINEAR)).collect();
        assert_eq!(faults, expected, "{flags:#x}, SMEP {smep}");
    }
}

#[test]
fn reserved_bits_fault_with_their_own_error_bit() {
    let m = with_page(PRESENT | WRITABLE | 1 << 50, |c, entry| {
        addresses(c, entry);
        c.faulting(|c| emit!(c; mov(rax, qword_ptr(rbx))));
        c.faulting(|c| emit!(c; mov(qword_ptr(rbx), rax)));
    });
    let faults: Vec<_> = m.faults().iter().map(|f| f.error).collect();
    assert_eq!(faults, [9, 11]);
}

#[test]
fn large_pages_translate_all_their_addresses_and_are_one_entry() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, LINEAR));
        for page in 0..200_u32 {
            emit!(c; mov(rax, qword_ptr(rbx + page * 0x1000)); add(rdx, rax));
        }
        c.result(0, rdx);
    });
    m.map_large(LINEAR, 0x40_0000, PRESENT | WRITABLE);
    for page in 0..200 {
        m.write_u64(0x40_0000 + page * 0x1000, page);
    }
    m.finish();
    assert_eq!(m.result(0), (0..200).sum::<u64>());
    // Slot 0 is in the large page of the code, which the second level has from the fetch.
    let tlb = m.vm.statistics().vcpus[0].tlb;
    assert_eq!((tlb.data_walks, tlb.data_second_level_hits, tlb.fetch_walks), (1, 1, 1));
}

#[test]
fn addresses_that_are_not_canonical_are_protection_faults() {
    let m = with_page(PRESENT, |c, _| {
        c.faulting(|c| emit!(c; mov(rax, 0x8000_0000_0000_u64); mov(rax, qword_ptr(rax))));
        // The word crosses into the hole.
        c.faulting(|c| emit!(c; mov(rax, 0x7fff_ffff_fffc_u64); mov(rax, qword_ptr(rax))));
        // By RBP it is a stack access.
        c.faulting(|c| emit!(c; mov(rbp, 0x8000_0000_0000_u64); mov(rax, qword_ptr(rbp))));
        c.faulting(|c| emit!(c; jmp(rbp)));
    });
    let vectors: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error)).collect();
    assert_eq!(vectors, [(13, 0), (13, 0), (12, 0), (13, 0)]);
}

/// Touches `pages` pages from [`LINEAR`], `rounds` times; gives data walks and second-level hits of the last round.
fn touch(pages: u64, rounds: u64) -> (u64, u64) {
    let run = |rounds: u64| {
        let mut m = Machine::new(1, |c| {
            emit!(c; mov(rsi, rounds));
            let (mut round, mut page) = (c.label(), c.label());
            emit!(c; set_label(&mut round); mov(rbx, LINEAR); mov(rcx, pages));
            emit!(c; set_label(&mut page); mov(al, byte_ptr(rbx)); add(rbx, 0x1000); dec(rcx); jnz(page));
            emit!(c; dec(rsi); jnz(round));
        });
        for page in 0..pages {
            m.map(LINEAR + page * 0x1000, HEAP, PRESENT);
        }
        m.finish();
        m.vm.statistics().vcpus[0].tlb
    };
    let (before, after) = (run(rounds - 1), run(rounds));
    (after.data_walks - before.data_walks, after.data_second_level_hits - before.data_second_level_hits)
}

#[test]
fn the_first_level_holds_96_pages_and_the_second_2048() {
    assert_eq!(touch(96, 2), (0, 0), "all in the first level");
    assert_eq!(touch(97, 2), (0, 97), "first in, first out: one too many, and every access misses");
    assert_eq!(touch(200, 2), (0, 200));
    assert_eq!(touch(2000, 2), (0, 2000));
    let (walks, _) = touch(4096, 2);
    assert_eq!(walks, 4096, "twice the second level, in order: nothing is left");
}

#[test]
fn a_first_touch_walks_once_a_page_and_reads_one_table_entry_with_a_warm_structure_cache() {
    let run = |pages: u64| {
        let mut m = Machine::new(1, |c| {
            emit!(c; mov(rbx, LINEAR); mov(rcx, pages + 1));
            let mut page = c.label();
            emit!(c; set_label(&mut page); mov(al, byte_ptr(rbx)); add(rbx, 0x1000); dec(rcx); jnz(page));
        });
        for page in 0..=pages {
            m.map(LINEAR + page * 0x1000, HEAP, PRESENT);
        }
        m.finish();
        m.vm.statistics().vcpus[0].tlb
    };
    let (one, many) = (run(0), run(100));
    assert_eq!(many.data_walks - one.data_walks, 100);
    assert_eq!(many.guest_references - one.guest_references, 100);
    let _ = RESULTS;
}
