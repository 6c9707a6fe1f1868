use x86_defs::control::{cr0, cr4};

use super::{DS, core_with, entry, fault, set_cpl};
use crate::Core;
use crate::core::test::poke;
use crate::exec::run_test::run;

const RDPKRU: [u8; 3] = [0x0f, 0x01, 0xee];
const WRPKRU: [u8; 3] = [0x0f, 0x01, 0xef];
/// The page at this address has key 5.
const PAGE: u64 = 0x3000;

fn core(user_page: bool) -> Core {
    let mut core = core_with("+pku,+pks");
    core.cr4 |= cr4::PKE | cr4::PKS;
    poke(&core, entry(PAGE), PAGE | 3 | if user_page { 4 } else { 0 } | 5 << 59);
    core.update_mode();
    core
}

fn write_pkru(core: &mut Core, value: u32) {
    (core.gpr[0], core.gpr[1], core.gpr[2]) = (value.into(), 0, 0);
    run(core, &WRPKRU).unwrap();
}

#[test]
fn the_rights_of_a_user_key_apply_at_every_privilege_level() {
    const ACCESS_DISABLE: u32 = 1 << 10;
    const WRITE_DISABLE: u32 = 2 << 10;
    for (pkru, cpl, wp, loads, stores) in [
        (0, 3, true, None, None),
        (ACCESS_DISABLE, 3, true, Some(0x25), Some(0x27)),
        (ACCESS_DISABLE, 0, true, Some(0x21), Some(0x23)),
        (ACCESS_DISABLE, 0, false, Some(0x21), Some(0x23)),
        (WRITE_DISABLE, 3, true, None, Some(0x27)),
        (WRITE_DISABLE, 3, false, None, Some(0x27)),
        (WRITE_DISABLE, 0, true, None, Some(0x23)),
        (WRITE_DISABLE, 0, false, None, None),
        (!(3 << 10), 3, true, None, None),
    ] {
        let mut core = core(true);
        if !wp {
            core.cr0 &= !cr0::WP;
        }
        set_cpl(&mut core, cpl);
        write_pkru(&mut core, pkru);
        for _ in 0..2 {
            for (expected, done) in
                [(loads, core.load_linear::<u64>(PAGE, DS).map(|_| ())), (stores, core.store_linear(PAGE, DS, 1_u64))]
            {
                match expected {
                    None => assert_eq!(done, Ok(()), "{pkru:#x} {cpl} {wp}"),
                    // The second access has changed the fault already when the first is looked at.
                    Some(_) => assert!(done.is_err(), "{pkru:#x} {cpl} {wp}"),
                }
            }
        }
        if let Some(code) = loads {
            let done = core.load_linear::<u64>(PAGE, DS);
            assert_eq!(fault(&core, done), (14, code));
        }
        if let Some(code) = stores {
            let done = core.store_linear(PAGE, DS, 1_u64);
            assert_eq!(fault(&core, done), (14, code));
        }
    }
}

#[test]
fn fetches_have_no_key() {
    let mut core = core(true);
    set_cpl(&mut core, 3);
    write_pkru(&mut core, u32::MAX);
    assert!(core.fetch_translate(PAGE).is_ok());
}

#[test]
fn a_supervisor_page_has_the_rights_of_pkrs_and_not_of_pkru() {
    let mut core = core(false);
    write_pkru(&mut core, u32::MAX);
    assert!(core.store_linear(PAGE, DS, 1_u64).is_ok());
    core.set_pkrs(2 << 10);
    assert!(core.load_linear::<u64>(PAGE, DS).is_ok());
    let done = core.store_linear(PAGE, DS, 1_u64);
    assert_eq!(fault(&core, done), (14, 0x23));
    // Descriptor tables are read with rights of keys, too.
    core.set_pkrs(1 << 10);
    let done = core.load_system::<u64>(PAGE);
    assert_eq!(fault(&core, done), (14, 0x21));
    core.cr4 &= !cr4::PKS;
    core.update_mode();
    assert!(core.store_linear(PAGE, DS, 1_u64).is_ok());
}

#[test]
fn a_write_of_pkru_changes_rights_and_invalidates_nothing() {
    let mut core = core(true);
    core.store_linear(PAGE, DS, 1_u64).unwrap();
    let before = core.mmu.count;
    for pkru in [0x400, 0, 0x800, 0] {
        write_pkru(&mut core, pkru);
        assert_eq!(core.load_linear::<u64>(PAGE, DS).is_ok(), pkru & 0x400 == 0);
        if pkru == 0 {
            core.store_linear(PAGE, DS, 2_u64).unwrap();
        }
        if pkru & 0x400 != 0 {
            // A fault voids the translation, as on every processor.
            write_pkru(&mut core, 0);
            core.store_linear(PAGE, DS, 2_u64).unwrap();
            core.mmu.count = before;
        }
    }
    assert_eq!(core.mmu.count, before);
}

#[test]
fn rdpkru_and_wrpkru_check_cr4_and_their_registers() {
    let mut core = core(true);
    set_cpl(&mut core, 3);
    write_pkru(&mut core, 0x1234_5678);
    core.gpr[2] = 7;
    run(&mut core, &RDPKRU).unwrap();
    assert_eq!((core.gpr[0], core.gpr[2], core.pkru), (0x1234_5678, 0, 0x1234_5678));
    core.gpr[1] = 1;
    for bytes in [RDPKRU, WRPKRU] {
        let done = run(&mut core, &bytes);
        assert_eq!(fault(&core, done), (13, 0));
    }
    (core.gpr[1], core.gpr[2]) = (0, 1);
    let done = run(&mut core, &WRPKRU);
    assert_eq!(fault(&core, done), (13, 0));
    core.cr4 &= !cr4::PKE;
    core.gpr[2] = 0;
    for bytes in [RDPKRU, WRPKRU] {
        let done = run(&mut core, &bytes);
        assert_eq!(fault(&core, done).0, 6);
    }
}
