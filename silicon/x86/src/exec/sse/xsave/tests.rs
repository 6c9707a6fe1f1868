use std::sync::Arc;

use x86_defs::control::{cr0, cr4};
use x86_defs::exception::vector;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use crate::code::decode_one;
use crate::core::test::{self, peek, poke};
use crate::model::Model;
use crate::op::{CodeSize, Done};
use crate::{Core, Leave};

const AREA: u64 = 0x3000;
const XSAVE: &[u8] = &[0x0f, 0xae, 0x23];
const XRSTOR: &[u8] = &[0x0f, 0xae, 0x2b];
const XSAVEOPT: &[u8] = &[0x0f, 0xae, 0x33];
const XSAVEC: &[u8] = &[0x0f, 0xc7, 0x23];
const XSAVES: &[u8] = &[0x0f, 0xc7, 0x2b];
const XRSTORS: &[u8] = &[0x0f, 0xc7, 0x1b];
const XGETBV: &[u8] = &[0x0f, 0x01, 0xd0];
const ALL: [&[u8]; 6] = [XSAVE, XRSTOR, XSAVEOPT, XSAVEC, XSAVES, XRSTORS];
/// XSTATE_BV and XCOMP_BV.
const BV: u64 = AREA + 512;
const COMP: u64 = AREA + 520;

/// A core with everything enabled and asked for, RBX at [`AREA`], initial state.
fn core() -> Core {
    let mut core = test::core();
    core.model = Arc::new(Model::parse("glassvisor-v3").unwrap());
    core.cr4 |= cr4::OSXSAVE;
    core.set_xcr0(7);
    core.vmx.controls.secondary = secondary::ENABLE_XSAVES;
    core.gpr[0] = 0xffff_ffff;
    core.gpr[2] = 0xffff_ffff;
    core.gpr[3] = AREA;
    core.fpu.fcw = 0x37f;
    core
}

/// The same with a number in each register.
fn busy() -> Core {
    let mut core = core();
    for i in 0..16 {
        core.fpu.xmm[i] = 0x100 + i as u128;
        core.fpu.ymm_high[i] = 0x200 + i as u128;
    }
    core.fpu.fcw = 0x27f;
    core
}

fn run(core: &mut Core, bytes: &[u8]) -> Done {
    run_in(core, CodeSize::Bits64, bytes)
}

fn run_in(core: &mut Core, size: CodeSize, bytes: &[u8]) -> Done {
    let ops = decode_one(bytes, size, &core.model);
    (ops[0].exec)(core, &ops[0])
}

fn fault(core: &mut Core, bytes: &[u8]) -> Option<u8> {
    match run(core, bytes) {
        Ok(()) => None,
        Err(Leave::Fault) => Some(core.fault.vector),
        Err(leave) => panic!("{leave:?}"),
    }
}

#[test]
fn osxsave_makes_them_exist_and_ts_makes_them_unavailable() {
    for bytes in ALL {
        let mut core = core();
        core.cr0 |= cr0::EM;
        poke(&core, COMP, 1 << 63);
        if bytes != XRSTOR {
            assert_eq!(fault(&mut core, bytes), None, "CR0.EM does not matter to {bytes:x?}");
        }
        core.cr0 |= cr0::TS;
        assert_eq!(fault(&mut core, bytes), Some(vector::NM), "{bytes:x?}");
        core.cr4 &= !cr4::OSXSAVE;
        assert_eq!(fault(&mut core, bytes), Some(vector::UD), "{bytes:x?}");
    }
}

#[test]
fn areas_are_aligned_to_64_bytes() {
    for bytes in ALL {
        let mut core = core();
        core.gpr[3] = AREA + 32;
        assert_eq!(fault(&mut core, bytes), Some(vector::GP), "{bytes:x?}");
    }
}

#[test]
fn the_supervisors_forms_need_the_control_and_cpl_0() {
    for bytes in [XSAVES, XRSTORS] {
        let mut core = core();
        poke(&core, COMP, 1 << 63);
        assert_eq!(fault(&mut core, bytes), None);
        core.seg[index::SS].rights |= rights::DPL;
        core.update_mode();
        assert_eq!(fault(&mut core, bytes), Some(vector::GP));
        core.vmx.controls.secondary = 0;
        assert_eq!(fault(&mut core, bytes), Some(vector::UD));
    }
}

