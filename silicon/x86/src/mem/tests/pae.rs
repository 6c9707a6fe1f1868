use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::index;
use x86_defs::vmx::ExitReason;

use super::DS;
use crate::core::test::{self, TABLES, poke};
use crate::exec::run_test::run;
use crate::{Core, Leave};

const PDPT: u64 = 0x5000;
const TO_CR3: [u8; 3] = [0x0f, 0x22, 0xd8];
const TO_CR4: [u8; 3] = [0x0f, 0x22, 0xe0];
const TO_CR0: [u8; 3] = [0x0f, 0x22, 0xc0];

/// 32-bit code with PAE paging, the first MiB one to one.
fn core() -> Core {
    let mut core = test::core();
    (core.efer, core.cr4, core.cr3) = (efer::NXE, cr4::PAE, PDPT);
    core.seg[index::CS].rights = 0xc09b;
    poke(&core, PDPT, (TABLES + 0x2000) | 1);
    core.vmx.pdptes = [(TABLES + 0x2000) | 1, 0, 0, 0];
    core.update_mode();
    core.tlb_select();
    core
}

#[test]
fn mov_to_cr3_loads_the_registers_and_faults_on_a_reserved_bit_of_a_present_entry() {
    for bit in [1, 2, 5, 6, 7, 8, 46, 51, 52, 63] {
        let mut core = core();
        poke(&core, 0x5020, 0x7000 | 1);
        poke(&core, 0x5038, 1 << bit);
        core.gpr[0] = 0x5020;
        assert_eq!(run(&mut core, &TO_CR3), Ok(()), "bit {bit} of an entry that is not present");
        assert_eq!(core.vmx.pdptes, [0x7001, 0, 0, 1 << bit]);
        poke(&core, 0x5038, 1 << bit | 1);
        core.cr3 = PDPT;
        assert_eq!(run(&mut core, &TO_CR3), Err(Leave::Fault), "bit {bit}");
        assert_eq!((core.fault.vector, core.fault.error_code, core.cr3), (13, Some(0), PDPT));
        assert_eq!(core.vmx.pdptes, [0x7001, 0, 0, 1 << bit], "nothing is loaded");
    }
}

#[test]
fn a_change_of_the_table_in_memory_is_seen_after_the_next_load() {
    let mut core = core();
    poke(&core, 0x3000, 0xabc);
    assert_eq!(core.load_linear(0x3000, DS), Ok(0xabc_u64));
    poke(&core, PDPT, 0);
    core.tlb_invlpg(0x3000);
    assert_eq!(core.load_linear(0x3000, DS), Ok(0xabc_u64), "the walk starts from the registers");
    core.gpr[0] = PDPT;
    run(&mut core, &TO_CR3).unwrap();
    assert_eq!(core.load_linear::<u64>(0x3000, DS), Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.fault.error_code), (14, Some(0)));
}

#[test]
fn changes_of_cr0_and_cr4_that_matter_load_the_registers() {
    for (bytes, bit, loads) in [
        (TO_CR0, cr0::CD, true),
        (TO_CR0, cr0::TS, false),
        (TO_CR0, cr0::WP, false),
        (TO_CR4, cr4::PGE, true),
        (TO_CR4, cr4::PSE, true),
        (TO_CR4, cr4::SMEP, true),
        (TO_CR4, cr4::SMAP, false),
        (TO_CR4, cr4::OSFXSR, false),
    ] {
        let mut core = core();
        poke(&core, PDPT + 8, 0x7001);
        core.gpr[0] = if bytes == TO_CR0 { core.cr0 } else { core.cr4 } ^ bit;
        run(&mut core, &bytes).unwrap();
        assert_eq!(core.vmx.pdptes[1] == 0x7001, loads, "{bit:#x}");
    }
}

#[test]
fn turning_paging_on_loads_the_registers_or_faults_and_leaves_it_off() {
    let mut core = core();
    core.vmx.controls.secondary = x86_defs::vmx::controls::secondary::UNRESTRICTED_GUEST;
    core.cr0 &= !cr0::PG;
    core.update_mode();
    core.tlb_select();
    core.vmx.pdptes = [0; 4];
    core.gpr[0] = core.cr0 | cr0::PG;
    poke(&core, PDPT + 16, 3);
    assert_eq!(run(&mut core, &TO_CR0), Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.cr0 & cr0::PG), (13, 0));
    poke(&core, PDPT + 16, 0);
    run(&mut core, &TO_CR0).unwrap();
    assert_eq!(core.vmx.pdptes[0], (TABLES + 0x2000) | 1);
}

#[test]
fn a_load_that_ept_does_not_let_through_exits_without_a_linear_address() {
    let mut core = core();
    // No EPT entry is present.
    core.vmx.controls.eptp = 0x6000 | 6 | 3 << 3;
    core.tlb_select();
    core.gpr[0] = PDPT;
    assert_eq!(run(&mut core, &TO_CR3), Err(Leave::Exit));
    let exit = core.vmx.exit;
    assert_eq!((exit.reason, exit.qualification), (Some(ExitReason::EptViolation), 1));
    assert_eq!((exit.guest_physical, exit.guest_linear), (PDPT, 0));
}
