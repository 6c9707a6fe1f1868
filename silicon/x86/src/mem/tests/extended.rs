//! EPT: rights, flags, log and exits. The tables map the first MiB to itself in pages of 4 KiB.

use x86_defs::vmx::controls::secondary;
use x86_defs::vmx::{ExitReason, Field};

use super::{DS, entry, set_cpl};
use crate::core::test::{self, TABLES, peek, poke};
use crate::vmx::Vmcs;
use crate::{Core, Leave};

const EPT: u64 = 0x2_0000;
const LOG: u64 = 0x3_0000;
const ACCESSED: u64 = 1 << 8;
const DIRTY: u64 = 1 << 9;
const PAGE: u64 = 0x3000;

/// Address of the last EPT entry of a page.
fn leaf(guest: u64) -> u64 {
    EPT + 0x3000 + (guest >> 12) * 8
}

fn core(flags: u64, controls: u32) -> Core {
    let mut core = test::core();
    let (cr0, cr3, cr4, efer) = (core.cr0, core.cr3, core.cr4, core.efer);
    core.vmptrld(Vmcs::new());
    core.vmwrite(Field::PmlAddress, LOG);
    core.vmwrite(Field::PmlIndex, 511);
    (core.cr0, core.cr3, core.cr4, core.efer) = (cr0, cr3, cr4, efer);
    for table in [0, 0x1000, 0x2000] {
        poke(&core, EPT + table, (EPT + table + 0x1000) | 7 | 1 << 10);
    }
    for page in 0..256_u64 {
        poke(&core, EPT + 0x3000 + page * 8, page << 12 | 7 | 6 << 3 | 1 << 10);
    }
    core.vmx.controls.vpid = 1;
    core.vmx.controls.eptp = EPT | 6 | 3 << 3 | flags;
    core.vmx.controls.secondary = secondary::ENABLE_EPT | controls;
    core.update_mode();
    core.tlb_select();
    core
}

fn load(core: &mut Core, linear: u64) -> Result<u64, Leave> {
    core.load_linear(linear, DS)
}

fn violation<T: std::fmt::Debug>(core: &Core, done: Result<T, Leave>) -> (u64, u64) {
    assert!(matches!(done, Err(Leave::Exit)), "{done:?}");
    assert_eq!(core.vmx.exit.reason, Some(ExitReason::EptViolation));
    (core.vmx.exit.qualification, core.vmx.exit.guest_physical)
}

#[test]
fn flags_are_set_where_the_pointer_asks_and_tables_count_as_written() {
    let mut plain = core(0, 0);
    plain.store_linear(PAGE, DS, 1_u64).unwrap();
    assert_eq!(peek(&plain, leaf(PAGE)) & (ACCESSED | DIRTY), 0);
    let mut core = core(0x40, 0);
    load(&mut core, PAGE).unwrap();
    assert_eq!(peek(&core, leaf(PAGE)) & (ACCESSED | DIRTY), ACCESSED);
    assert_eq!(peek(&core, EPT) & (ACCESSED | DIRTY), ACCESSED);
    for table in [0, 0x1000, 0x2000, 0x3000] {
        assert_eq!(peek(&core, leaf(TABLES + table)) & (ACCESSED | DIRTY), ACCESSED | DIRTY, "{table:#x}");
    }
    // The cached translation is not good for a store.
    core.store_linear(PAGE, DS, 1_u64).unwrap();
    assert_eq!(peek(&core, leaf(PAGE)) & (ACCESSED | DIRTY), ACCESSED | DIRTY);
}