#[test]
fn components_of_the_xss_exiting_bitmap_exit_with_the_operand() {
    for (bytes, reason) in [(XSAVES, ExitReason::Xsaves), (XRSTORS, ExitReason::Xrstors)] {
        let mut core = core();
        core.msrs.xss = 1 << 8;
        core.vmx.controls.xss_exiting = 1 << 11;
        poke(&core, COMP, 1 << 63);
        assert_eq!(run(&mut core, bytes), Ok(()), "another component's bit");
        core.vmx.controls.xss_exiting = 1 << 8;
        core.gpr[0] = 0;
        core.gpr[2] = 0;
        assert_eq!(run(&mut core, bytes), Ok(()), "not asked for");
        core.gpr[0] = 1 << 8;
        assert_eq!(run(&mut core, bytes), Err(Leave::Exit));
        let exit = core.vmx.exit;
        // [rbx] in 64-bit mode, no index.
        let information = 2 << 7 | 3 << 15 | 1 << 22 | 3 << 23;
        assert_eq!((exit.reason, exit.qualification, exit.instruction_info), (Some(reason), 0, information));
    }
}

#[test]
fn xsave_changes_what_is_asked_for_and_keeps_the_rest_of_the_area_and_header() {
    let mut core = busy();
    for at in (AREA..AREA + 832).step_by(8) {
        poke(&core, at, u64::MAX);
    }
    core.gpr[0] = 0b100;
    core.gpr[2] = 0;
    core.fpu.ymm_high = [0; 16];
    assert_eq!(run(&mut core, XSAVE), Ok(()));
    assert_eq!(peek(&core, BV), !0b100, "AVX is in its initial configuration");
    assert_eq!(peek(&core, COMP), u64::MAX);
    assert_eq!(peek(&core, AREA + 24), 0x0000_ffff_0000_1f80, "MXCSR comes with AVX");
    assert_eq!((peek(&core, AREA), peek(&core, AREA + 160)), (u64::MAX, u64::MAX));
    assert_eq!((peek(&core, AREA + 576), peek(&core, AREA + 824)), (0, 0), "written all the same");
}

#[test]
fn xsaveopt_leaves_out_what_is_not_in_use() {
    let mut core = busy();
    core.fpu.ymm_high = [0; 16];
    for at in (AREA..AREA + 832).step_by(8) {
        poke(&core, at, u64::MAX);
    }
    assert_eq!(run(&mut core, XSAVEOPT), Ok(()));
    assert_eq!(peek(&core, BV), !0b100);
    assert_eq!((peek(&core, AREA + 160), peek(&core, AREA + 576)), (0x100, u64::MAX));
}

#[test]
fn the_compacted_format_has_what_is_asked_for_and_marks_what_is_in_use() {
    for bytes in [XSAVEC, XSAVES] {
        let mut core = busy();
        core.fpu.xmm = [0; 16];
        core.gpr[0] = 0b110;
        core.gpr[2] = 0;
        assert_eq!(run(&mut core, bytes), Ok(()));
        assert_eq!((peek(&core, BV), peek(&core, COMP)), (0b100, 1 << 63 | 0b110));
        assert_eq!(peek(&core, AREA + 24), 0, "MXCSR is SSE state here");
        assert_eq!(peek(&core, AREA + 576), 0x200);
        core.fpu.mxcsr = 0x1f00;
        assert_eq!(run(&mut core, bytes), Ok(()));
        assert_eq!((peek(&core, BV), peek(&core, AREA + 24) as u32), (0b110, 0x1f00));
    }
}

#[test]
fn what_is_saved_comes_back_from_either_format() {
    for (save, restore) in
        [(XSAVE, XRSTOR), (XSAVEOPT, XRSTOR), (XSAVEC, XRSTOR), (XSAVES, XRSTORS), (XSAVEC, XRSTORS), (XSAVES, XRSTOR)]
    {
        let mut core = busy();
        core.fpu.mxcsr = 0x9f80;
        let before = core.fpu.clone();
        assert_eq!(run(&mut core, save), Ok(()));
        core.fpu = Default::default();
        assert_eq!(run(&mut core, restore), Ok(()));
        assert_eq!(core.fpu, before, "{save:x?}");
    }
}

#[test]
fn components_without_a_bit_are_initialised_and_those_not_asked_for_stay() {
    let mut core = busy();
    core.fpu.mxcsr = 0x1f81;
    core.gpr[0] = 0b101;
    poke(&core, AREA + 24, 0x1fc0);
    assert_eq!(run(&mut core, XRSTOR), Ok(()));
    assert_eq!((core.fpu.fcw, core.fpu.ymm_high, core.fpu.xmm[3]), (0x37f, [0; 16], 0x103));
    assert_eq!(core.fpu.mxcsr, 0x1fc0, "the standard form loads it with AVX, in use or not");
    core.gpr[0] = 0b100;
    poke(&core, COMP, 1 << 63 | 7);
    poke(&core, AREA + 24, 0x1f83);
    assert_eq!(run(&mut core, XRSTOR), Ok(()));
    assert_eq!(core.fpu.mxcsr, 0x1fc0, "the compacted form does not");
    core.gpr[0] = 0b010;
    assert_eq!(run(&mut core, XRSTOR), Ok(()));
    assert_eq!((core.fpu.mxcsr, core.fpu.xmm), (0x1f80, [0; 16]));
}

