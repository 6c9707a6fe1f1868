//! The same instructions with 16-bit addresses, stacks and segments.

use x86_defs::segment::index;

use crate::core::test;
use crate::exec::trial;
use crate::op::{BLOCK_RIP, CodeSize, Done};
use crate::{Core, Leave};

fn core() -> Core {
    let mut core = test::real_mode();
    for (segment, base) in [(index::SS, 0x2_0000), (index::DS, 0x3_0000), (index::ES, 0x4_0000)] {
        core.seg[segment].base = base;
        core.seg[segment].selector = (base >> 4) as u16;
    }
    core.gpr[4] = 0xabcd_0100;
    core.gpr[BLOCK_RIP as usize] = 0x100;
    core.rip = 0x100;
    core
}

fn run(core: &mut Core, bytes: &[u8]) -> Done {
    let op = trial::op(CodeSize::Bits16, bytes).unwrap();
    (op.exec)(core, &op)
}

fn word(core: &mut Core, linear: u64) -> u16 {
    core.load_linear(linear, 3).unwrap()
}

#[test]
fn the_stack_pointer_has_16_bits_and_its_segment() {
    let mut core = core();
    core.gpr[0] = 0x1234_5678;
    run(&mut core, &[0x50]).unwrap();
    assert_eq!((core.gpr[4], word(&mut core, 0x2_00fe)), (0xabcd_00fe, 0x5678));
    run(&mut core, &[0x66, 0x50]).unwrap();
    assert_eq!((core.gpr[4], core.load_linear(0x2_00fa, 2)), (0xabcd_00fa, Ok(0x1234_5678_u32)));
    core.gpr[4] = 0;
    run(&mut core, &[0x1e]).unwrap();
    assert_eq!((core.gpr[4], word(&mut core, 0x2_fffe)), (0xfffe, 0x3000));
}

#[test]
fn all_registers_are_pushed_and_popped() {
    let mut core = core();
    for slot in [0, 1, 2, 3, 5, 6, 7] {
        core.gpr[slot] = 0x1110_0000 + slot as u64;
    }
    let before = core.gpr;
    run(&mut core, &[0x60]).unwrap();
    assert_eq!((core.gpr[4], word(&mut core, 0x2_00f6)), (0xabcd_00f0, 0x100));
    for slot in [0, 1, 2, 3, 5, 6, 7] {
        core.gpr[slot] ^= 0xffff;
    }
    run(&mut core, &[0x61]).unwrap();
    assert_eq!(core.gpr, before);
}

#[test]
fn calls_and_loops_stay_in_the_segment() {
    let mut core = core();
    core.gpr[BLOCK_RIP as usize] = 0xfff0;
    assert_eq!(run(&mut core, &[0xe8, 0x20, 0]), Err(Leave::Branch));
    assert_eq!((core.rip, word(&mut core, 0x2_00fe)), (0x13, 0xfff3));
    assert_eq!(run(&mut core, &[0xc3]), Err(Leave::Branch));
    assert_eq!((core.rip, core.gpr[4]), (0xfff3, 0xabcd_0100));
    core.gpr[1] = 0x5_0000;
    assert_eq!(run(&mut core, &[0xe2, 0xfe]), Err(Leave::Branch));
    assert_eq!((core.rip, core.gpr[1]), (0xfff0, 0x5_ffff));
    // A 32-bit target beyond the limit.
    assert_eq!(run(&mut core, &[0x66, 0xe9, 0, 0, 1, 0]), Err(Leave::Fault));
    assert_eq!(core.fault.vector, 13);
}

#[test]
fn strings_use_their_segments_and_wrap_at_64_kib() {
    let mut core = core();
    for i in 0..16_u64 {
        core.store_linear(0x3_0000 + (0xfff8 + i) % 0x1_0000, 3, 0x40 + i as u8).unwrap();
    }
    (core.gpr[6], core.gpr[7], core.gpr[1]) = (0xfff8, 0x7_0010, 16);
    while run(&mut core, &[0xf3, 0xa4]) == Err(Leave::Again) {}
    assert_eq!((core.gpr[6], core.gpr[7], core.gpr[1]), (8, 0x7_0020, 0));
    for i in 0..16_u64 {
        assert_eq!(core.load_linear(0x4_0010 + i, 3), Ok(0x40 + i as u8));
    }
    // A word at offset 0xffff lies beyond the limit.
    core.gpr[6] = 0xffff;
    assert_eq!(run(&mut core, &[0xad]), Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.gpr[6]), (13, 0xffff));
}

#[test]
fn flags_are_pushed_and_popped_in_16_bits() {
    let mut core = core();
    core.push(0xffff_u16).unwrap();
    assert_eq!(run(&mut core, &[0x9d]), Err(Leave::End));
    assert_eq!(core.rflags(), 0x7fd7);
    run(&mut core, &[0x9c]).unwrap();
    assert_eq!(core.pop::<u16>(), Ok(0x7fd7));
}

#[test]
fn bounds_are_signed() {
    let mut core = core();
    core.store_linear(0x3_0010, 3, 0x0005_fffe_u32).unwrap();
    core.gpr[3] = 0x10;
    for (value, inside) in [(0xfffe_u64, true), (5, true), (6, false), (0xfffd, false)] {
        core.gpr[0] = value;
        let done = run(&mut core, &[0x62, 0x07]);
        assert_eq!(done, if inside { Ok(()) } else { Err(Leave::Fault) });
        assert!(inside || core.fault.vector == 5);
    }
}
