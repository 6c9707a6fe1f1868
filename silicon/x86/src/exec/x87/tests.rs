use silicon_float::x87::F80;
use x86_defs::control::cr0;
use x86_defs::exception::vector;

use super::status::fsw;
use crate::code::decode_one;
use crate::core::test::{TABLES, core, peek, poke, real_mode};
use crate::op::BLOCK_RIP;
use crate::{Core, Leave};

/// Executes `code` at 0x100, with memory operands of `[RSI]` at 0x2000 and of `[BX]` there in real mode.
fn run(core: &mut Core, code: &[u8]) -> Result<(), Leave> {
    let mut at = 0;
    (core.gpr[3], core.gpr[6]) = (0x2000, 0x2000);
    while at < code.len() {
        core.gpr[usize::from(BLOCK_RIP)] = 0x100 + at as u64;
        for op in decode_one(&code[at..], core.mode.code, &core.model.clone()) {
            (op.exec)(core, &op)?;
            at += usize::from(op.len);
        }
    }
    Ok(())
}

fn faults_with(core: &mut Core, code: &[u8]) -> Option<u8> {
    (run(core, code) == Err(Leave::Fault)).then_some(core.fault.vector)
}

fn set_cr0(core: &mut Core, set: u64, clear: u64) {
    core.cr0 = core.cr0 & !clear | set;
    core.update_mode();
}

const FNINIT: [u8; 2] = [0xdb, 0xe3];
const FLD1: [u8; 2] = [0xd9, 0xe8];
const FLDZ: [u8; 2] = [0xd9, 0xee];
const FDIVRP: [u8; 2] = [0xde, 0xf1];
const FNOP: [u8; 2] = [0xd9, 0xd0];
const FNSTSW_AX: [u8; 2] = [0xdf, 0xe0];
const WAIT: [u8; 1] = [0x9b];
const FLDCW: [u8; 2] = [0xd9, 0x2e];
const FCOMPP: [u8; 2] = [0xde, 0xd9];

/// A core with one divided by zero while that was not masked.
fn divided_by_zero() -> Core {
    let mut core = core();
    poke(&core, 0x2000, 0x037b);
    let code = [&FNINIT[..], &FLDCW, &FLDZ, &FLD1, &FDIVRP].concat();
    run(&mut core, &code).expect("it leaves the exception pending");
    core
}

#[test]
fn detection_finds_an_fpu() {
    let mut core = core();
    core.gpr[0] = 0x5a5a;
    poke(&core, 0x2000, 0x5a5a);
    // FNINIT; FNSTSW AX; FNSTCW [RSI]
    run(&mut core, &[0xdb, 0xe3, 0xdf, 0xe0, 0xd9, 0x3e]).expect("no fault");
    assert_eq!((core.gpr[0], peek(&core, 0x2000)), (0, 0x037f));
}

#[test]
fn an_unmasked_exception_waits_for_the_next_waiting_instruction() {
    let mut core = divided_by_zero();
    assert_eq!(core.fpu.fsw & 0x80bf, fsw::ES | fsw::B | 4);
    // Neither popped nor stored.
    assert_eq!((core.fpu.top(), core.fpu.stack(0), core.fpu.stack(1)), (6, Some(F80::ONE), Some(F80::ZERO)));
    assert_eq!((core.fpu.fop, core.fpu.fip), (0x6f1, 0x108));
    run(&mut core, &FNSTSW_AX).expect("it does not wait");
    let before = core.fpu.clone();
    assert_eq!(faults_with(&mut core, &FNOP), Some(vector::MF));
    assert_eq!(faults_with(&mut core, &WAIT), Some(vector::MF));
    assert_eq!(core.fpu, before);
    run(&mut core, &[0xdb, 0xe2]).expect("FNCLEX does not wait");
    run(&mut core, &FNOP).expect("nothing is pending");
}

#[test]
fn without_ne_a_pending_exception_stays_pending() {
    let mut core = divided_by_zero();
    set_cr0(&mut core, 0, cr0::NE);
    run(&mut core, &FNOP).expect("FERR# goes nowhere");
    run(&mut core, &WAIT).expect("FERR# goes nowhere");
    assert!(core.fpu.exception_pending());
}

#[test]
fn masking_an_exception_or_unmasking_it_changes_what_is_pending() {
    let mut core = divided_by_zero();
    core.fpu.set_control(0x037f);
    assert!(!core.fpu.exception_pending());
    run(&mut core, &FLDCW).expect("nothing is pending before");
    assert!(core.fpu.exception_pending());
    // FNSTENV masks all exceptions.
    run(&mut core, &[0xd9, 0x36]).expect("it does not wait");
    assert_eq!((core.fpu.fcw, core.fpu.exception_pending()), (0x037f, false));
}

#[test]
fn task_switched_and_emulation_make_the_device_unavailable() {
    let mut core = divided_by_zero();
    set_cr0(&mut core, cr0::TS, cr0::MP);
    for code in [&FNOP[..], &FNINIT, &FNSTSW_AX, &FLDCW] {
        assert_eq!(faults_with(&mut core, code), Some(vector::NM), "{code:02x?}");
    }
    assert_eq!(faults_with(&mut core, &WAIT), Some(vector::MF), "WAIT heeds TS with MP only");
    set_cr0(&mut core, cr0::MP, 0);
    assert_eq!(faults_with(&mut core, &WAIT), Some(vector::NM));
    set_cr0(&mut core, cr0::EM, cr0::TS);
    assert_eq!(faults_with(&mut core, &FNINIT), Some(vector::NM));
    assert_eq!(faults_with(&mut core, &WAIT), Some(vector::MF));
}