#[test]
fn headers_that_make_no_sense_are_refused_and_change_nothing() {
    let refused = |restore: &[u8], words: &[(u64, u64)]| {
        let mut core = busy();
        let before = core.fpu.clone();
        for &(at, value) in words {
            poke(&core, AREA + at, value);
        }
        let fault = fault(&mut core, restore);
        assert!(fault.is_none() || core.fpu == before, "{restore:x?} {words:x?}");
        fault == Some(vector::GP)
    };
    let compacted = 1 << 63;
    assert!(!refused(XRSTOR, &[(512, 7)]));
    assert!(refused(XRSTOR, &[(512, 8)]), "a component that XCR0 does not enable");
    assert!(refused(XRSTOR, &[(520, 1)]), "XCOMP_BV in the standard format");
    assert!(refused(XRSTOR, &[(528, 1)]), "bytes 23:16");
    assert!(!refused(XRSTOR, &[(536, 1), (568, 1)]), "not looked at in the standard format");
    assert!(refused(XRSTOR, &[(512, 2), (24, 1 << 16)]), "MXCSR");
    assert!(refused(XRSTORS, &[(512, 7)]), "only the compacted format");
    for restore in [XRSTOR, XRSTORS] {
        assert!(!refused(restore, &[(512, 3), (520, compacted | 7)]));
        assert!(refused(restore, &[(520, compacted | 8)]));
        assert!(refused(restore, &[(512, 4), (520, compacted | 3)]), "not in XCOMP_BV");
        assert!(refused(restore, &[(512, compacted), (520, compacted)]));
        for at in (528..576).step_by(8) {
            assert!(refused(restore, &[(520, compacted), (at, 1 << 40)]), "byte {at}");
        }
        assert!(refused(restore, &[(512, 2), (520, compacted | 7), (24, 1 << 31)]), "MXCSR");
        assert!(!refused(restore, &[(512, 4), (520, compacted | 7), (24, 1 << 31)]), "MXCSR is not loaded");
    }
}

#[test]
fn a_processor_without_xsavec_takes_no_compacted_area() {
    let mut core = core();
    poke(&core, COMP, 1 << 63);
    assert_eq!(fault(&mut core, XRSTOR), None);
    core.model = Arc::new(Model::parse("glassvisor-v3,-xsavec,-xsaves").unwrap());
    assert_eq!(fault(&mut core, XRSTOR), Some(vector::GP));
}

#[test]
fn an_area_of_which_a_part_cannot_be_written_is_not_written_at_all() {
    for save in [XSAVE, XSAVEOPT, XSAVEC, XSAVES] {
        let mut core = busy();
        // The header is in the next page, which is not there.
        core.gpr[3] = 0x4000 - 512;
        poke(&core, test::TABLES + 0x3000 + 4 * 8, 0);
        assert_eq!(fault(&mut core, save), Some(vector::PF), "{save:x?}");
        assert_eq!(core.fault.address, 0x4000, "{save:x?}");
        assert_eq!((peek(&core, 0x4000 - 512), peek(&core, 0x4000 - 352)), (0, 0), "{save:x?}");
    }
}

#[test]
fn outside_of_64_bit_mode_there_are_eight_vector_registers() {
    let mut core = busy();
    core.seg[index::CS].rights = core.seg[index::CS].rights & !rights::L | rights::DB;
    core.update_mode();
    assert_eq!(run_in(&mut core, CodeSize::Bits32, XSAVE), Ok(()));
    assert_eq!((peek(&core, AREA + 160 + 7 * 16), peek(&core, AREA + 160 + 8 * 16)), (0x107, 0));
    assert_eq!((peek(&core, AREA + 576 + 7 * 16), peek(&core, AREA + 576 + 8 * 16)), (0x207, 0));
    poke(&core, BV, 0);
    assert_eq!(run_in(&mut core, CodeSize::Bits32, XRSTOR), Ok(()));
    assert_eq!((core.fpu.xmm[7], core.fpu.xmm[8]), (0, 0x108));
    assert_eq!((core.fpu.ymm_high[7], core.fpu.ymm_high[8]), (0, 0x208));
    assert_eq!(core.xinuse(), 0, "the upper eight do not count here");
}

