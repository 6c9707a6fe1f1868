use x86_defs::rflags::{AC, CF, DF, FIXED, ID, IF, IOPL, RF, STATUS, TF, VM, ZF};

use crate::Leave;
use crate::core::mode::Operating;
use crate::exec::trial::{self, DATA};

#[test]
fn push_and_pop_of_the_stack_pointer() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    trial::run(&mut core, &[0x54]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(sp - 8, 2)), (sp - 8, Ok(sp)));
    trial::run(&mut core, &[0x5c]).unwrap();
    assert_eq!(core.gpr[4], sp);
}

#[test]
fn operand_sizes_and_immediates() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    trial::run(&mut core, &[0x6a, 0xff]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(sp - 8, 2)), (sp - 8, Ok(u64::MAX)));
    trial::run(&mut core, &[0x66, 0x6a, 0x80]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(sp - 10, 2)), (sp - 10, Ok(0xff80_u16)));
    trial::run(&mut core, &[0x68, 0, 0, 0, 0x80]).unwrap();
    assert_eq!(core.load_linear(sp - 18, 2), Ok(0xffff_ffff_8000_0000_u64));
    trial::run(&mut core, &[0x0f, 0xa0]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(sp - 26, 2)), (sp - 26, Ok(0x13_u64)));
    trial::run(&mut core, &[0x66, 0x58]).unwrap();
    assert_eq!((core.gpr[4], core.gpr[0]), (sp - 24, 0x13));
}

#[test]
fn pop_to_memory_sees_the_new_stack_pointer() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    core.store_linear(sp, 2, 0x55_u64).unwrap();
    // pop [rsp+8]
    trial::run(&mut core, &[0x8f, 0x44, 0x24, 8]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(sp + 16, 2)), (sp + 8, Ok(0x55_u64)));
}

#[test]
fn enter_builds_the_frame_that_leave_takes_down() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    core.gpr[5] = DATA + 0x1000;
    core.store_linear(DATA + 0xff8, 2, 0x77_u64).unwrap();
    trial::run(&mut core, &[0xc8, 0x20, 0, 2]).unwrap();
    assert_eq!(core.load_linear(sp - 8, 2), Ok(DATA + 0x1000));
    assert_eq!(core.load_linear(sp - 16, 2), Ok(0x77_u64));
    assert_eq!(core.load_linear(sp - 24, 2), Ok(sp - 8));
    assert_eq!((core.gpr[5], core.gpr[4]), (sp - 8, sp - 24 - 0x20));
    trial::run(&mut core, &[0xc9]).unwrap();
    assert_eq!((core.gpr[5], core.gpr[4]), (DATA + 0x1000, sp));
}

fn popf(core: &mut crate::Core, value: u64) -> u64 {
    core.push(value).unwrap();
    assert_eq!(trial::run(core, &[0x9d]), Err(Leave::End));
    core.rflags()
}

#[test]
fn popf_changes_what_the_privilege_level_allows() {
    let mut core = trial::core();
    assert_eq!(popf(&mut core, u64::MAX), STATUS | FIXED | TF | IF | DF | AC | ID | x86_defs::rflags::NT);
    assert_eq!(popf(&mut core, 0), FIXED | IF);
    core.rflags_rest |= IOPL;
    assert_eq!(popf(&mut core, 0), FIXED | IOPL);
    for seg in &mut core.seg {
        seg.rights &= !x86_defs::segment::rights::DPL;
    }
    core.mode.cpl = 0;
    core.rflags_rest |= RF;
    assert_eq!(popf(&mut core, CF), FIXED | CF);
}

#[test]
fn pushf_hides_resume_and_virtual_mode() {
    let mut core = trial::core();
    core.rflags_rest |= RF;
    core.flags.set_bits(ZF);
    trial::run(&mut core, &[0x9c]).unwrap();
    assert_eq!(core.load_linear(core.gpr[4], 2), Ok(FIXED | IF | ZF));
}

#[test]
fn virtual_8086_mode_traps_the_flags_unless_iopl_is_3() {
    let mut core = trial::core();
    core.mode.operating = Operating::Virtual8086;
    core.rflags_rest |= VM;
    let op = trial::op(crate::op::CodeSize::Bits16, &[0x9c]).unwrap();
    assert_eq!((op.exec)(&mut core, &op), Err(Leave::Fault));
    assert_eq!(core.fault.vector, 13);
}
