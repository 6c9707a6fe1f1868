use x86_defs::exception::vector;
use x86_defs::segment::{index, rights};

use crate::core::test::{core, peek, poke, real_mode};
use crate::core::{SegmentRegister, TableRegister};
use crate::exec::run_test::run;
use crate::{Core, Leave};

const GDT: u64 = 0x1000;

/// 8 code64, 0x10 data, 0x18 user data, 0x20 code that cannot be read, 0x28 data not present, 0x30 TSS (16 bytes).
fn long() -> Core {
    let mut core = core();
    for (i, d) in [
        0,
        0x00af_9b00_0000_ffff,
        0x00cf_9200_0000_ffff,
        0x00cf_f200_0000_ffff,
        0x00af_9800_0000_ffff,
        0x00cf_1200_0000_ffff,
        0x0000_8900_4000_0067,
        0xffff_8000,
    ]
    .into_iter()
    .enumerate()
    {
        poke(&core, GDT + i as u64 * 8, d);
    }
    core.gdtr = TableRegister { base: GDT, limit: 0x3f };
    core
}

/// `mov Sreg, ax`
fn mov(core: &mut Core, segment: usize, selector: u16) -> Result<(), Leave> {
    core.gpr[0] = selector.into();
    run(core, &[0x8e, 0xc0 | (segment as u8) << 3])
}

#[test]
fn a_load_checks_type_privilege_and_presence() {
    for (segment, selector, vector, error) in [
        (index::DS, 0x20, vector::GP, 0x20),
        (index::DS, 0x28, vector::NP, 0x28),
        (index::SS, 0x28, vector::SS, 0x28),
        (index::SS, 0x18, vector::GP, 0x18),
        (index::SS, 8, vector::GP, 8),
        (index::SS, 3, vector::GP, 0),
        (index::ES, 0x13, vector::GP, 0x10),
        (index::ES, 0x48, vector::GP, 0x48),
        (index::ES, 0x14, vector::GP, 0x14),
        (index::ES, 0x30, vector::GP, 0x30),
    ] {
        let mut core = long();
        core.seg[index::LDTR].rights = rights::UNUSABLE;
        let before = core.seg;
        assert_eq!(mov(&mut core, segment, selector), Err(Leave::Fault), "{segment} {selector:#x}");
        assert_eq!((core.fault.vector, core.fault.error_code), (vector, Some(error)), "{segment} {selector:#x}");
        assert_eq!(core.seg, before);
    }
}

#[test]
fn a_load_sets_the_accessed_bit_in_memory() {
    let mut core = long();
    mov(&mut core, index::ES, 0x18).unwrap();
    assert_eq!(peek(&core, GDT + 0x18), 0x00cf_f300_0000_ffff);
    assert_eq!((core.seg[index::ES].rights, core.seg[index::ES].selector), (0xc0f3, 0x18));
}

#[test]
fn null_selectors_make_segments_unusable() {
    let mut core = long();
    mov(&mut core, index::DS, 2).unwrap();
    assert!(core.seg[index::DS].unusable());
    mov(&mut core, index::SS, 0).unwrap();
    assert_eq!(core.mode.cpl, 0);
}

#[test]
fn loading_ss_opens_a_shadow() {
    let mut core = long();
    mov(&mut core, index::SS, 0x10).unwrap();
    assert!(core.events.mov_ss_shadow);
}

#[test]
fn real_mode_keeps_limit_and_size() {
    let mut core = real_mode();
    core.seg[index::DS].limit = u32::MAX;
    mov(&mut core, index::DS, 0x1234).unwrap();
    assert_eq!((core.seg[index::DS].base, core.seg[index::DS].limit), (0x1_2340, u32::MAX));
}

#[test]
fn a_failed_pop_leaves_the_stack_pointer() {
    let mut core = long();
    poke(&core, 0x8000, 0x28);
    // pop fs
    assert_eq!(run(&mut core, &[0x0f, 0xa1]), Err(Leave::Fault));
    assert_eq!((core.gpr[4], core.fault.vector), (0x8000, vector::NP));
    poke(&core, 0x8000, 0x18);
    run(&mut core, &[0x0f, 0xa1]).unwrap();
    assert_eq!((core.gpr[4], core.seg[index::FS].selector), (0x8008, 0x18));
}

#[test]
fn ltr_takes_a_64_bit_base_and_marks_the_tss_busy() {
    let mut core = long();
    poke(&core, GDT + 0x38, 0);
    core.gpr[0] = 0x30;
    run(&mut core, &[0x0f, 0x00, 0xd8]).unwrap();
    let expected = SegmentRegister { selector: 0x30, base: 0x4000, limit: 0x67, rights: rights::P | 11 };
    assert_eq!(core.seg[index::TR], expected);
    assert_eq!(peek(&core, GDT + 0x30) >> 40 & 0xf, 11);
    // A busy TSS is refused.
    assert_eq!(run(&mut core, &[0x0f, 0x00, 0xd8]), Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.fault.error_code), (vector::GP, Some(0x30)));
}

#[test]
fn lar_and_lsl_answer_for_what_the_program_may_see() {
    let mut core = long();
    core.gpr[1] = 0x18;
    // lar eax, ecx; lsl edx, ecx
    run(&mut core, &[0x0f, 0x02, 0xc1]).unwrap();
    run(&mut core, &[0x0f, 0x03, 0xd1]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[2], core.flags.zf()), (0x00c0_f200, 0xffff_ffff, true));
    core.gpr[1] = 0x13;
    run(&mut core, &[0x0f, 0x02, 0xc1]).unwrap();
    assert!(!core.flags.zf(), "RPL 3 does not see a segment of level 0");
    // verr, verw on code that cannot be read
    core.gpr[1] = 0x20;
    run(&mut core, &[0x0f, 0x00, 0xe1]).unwrap();
    assert!(!core.flags.zf());
}

#[test]
fn swapgs_exchanges_the_two_bases() {
    let mut core = long();
    core.seg[index::GS].base = 1;
    core.msrs.kernel_gs_base = 2;
    run(&mut core, &[0x0f, 0x01, 0xf8]).unwrap();
    assert_eq!((core.seg[index::GS].base, core.msrs.kernel_gs_base), (2, 1));
}

#[test]
fn base_instructions_need_their_enable_bit_and_canonical_values() {
    let mut core = long();
    // wrfsbase rax
    let wrfsbase = [0xf3, 0x48, 0x0f, 0xae, 0xd0];
    core.gpr[0] = 0x1234;
    assert_eq!(run(&mut core, &wrfsbase), Err(Leave::Fault));
    assert_eq!(core.fault.vector, vector::UD);
    core.cr4 |= x86_defs::control::cr4::FSGSBASE;
    run(&mut core, &wrfsbase).unwrap();
    assert_eq!(core.seg[index::FS].base, 0x1234);
    core.gpr[0] = 1 << 47;
    assert_eq!(run(&mut core, &wrfsbase), Err(Leave::Fault));
    assert_eq!(core.fault.vector, vector::GP);
}