#[test]
fn an_unmasked_comparison_leaves_codes_and_stack_alone() {
    let mut core = core();
    run(&mut core, &[&FNINIT[..], &FLD1, &FLD1].concat()).expect("no fault");
    core.fpu.set_stack(1, F80::INDEFINITE);
    core.fpu.set_control(0x037e);
    run(&mut core, &FCOMPP).expect("it leaves the exception pending");
    assert_eq!(core.fpu.fsw & (fsw::C0 | fsw::C2 | fsw::C3), 0);
    assert_eq!(core.fpu.top(), 6);
    core.fpu.fsw &= !0x80ff;
    core.fpu.set_control(0x037f);
    run(&mut core, &FCOMPP).expect("no fault");
    assert_eq!(core.fpu.fsw & (fsw::C0 | fsw::C2 | fsw::C3), fsw::C0 | fsw::C2 | fsw::C3);
    assert_eq!((core.fpu.top(), core.fpu.ftw), (0, 0));
}

#[test]
fn a_store_that_faults_in_its_second_page_changes_nothing() {
    let mut core = core();
    run(&mut core, &[&FNINIT[..], &FLD1].concat()).expect("no fault");
    poke(&core, TABLES + 0x3000 + 3 * 8, 0);
    poke(&core, 0x2ff8, 0x1234);
    let before = core.fpu.clone();
    // FSTP m80, FBSTP, FNSTENV, FNSAVE at [RSI + 0xffa]
    for code in [[0xdb, 0xbe], [0xdf, 0xb6], [0xd9, 0xb6], [0xdd, 0xb6]] {
        let code = [&code[..], &[0xfa, 0x0f, 0, 0]].concat();
        assert_eq!(faults_with(&mut core, &code), Some(vector::PF), "{code:02x?}");
        assert_eq!((core.fault.address, peek(&core, 0x2ff8)), (0x3000, 0x1234), "{code:02x?}");
        assert_eq!(core.fpu, before, "{code:02x?}");
    }
}

#[test]
fn pointers_follow_the_last_instruction_but_not_control() {
    let mut core = core();
    // FNINIT; FILD m16 [RSI + 8]; FLD1; FNSTCW [RSI]
    run(&mut core, &[0xdb, 0xe3, 0xdf, 0x46, 8, 0xd9, 0xe8, 0xd9, 0x3e]).expect("no fault");
    assert_eq!((core.fpu.fip, core.fpu.fdp, core.fpu.fop), (0x105, 0x2008, 0));
}

/// A state with something in every field.
fn filled(mut core: Core) -> Core {
    run(&mut core, &[&FNINIT[..], &FLD1, &FLDZ].concat()).expect("no fault");
    core.fpu.fsw |= fsw::C0;
    (core.fpu.fop, core.fpu.fip, core.fpu.fdp) = (0x5a5, 0x000a_bcde, 0x0001_2345);
    core
}

#[test]
fn the_environment_has_the_layout_of_mode_and_operand_size() {
    let fields =
        |core: &Core, at| (peek(core, at), peek(core, at + 8), peek(core, at + 16), peek(core, at + 24) as u32);
    // 64-bit mode: the 32-bit protected form, then the 16-bit one.
    let mut core = filled(self::core());
    run(&mut core, &[0xd9, 0x36]).expect("no fault");
    let tags = 0xffff_1fff_u64;
    assert_eq!(
        fields(&core, 0x2000),
        (0xffff_3100_ffff_037f, 0x000a_bcde << 32 | tags, 0x0001_2345 << 32 | 0x05a5_0000, 0xffff_0000)
    );
    run(&mut core, &[0x66, 0xd9, 0x76, 0x40]).expect("no fault");
    assert_eq!((peek(&core, 0x2040), peek(&core, 0x2048)), (0xbcde_1fff_3100_037f, 0x2345_0000));
    // Real mode: linear addresses in both.
    let mut core = filled(real_mode());
    run(&mut core, &[0xd9, 0x37]).expect("no fault");
    assert_eq!((peek(&core, 0x2000), peek(&core, 0x2008)), (0xbcde_1fff_3100_037f, 0x1000_2345_a5a5));
    run(&mut core, &[0x66, 0xd9, 0x77, 0x40]).expect("no fault");
    assert_eq!(
        fields(&core, 0x2040),
        (0xffff_3100_ffff_037f, 0xffff_bcde << 32 | tags, 0xffff_2345 << 32 | 0x0000_a5a5, 0x0000_1000)
    );
}

#[test]
fn save_and_restore_bring_everything_back() {
    for (mut core, save, restore) in [
        (filled(core()), &[0xdd, 0x36][..], &[0xdd, 0x26][..]),
        (filled(real_mode()), &[0xdd, 0x37], &[0xdd, 0x27]),
        (filled(real_mode()), &[0x66, 0xdd, 0x37], &[0x66, 0xdd, 0x27]),
    ] {
        let before = core.fpu.clone();
        run(&mut core, save).expect("no fault");
        assert_eq!((core.fpu.fcw, core.fpu.fsw, core.fpu.ftw, core.fpu.fip), (0x037f, 0, 0, 0));
        core.fpu.st = [F80::INDEFINITE; 8];
        run(&mut core, restore).expect("no fault");
        assert_eq!(core.fpu, before, "{save:02x?}");
    }
}
