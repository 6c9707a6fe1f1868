use x86_defs::control::{cr3, cr4};

use super::{DS, core_with, fault};
use crate::Core;
use crate::core::test::{TABLES, poke};
use crate::exec::run_test::run;

const PAGE: u64 = 0x3000;

fn core(cr3_bits: u64, cr4_bits: u64) -> Core {
    let mut core = core_with("+lam,+la57");
    core.cr3 |= cr3_bits;
    core.cr4 |= cr4_bits;
    poke(&core, PAGE, 0x1234);
    // The last entries of the upper tables lead to the same pages.
    for table in [0, 0x1000, 0x2000] {
        poke(&core, TABLES + table + 0xff8, (TABLES + table + 0x1000) | 7);
    }
    core.update_mode();
    core
}

fn upper(low: u64) -> u64 {
    0xffff_ffff_ffe0_0000 | low
}

#[test]
fn metadata_of_user_pointers_is_ignored_as_far_as_cr3_says() {
    for (bits, pointer, ok) in [
        (0, 1 << 57 | PAGE, false),
        (cr3::LAM_U57, 1 << 57 | PAGE, true),
        (cr3::LAM_U57, 0x3f << 57 | PAGE, true),
        (cr3::LAM_U57, 1 << 56 | PAGE, false),
        (cr3::LAM_U57, 1 << 48 | PAGE, false),
        (cr3::LAM_U48, 0x7fff << 48 | PAGE, true),
        (cr3::LAM_U48, 1 << 47 | PAGE, false),
        // With both, that of 57 bits counts.
        (cr3::LAM_U57 | cr3::LAM_U48, 1 << 48 | PAGE, false),
        (cr3::LAM_U48, 1 << 63 | PAGE, false),
    ] {
        let mut core = core(bits, 0);
        let done = core.load_linear::<u64>(pointer, DS);
        if ok {
            assert_eq!(done, Ok(0x1234), "{bits:#x} {pointer:#x}");
            core.store_linear(pointer, DS, 0x77_u64).unwrap();
            assert_eq!(core.load_linear(PAGE, DS), Ok(0x77_u64));
        } else {
            assert_eq!(fault(&core, done), (13, 0), "{bits:#x} {pointer:#x}");
        }
    }
}

#[test]
fn metadata_of_supervisor_pointers_is_ignored_as_cr4_says() {
    for (bits, clear, ok) in [
        (0, 1_u64 << 62, false),
        (cr4::LAM_SUP, 1 << 62, true),
        (cr4::LAM_SUP, 0x7fff << 48, true),
        (cr4::LAM_SUP, 1 << 47, false),
        (cr4::LAM_SUP, 1 << 63, false),
    ] {
        let mut core = core(0, bits);
        let done = core.load_linear::<u64>(upper(PAGE) & !clear, DS);
        if ok {
            assert_eq!(done, Ok(0x1234), "{bits:#x} {clear:#x}");
        } else {
            assert_eq!(fault(&core, done), (13, 0), "{bits:#x} {clear:#x}");
        }
    }
}

#[test]
fn fetches_and_system_accesses_keep_all_bits_and_a_page_fault_reports_the_masked_address() {
    let mut core = core(cr3::LAM_U57, 0);
    let tagged = 1 << 60 | PAGE;
    assert!(core.fetch_translate(tagged).is_err());
    assert_eq!(core.fault.vector, 13);
    assert!(core.load_system::<u64>(tagged).is_err());
    assert_eq!(core.fault.vector, 13);
    let done = core.load_linear::<u64>(1 << 60 | 0x40_0000, DS);
    assert_eq!(fault(&core, done), (14, 0));
    assert_eq!(core.fault.address, 0x40_0000);
}

#[test]
fn cr3_takes_the_bits_only_where_the_processor_has_them() {
    for (features, ok) in [("+lam", true), ("-lam", false)] {
        for bit in [cr3::LAM_U48, cr3::LAM_U57] {
            let mut core = core_with(features);
            core.gpr[0] = core.cr3 | bit;
            assert_eq!(run(&mut core, &[0x0f, 0x22, 0xd8]).is_ok(), ok, "{features} {bit:#x}");
            run(&mut core, &[0x0f, 0x20, 0xd9]).unwrap();
            assert_eq!(core.gpr[1] & bit != 0, ok);
        }
    }
}