#[test]
fn pkru_is_a_component_in_both_formats() {
    let with_keys = || {
        let mut core = core();
        core.model = Arc::new(Model::parse("glassvisor-v3,+pku").unwrap());
        core.set_xcr0(0x207);
        core.set_pkru(0xfedc_ba98);
        core
    };
    for (save, restore, offset) in
        [(XSAVE, XRSTOR, 0xa80), (XSAVEOPT, XRSTOR, 0xa80), (XSAVEC, XRSTOR, 576 + 256), (XSAVES, XRSTORS, 576 + 256)]
    {
        let mut core = with_keys();
        poke(&core, AREA + offset, u64::MAX);
        poke(&core, AREA + offset + 8, u64::MAX);
        assert_eq!(run(&mut core, save), Ok(()));
        assert_eq!(peek(&core, BV), 0x200, "the only component that is in use");
        assert_eq!((peek(&core, AREA + offset), peek(&core, AREA + offset + 8)), (0xfedc_ba98, u64::MAX));
        core.set_pkru(3);
        // The upper half is reserved, and ignored.
        poke(&core, AREA + offset, 0xffff_ffff_fedc_ba98);
        assert_eq!(run(&mut core, restore), Ok(()));
        assert_eq!(core.pkru, 0xfedc_ba98, "{save:x?}");
        poke(&core, BV, 0);
        core.gpr[0] = 7;
        core.gpr[2] = 0;
        assert_eq!(run(&mut core, restore), Ok(()));
        assert_eq!(core.pkru, 0xfedc_ba98, "not asked for");
        core.gpr[0] = 0x200;
        assert_eq!(run(&mut core, restore), Ok(()));
        assert_eq!((core.pkru, core.xinuse()), (0, 0), "its initial configuration");
    }
    // Without AVX in XCOMP_BV it is the first in the compacted format, and nothing behind it is touched.
    let mut core = with_keys();
    core.gpr[0] = 0x201;
    core.gpr[2] = 0;
    assert_eq!(run(&mut core, XSAVEC), Ok(()));
    assert_eq!(
        (peek(&core, COMP), peek(&core, AREA + 576), peek(&core, AREA + 584)),
        (1 << 63 | 0x201, 0xfedc_ba98, 0)
    );
}

#[test]
fn xrstor_of_pkru_changes_the_rights_of_pages_at_once() {
    let mut core = core();
    core.model = Arc::new(Model::parse("glassvisor-v3,+pku").unwrap());
    core.set_xcr0(0x207);
    core.cr4 |= cr4::PKE;
    core.update_keys();
    let at = test::TABLES + 0x3000 + 5 * 8;
    // A user page with key 3.
    poke(&core, at, peek(&core, at) | 3 << 59);
    assert!(core.load_linear::<u64>(0x5000, index::DS as u8).is_ok());
    core.gpr[0] = 0x200;
    core.gpr[2] = 0;
    poke(&core, BV, 0x200);
    poke(&core, AREA + 0xa80, 1 << 6);
    assert_eq!(run(&mut core, XRSTOR), Ok(()));
    assert!(core.load_linear::<u64>(0x5000, index::DS as u8).is_err());
    poke(&core, BV, 0);
    assert_eq!(run(&mut core, XRSTOR), Ok(()));
    assert!(core.load_linear::<u64>(0x5000, index::DS as u8).is_ok());
}

#[test]
fn xgetbv_reads_xcr0_and_what_is_in_use() {
    let mut core = core();
    let get = |core: &mut Core, ecx: u64| {
        core.gpr[1] = ecx;
        run(core, XGETBV).map(|()| core.gpr[2] << 32 | core.gpr[0])
    };
    assert_eq!(get(&mut core, 0), Ok(7));
    assert_eq!(get(&mut core, 1), Ok(0));
    core.fpu.ymm_high[15] = 1;
    core.fpu.mxcsr = 0x1fa0;
    assert_eq!(get(&mut core, 1), Ok(0b110));
    core.set_xcr0(3);
    assert_eq!((get(&mut core, 0), get(&mut core, 1)), (Ok(3), Ok(0b010)));
    assert_eq!(get(&mut core, 2), Err(Leave::Fault));
    core.model = Arc::new(Model::parse("glassvisor-v3,-xgetbv1").unwrap());
    assert_eq!(get(&mut core, 1), Err(Leave::Fault));
    core.cr4 &= !cr4::OSXSAVE;
    assert_eq!(get(&mut core, 0), Err(Leave::Fault));
    assert_eq!(core.fault.vector, vector::UD);
}
