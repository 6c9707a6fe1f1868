//! What faults and control-register writes void in the caches.

use x86_defs::control::cr4;

use super::{DS, entry, fault};
use crate::core::test::{self, TABLES, poke};
use crate::exec::run_test::run;

const PAGE: u64 = 0x3000;

#[test]
fn a_page_fault_voids_the_upper_levels_that_it_was_raised_from() {
    let mut core = test::core();
    let directory = TABLES + 0x2000;
    poke(&core, directory, (TABLES + 0x3000) | 5);
    assert!(core.load_linear::<u64>(PAGE, DS).is_ok());
    let done = core.store_linear(PAGE, DS, 1_u64);
    assert_eq!(fault(&core, done), (14, 3));
    // The handler allows writes, and tells no one.
    poke(&core, directory, (TABLES + 0x3000) | 7);
    assert_eq!(core.store_linear(PAGE, DS, 1_u64), Ok(()));
}

#[test]
fn a_page_fault_voids_the_translation_itself() {
    let mut core = test::core();
    poke(&core, entry(PAGE), PAGE | 5);
    poke(&core, 0x4000, 0x44);
    assert!(core.load_linear::<u64>(PAGE, DS).is_ok());
    assert!(core.store_linear(PAGE, DS, 1_u64).is_err());
    poke(&core, entry(PAGE), 0x4000 | 5);
    assert_eq!(core.load_linear(PAGE, DS), Ok(0x44_u64));
}

#[test]
fn writes_of_cr4_flush_as_the_manual_says() {
    // Bits before, bit that changes, whether translations survive.
    for (before, bit, survive) in [
        (0, cr4::PGE, false),
        (cr4::PGE, cr4::PGE, false),
        (0, cr4::SMEP, false),
        (cr4::SMEP, cr4::SMEP, true),
        (0, cr4::SMAP, true),
        (0, cr4::PCIDE, true),
        (cr4::PCIDE, cr4::PCIDE, false),
        (0, cr4::OSXMMEXCPT, true),
    ] {
        let mut core = test::core();
        core.cr4 = (core.cr4 & !bit) | before;
        core.update_mode();
        core.tlb_select();
        // A supervisor page, which SMAP and SMEP do not concern.
        poke(&core, entry(PAGE), PAGE | 3);
        core.load_linear::<u64>(PAGE, DS).unwrap();
        poke(&core, entry(PAGE), 0);
        core.gpr[0] = core.cr4 ^ bit;
        run(&mut core, &[0x0f, 0x22, 0xe0]).unwrap();
        assert_eq!(core.load_linear::<u64>(PAGE, DS).is_ok(), survive, "{bit:#x} of {before:#x}");
    }
}

#[test]
fn mov_to_cr3_keeps_what_bit_63_asks_for_and_only_with_process_context_identifiers() {
    for (pcide, bit63, survive) in [(true, true, true), (true, false, false), (false, false, false)] {
        let mut core = test::core();
        core.cr4 |= if pcide { cr4::PCIDE } else { 0 };
        core.tlb_select();
        core.load_linear::<u64>(PAGE, DS).unwrap();
        poke(&core, entry(PAGE), 0);
        core.gpr[0] = core.cr3 | if bit63 { 1 << 63 } else { 0 };
        run(&mut core, &[0x0f, 0x22, 0xd8]).unwrap();
        assert_eq!(core.load_linear::<u64>(PAGE, DS).is_ok(), survive, "{pcide} {bit63}");
    }
}
