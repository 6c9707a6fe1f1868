//! What faults and control-register writes void in the caches.

use x86_defs::control::cr4;

use super::{DS, entry, fault};
use crate::core::test::{self, TABLES, poke};
use crate::exec::run_test::run;
use crate::mem::Invvpid;

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
fn invalidating_one_address_reaches_every_piece_of_its_page() {
    // The page, where its entry is, and pieces of it that are cached apart.
    for (what, at, level) in [("2 MiB over small pages of EPT", 0x20_0000, 2), ("1 GiB", 0x4000_0000, 1)] {
        for global in [0, 1 << 8] {
            let mut core = test::core();
            core.cr4 |= cr4::PGE;
            // EPT maps the first MiB in small pages.
            const EPT: u64 = 0x2_0000;
            for table in [0, 0x1000, 0x2000] {
                poke(&core, EPT + table, (EPT + table + 0x1000) | 7);
            }
            for page in 0..256_u64 {
                poke(&core, EPT + 0x3000 + page * 8, page << 12 | 7 | 6 << 3);
            }
            core.vmx.controls.eptp = EPT | 6 | 3 << 3;
            core.update_mode();
            core.tlb_select();
            let entry = TABLES + 0x1000 * level + 8;
            poke(&core, entry, 0x87 | global);
            poke(&core, 0x3000, 0x33);
            poke(&core, 0x5000, 0x55);
            assert_eq!(core.load_linear(at + 0x3000, DS), Ok(0x33_u64), "{what}");
            assert_eq!(core.load_linear(at + 0x5000, DS), Ok(0x55_u64), "{what}");
            poke(&core, entry, 0);
            assert!(core.load_linear::<u64>(at + 0x5000, DS).is_ok());
            core.gpr[0] = at + 0x3000;
            // invlpg [rax]
            run(&mut core, &[0x0f, 0x01, 0x38]).unwrap();
            for offset in [0x3000, 0x5000] {
                assert!(core.load_linear::<u64>(at + offset, DS).is_err(), "{what} {offset:#x} {global:#x}");
            }
        }
    }
}

#[test]
fn invalidating_an_address_of_a_vpid_leaves_its_other_pages() {
    let mut core = test::core();
    for page in [PAGE, 0x4000] {
        core.load_linear::<u64>(page, DS).unwrap();
        poke(&core, entry(page), 0);
    }
    core.tlb_invvpid(Invvpid::Individual { vpid: 2, linear: PAGE });
    assert!(core.load_linear::<u64>(PAGE, DS).is_ok());
    core.tlb_invvpid(Invvpid::Individual { vpid: 1, linear: PAGE });
    assert!(core.load_linear::<u64>(PAGE, DS).is_err());
    assert!(core.load_linear::<u64>(0x4000, DS).is_ok());
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
