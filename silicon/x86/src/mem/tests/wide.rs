use x86_defs::control::cr4;
use x86_defs::segment::index;

use super::{DS, core_with, fault};
use crate::Core;
use crate::core::test::{TABLES, poke};
use crate::exec::run_test::run;

const ROOT: u64 = 0x9000;

/// 5-level paging: the first table's first and last entries lead to the 4-level one.
fn core() -> Core {
    let mut core = core_with("+la57");
    poke(&core, ROOT, TABLES | 7);
    poke(&core, ROOT + 0x7f8, TABLES | 7);
    poke(&core, ROOT + 0xff8, TABLES | 7);
    core.cr3 = ROOT;
    core.cr4 |= cr4::LA57;
    core.update_mode();
    core.tlb_select();
    core
}

#[test]
fn the_fifth_level_translates_nine_more_bits() {
    let mut core = core();
    poke(&core, 0x3000, 0x1234);
    for linear in [0x3000, 0x00ff_0000_0000_3000, 0xffff_0000_0000_3000] {
        assert_eq!(core.load_linear(linear, DS), Ok(0x1234_u64), "{linear:#x}");
    }
    for linear in [0x0100_0000_0000_3000, 0xfe00_0000_0000_3000, 0x8000_0000_0000_3000] {
        let done = core.load_linear::<u64>(linear, DS);
        assert_eq!(fault(&core, done), (13, 0), "{linear:#x}");
    }
    let done = core.load_linear::<u64>(0x0001_0000_0000_0000, DS);
    assert_eq!(fault(&core, done), (14, 0));
    // PS is reserved in the entries of the upper two levels.
    poke(&core, ROOT + 8, TABLES | 0x87);
    let done = core.load_linear::<u64>(0x0001_0000_0000_0000, DS);
    assert_eq!(fault(&core, done), (14, 9));
}

#[test]
fn branches_are_checked_by_the_paging_mode_and_bases_by_the_processor() {
    let wide = 0x00ff_0000_0000_3000;
    for five_levels in [false, true] {
        let mut core = core();
        if !five_levels {
            core.cr4 &= !cr4::LA57;
            core.cr3 = TABLES;
            core.update_mode();
            core.tlb_select();
        }
        core.gpr[0] = wide;
        // jmp rax
        assert_eq!(run(&mut core, &[0xff, 0xe0]).is_ok(), five_levels);
        core.rip = 0;
        // wrfsbase rax
        core.cr4 |= cr4::FSGSBASE;
        assert_eq!(run(&mut core, &[0xf3, 0x48, 0x0f, 0xae, 0xd0]), Ok(()));
        assert_eq!(core.seg[index::FS].base, wide);
        core.gpr[0] = 1 << 57;
        assert!(run(&mut core, &[0xf3, 0x48, 0x0f, 0xae, 0xd0]).is_err());
    }
}

#[test]
fn the_number_of_levels_does_not_change_in_ia32e_mode() {
    let mut core = core();
    core.gpr[0] = core.cr4 & !cr4::LA57;
    let done = run(&mut core, &[0x0f, 0x22, 0xe0]);
    assert_eq!(fault(&core, done), (13, 0));
}