#[test]
fn modified_pages_are_logged_once_and_a_full_log_exits_before_the_access() {
    let mut core = core(0x40, secondary::ENABLE_PML);
    load(&mut core, PAGE).unwrap();
    let logged = |core: &Core, n: u64| peek(core, LOG + (511 - n) * 8);
    // The four tables.
    assert_eq!(core.vmread(Field::PmlIndex), 507);
    assert_eq!([0, 1, 2, 3].map(|n| logged(&core, n)), [0, 0x1000, 0x2000, 0x3000].map(|t| TABLES + t));
    core.store_linear(PAGE + 8, DS, 1_u64).unwrap();
    core.store_linear(PAGE + 16, DS, 1_u64).unwrap();
    assert_eq!((core.vmread(Field::PmlIndex), logged(&core, 4)), (506, PAGE));
    core.vmwrite(Field::PmlIndex, 0);
    core.store_linear(0x4000, DS, 1_u64).unwrap();
    assert_eq!((core.vmread(Field::PmlIndex), peek(&core, LOG)), (0xffff, 0x4000));
    assert_eq!(core.store_linear(0x5000, DS, 1_u64), Err(Leave::Exit));
    assert_eq!(core.vmx.exit.reason, Some(ExitReason::PageModificationLogFull));
    assert_eq!((peek(&core, leaf(0x5000)) & DIRTY, peek(&core, 0x5000)), (0, 0));
    core.vmwrite(Field::PmlIndex, 511);
    core.store_linear(0x5000, DS, 1_u64).unwrap();
}

#[test]
fn qualifications_tell_access_rights_and_the_page() {
    // Rights of the EPT entry, access, qualification apart from bit 7.
    for (rights, kind, expected) in [
        (0, 'r', 0x601),
        (1, 'w', 0x60a),
        (5, 'w', 0x62a),
        (3, 'x', 0x61c),
        (4, 'r', 0x621),
        (4, 'w', 0x622),
        (1, 'x', 0x60c),
    ] {
        let mut core = core(0, 0);
        poke(&core, leaf(PAGE), if rights == 0 { 0 } else { PAGE | rights | 6 << 3 });
        let done = match kind {
            'r' => load(&mut core, PAGE + 8).map(|_| ()),
            'w' => core.store_linear(PAGE + 8, DS, 1_u64),
            _ => core.fetch_translate(PAGE + 8).map(|_| ()),
        };
        assert_eq!(violation(&core, done), (expected | 0x180, PAGE + 8), "{rights} {kind}");
        assert_eq!(core.vmx.exit.guest_linear, PAGE + 8);
    }
    // A read-only, no-execute supervisor page.
    let mut core = core(0, 0);
    poke(&core, entry(PAGE), PAGE | 1 | 1 << 63);
    poke(&core, leaf(PAGE), 0);
    let done = load(&mut core, PAGE);
    assert_eq!(violation(&core, done), (0x981, PAGE));
}

#[test]
fn an_entry_of_the_guests_tables_is_reported_with_its_own_address() {
    let mut core = core(0, 0);
    poke(&core, leaf(TABLES + 0x3000), 0);
    let done = load(&mut core, PAGE + 8);
    assert_eq!(violation(&core, done), (0x81, entry(PAGE)));
    // Read-only tables: enough to walk, not to set flags.
    poke(&core, leaf(TABLES + 0x3000), (TABLES + 0x3000) | 1 | 6 << 3);
    let done = load(&mut core, PAGE + 8);
    assert_eq!(violation(&core, done), (0x8b, entry(PAGE)));
    poke(&core, entry(PAGE), PAGE | 0x27);
    assert!(load(&mut core, PAGE + 8).is_ok());
    // With flags for EPT the walk itself counts as a write.
    let mut core = self::core(0x40, 0);
    poke(&core, entry(PAGE), PAGE | 0x27);
    poke(&core, leaf(TABLES + 0x3000), (TABLES + 0x3000) | 1 | 6 << 3);
    let done = load(&mut core, PAGE + 8);
    assert_eq!(violation(&core, done), (0x8b, entry(PAGE)));
}

#[test]
fn mode_based_execute_control_tells_user_from_supervisor_pages() {
    for (control, user_page, rights, ok) in [
        (false, true, 4, true),
        (false, false, 1 << 10 | 1, false),
        (true, true, 4 | 1, false),
        (true, true, 1 << 10 | 1, true),
        (true, false, 1 << 10 | 1, false),
        (true, false, 4, true),
        (true, true, 1 << 10, true),
    ] {
        let mut core = core(0, if control { secondary::MODE_BASED_EXECUTE } else { 0 });
        poke(&core, entry(PAGE), PAGE | 3 | if user_page { 4 } else { 0 });
        poke(&core, leaf(PAGE), PAGE | rights | 6 << 3);
        set_cpl(&mut core, if user_page { 3 } else { 0 });
        let done = core.fetch_translate(PAGE).map(|_| ());
        if ok {
            assert_eq!(done, Ok(()), "{control} {user_page} {rights:#x}");
        } else {
            let given = (rights & 7) << 3 | if control && rights & 1 << 10 != 0 { 1 << 6 } else { 0 };
            let (q, _) = violation(&core, done);
            assert_eq!(q & 0x7f, 4 | given, "{control} {user_page} {rights:#x}");
        }
    }
}

