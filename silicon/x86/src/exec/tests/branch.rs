use crate::Leave;
use crate::core::mode::Operating;
use crate::exec::trial::{self, CODE, DATA};
use crate::op::{BLOCK_RIP, CodeSize};

#[test]
fn targets_count_from_the_next_instruction() {
    let mut core = trial::core();
    assert_eq!(trial::run(&mut core, &[0xeb, 0xfe]), Err(Leave::Branch));
    assert_eq!(core.rip, CODE);
    assert_eq!(trial::run(&mut core, &[0xe9, 0, 1, 0, 0]), Err(Leave::Branch));
    assert_eq!(core.rip, CODE + 5 + 0x100);
    core.rip = 0;
    core.flags.set_zf(false);
    assert_eq!(trial::run(&mut core, &[0x74, 0x10]), Ok(()));
    assert_eq!(core.rip, 0);
    assert_eq!(trial::run(&mut core, &[0x75, 0xf0]), Err(Leave::Branch));
    assert_eq!(core.rip, CODE + 2 - 0x10);
}

#[test]
fn call_and_return_meet_on_the_stack() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    assert_eq!(trial::run(&mut core, &[0xe8, 0x20, 0, 0, 0]), Err(Leave::Branch));
    assert_eq!((core.rip, core.gpr[4]), (CODE + 0x25, sp - 8));
    assert_eq!(trial::run(&mut core, &[0xc2, 0x10, 0]), Err(Leave::Branch));
    assert_eq!((core.rip, core.gpr[4]), (CODE + 5, sp + 0x10));
    core.gpr[3] = DATA;
    core.store_linear(DATA, 3, 0x1234_5678_u64).unwrap();
    assert_eq!(trial::run(&mut core, &[0xff, 0x13]), Err(Leave::Branch));
    assert_eq!((core.rip, core.load_linear::<u64>(sp + 8, 2)), (0x1234_5678, Ok(CODE + 2)));
}

#[test]
fn a_target_that_is_not_canonical_faults_before_anything_changes() {
    let mut core = trial::core();
    let sp = core.gpr[4];
    core.gpr[0] = 0x8000_0000_0000;
    core.store_linear(sp, 2, core.gpr[0]).unwrap();
    core.store_linear(sp - 8, 2, 7_u64).unwrap();
    for bytes in [&[0xff, 0xe0][..], &[0xff, 0xd0], &[0xc3], &[0xff, 0x24, 0x24]] {
        assert_eq!(trial::run(&mut core, bytes), Err(Leave::Fault), "{bytes:02x?}");
        assert_eq!((core.fault.vector, core.fault.error_code), (13, Some(0)));
        assert_eq!((core.gpr[4], core.rip, core.load_linear(sp - 8, 2)), (sp, CODE, Ok(7_u64)));
    }
    core.gpr[0] = 0xffff_8000_0000_0000;
    assert_eq!(trial::run(&mut core, &[0xff, 0xe0]), Err(Leave::Branch));
}

#[test]
fn outside_of_64_bit_mode_the_limit_of_cs_counts() {
    let mut core = trial::core();
    core.mode.operating = Operating::Protected;
    core.mode.rip_mask = 0xffff_ffff;
    core.seg[1].limit = 0xf_ffff;
    core.gpr[BLOCK_RIP as usize] = 0xf_fff0;
    let run = |core: &mut crate::Core, bytes: &[u8]| {
        let op = trial::op(CodeSize::Bits32, bytes).unwrap();
        (op.exec)(core, &op)
    };
    assert_eq!(run(&mut core, &[0xeb, 0x0d]), Err(Leave::Branch));
    assert_eq!(core.rip, 0xf_ffff);
    assert_eq!(run(&mut core, &[0xeb, 0x0e]), Err(Leave::Fault));
    // A 16-bit operand size cuts the target.
    assert_eq!(run(&mut core, &[0x66, 0xeb, 0x20]), Err(Leave::Branch));
    assert_eq!(core.rip, 0x13);
}

#[test]
fn loops_count_in_the_address_size() {
    let mut core = trial::core();
    core.gpr[1] = 0xffff_ffff_0000_0002;
    assert_eq!(trial::run(&mut core, &[0x67, 0xe2, 0x10]), Err(Leave::Branch));
    assert_eq!((core.gpr[1], core.rip), (1, CODE + 0x13));
    assert_eq!(trial::run(&mut core, &[0x67, 0xe2, 0x10]), Ok(()));
    assert_eq!(trial::run(&mut core, &[0x67, 0xe3, 0x10]), Err(Leave::Branch));
    assert_eq!(trial::run(&mut core, &[0xe2, 0x10]), Err(Leave::Branch));
    assert_eq!(core.gpr[1], u64::MAX);
    core.flags.set_zf(true);
    assert_eq!(trial::run(&mut core, &[0xe0, 0x10]), Ok(()));
    assert_eq!(trial::run(&mut core, &[0xe1, 0x10]), Err(Leave::Branch));
    assert_eq!(core.gpr[1], u64::MAX - 2);
}