#[test]
fn every_misconfiguration_is_found() {
    for (level, entry) in [
        (0, PAGE | 2 | 6 << 3),
        (0, PAGE | 6 | 6 << 3),
        (0, PAGE | 7 | 2 << 3),
        (0, PAGE | 7 | 3 << 3),
        (0, PAGE | 7 | 7 << 3),
        (0, PAGE | 7 | 6 << 3 | 1 << 46),
        (0, PAGE | 7 | 6 << 3 | 1 << 51),
        (1, (EPT + 0x3000) | 7 | 1 << 3),
        (1, (EPT + 0x3000) | 7 | 1 << 6),
        (1, 7 | 6 << 3 | 1 << 7 | 1 << 12),
        (1, 7 | 1 << 7 | 2 << 3),
        (2, (EPT + 0x2000) | 7 | 1 << 4),
        (2, 7 | 6 << 3 | 1 << 7 | 1 << 29),
        (3, (EPT + 0x1000) | 7 | 1 << 7),
        (3, (EPT + 0x1000) | 7 | 1 << 3),
    ] {
        let mut core = core(0, 0);
        let at = if level == 0 { leaf(PAGE) } else { EPT + 0x1000 * (3 - level) };
        poke(&core, at, entry);
        assert_eq!(load(&mut core, PAGE + 8), Err(Leave::Exit), "level {level}, {entry:#x}");
        let exit = core.vmx.exit;
        assert_eq!((exit.reason, exit.qualification), (Some(ExitReason::EptMisconfiguration), 0));
        if level == 0 {
            assert_eq!(exit.guest_physical, PAGE + 8);
        }
    }
    // What looks like one but is none: bits that are ignored, execute-only.
    for entry in [PAGE | 7 | 6 << 3 | 1 << 52 | 1 << 63, PAGE | 7 | 1 << 7, PAGE | 7 | 4 << 3 | 1 << 11] {
        let mut core = core(0, 0);
        poke(&core, leaf(PAGE), entry);
        assert!(load(&mut core, PAGE).is_ok(), "{entry:#x}");
    }
}

#[test]
fn an_execute_only_page_that_was_fetched_from_cannot_be_read() {
    let mut core = core(0, 0);
    poke(&core, leaf(PAGE), PAGE | 4 | 6 << 3);
    assert!(core.fetch_translate(PAGE).is_ok());
    let done = load(&mut core, PAGE);
    assert_eq!(violation(&core, done), (0x7a1, PAGE));
}

#[test]
fn a_violation_voids_what_was_cached_for_the_address() {
    let mut core = core(0, 0);
    poke(&core, 0x3000, 0xaaaa);
    poke(&core, 0x4000, 0xbbbb);
    poke(&core, leaf(PAGE), PAGE | 1 | 6 << 3);
    assert_eq!(load(&mut core, PAGE), Ok(0xaaaa));
    // The VMM copies on write, to another page.
    let done = core.store_linear(PAGE, DS, 1_u64);
    assert_eq!(violation(&core, done).0 & 0x3f, 0xa);
    poke(&core, leaf(PAGE), 0x4000 | 7 | 6 << 3);
    assert_eq!(load(&mut core, PAGE), Ok(0xbbbb));
    core.store_linear(PAGE, DS, 1_u64).unwrap();
    assert_eq!(peek(&core, 0x4000), 1);
}

#[test]
fn more_rights_need_no_invalidation() {
    let mut core = core(0, 0);
    poke(&core, leaf(PAGE), PAGE | 1 | 6 << 3);
    assert!(load(&mut core, PAGE).is_ok());
    poke(&core, leaf(PAGE), PAGE | 7 | 6 << 3);
    assert_eq!(core.store_linear(PAGE, DS, 1_u64), Ok(()));
    assert!(core.fetch_translate(PAGE).is_ok());
}
