use x86_defs::segment::index;

use super::once;
use crate::Core;
use crate::code::decode_one;
use crate::core::test;
use crate::exec::trial::{self, CODE, DATA, Numbers};
use crate::model::Model;
use crate::op::{CodeSize, Op};

/// First opcode bytes: everything that has a chained form, and its neighbours.
const OPCODES: [std::ops::RangeInclusive<u8>; 16] = [
    0x00..=0x25,
    0x28..=0x3d,
    0x50..=0x5f,
    0x63..=0x63,
    0x68..=0x6b,
    0x70..=0x8b,
    0x8d..=0x8d,
    0x90..=0x99,
    0xa8..=0xa9,
    0xb0..=0xc3,
    0xc6..=0xc7,
    0xc9..=0xc9,
    0xd0..=0xd3,
    0xe8..=0xe9,
    0xf6..=0xf7,
    0xfe..=0xff,
];
/// Second opcode bytes after 0F.
const TWO_BYTE: [std::ops::RangeInclusive<u8>; 6] =
    [0x1e..=0x1f, 0x40..=0x4f, 0x80..=0x9f, 0xaf..=0xb1, 0xb6..=0xb7, 0xbe..=0xcf];

fn pick(ranges: &[std::ops::RangeInclusive<u8>], n: u64) -> u8 {
    let all: Vec<u8> = ranges.iter().cloned().flatten().collect();
    all[n as usize % all.len()]
}

fn instruction(numbers: &mut Numbers) -> [u8; 15] {
    let mut bytes = [0x90; 15];
    let mut at = 0;
    let mut put = |byte: u8| {
        bytes[at] = byte;
        at += 1;
    };
    let r = numbers.0;
    numbers.next();
    match r >> 20 & 7 {
        0 => put(0x66),
        1 => put(0x65),
        2 => put(0x67),
        _ => {}
    }
    if r >> 23 & 1 != 0 {
        put(0x40 | (r >> 24 & 15) as u8);
    }
    if r >> 28 & 3 == 0 {
        put(0x0f);
        put(pick(&TWO_BYTE, r >> 32));
    } else {
        put(pick(&OPCODES, r >> 32));
    }
    let rest = numbers.next().to_le_bytes();
    rest.into_iter().for_each(&mut put);
    bytes
}

fn randomise(cores: [&mut Core; 2], seed: u64) {
    for core in cores {
        let mut numbers = Numbers(seed);
        for slot in 0..16 {
            let n = numbers.next();
            // Mostly addresses of data, many near the end of a page.
            core.gpr[slot] = match n >> 3 & 3 {
                0 => n,
                1 => DATA + 0xff0 + (n >> 8 & 0x1f),
                _ => DATA + 0x400 + (n >> 8 & 0x17ff),
            };
        }
        core.gpr[4] = DATA + 0x800 + (numbers.next() & 0x1ff8);
        core.flags.set_bits(numbers.next());
        core.rip = CODE;
        core.fault = crate::core::Fault::default();
        for at in (DATA..DATA + 0x3000).step_by(8) {
            test::poke(core, at, numbers.next());
        }
    }
}

fn state(core: &Core) -> impl PartialEq + std::fmt::Debug + use<> {
    let memory: Vec<u64> = (DATA..DATA + 0x3000).step_by(8).map(|at| test::peek(core, at)).collect();
    (core.gpr, core.flags.bits(), core.rflags_rest, core.rip, core.fault, core.mmu.count, core.stall, memory)
}

#[test]
fn a_chained_form_does_what_the_complete_form_does() {
    let (mut one, mut other) = (trial::core(), trial::core());
    for core in [&mut one, &mut other] {
        core.seg[index::GS].base = 0x20;
        trial::unmap(core, DATA + 0x2000);
        // Read-only.
        test::poke(core, test::TABLES + 0x3000 + (DATA >> 12) * 8 + 24, (DATA + 0x3000) | 5);
    }
    let mut numbers = Numbers(42);
    let mut own = 0;
    for i in 0..60_000 {
        let bytes = instruction(&mut numbers);
        let op: Op = decode_one(&bytes, CodeSize::Bits64, &Model::default())[0];
        own += u32::from(op.chain as usize != once as *const () as usize);
        if i % 16 == 0 {
            randomise([&mut one, &mut other], numbers.next());
        }
        let done = (op.exec)(&mut one, &op);
        let stop = (op.chain)(&mut other, &op, [].iter());
        assert_eq!(done.err().map(|leave| (leave, 0)), stop.leave(), "{bytes:02x?}");
        if i % 16 == 15 || done.is_err() {
            assert_eq!(state(&one), state(&other), "{bytes:02x?}");
        }
        assert_eq!(one.gpr, other.gpr, "{bytes:02x?}");
        assert_eq!(one.flags.bits(), other.flags.bits(), "{bytes:02x?}");
    }
    assert!(own > 30_000, "{own} of the instructions have a chained form of their own");
}

#[test]
fn a_chain_stops_at_the_op_that_fails() {
    let mut core = trial::core();
    let mut ops: Vec<Op> = [[0x48, 0xff, 0xc0].as_slice(), &[0x48, 0x8b, 0x03], &[0x48, 0xff, 0xc0]]
        .iter()
        .map(|bytes| decode_one(bytes, CodeSize::Bits64, &Model::default())[0])
        .collect();
    for (i, op) in ops.iter_mut().enumerate() {
        op.idx = i as u8;
    }
    trial::unmap(&mut core, DATA);
    core.gpr[3] = DATA;
    let stop = super::next(&mut core, ops.iter());
    assert_eq!((stop.leave(), core.gpr[0]), (Some((crate::Leave::Fault, 1)), 1));
}

#[test]
fn a_comparison_and_its_branch_do_in_one_go_what_they_do_in_two() {
    use crate::code::decode::{Decoded, decode_block};
    use crate::op::{BLOCK_RIP, Stop};

    let (mut one, mut other) = (trial::core(), trial::core());
    let mut numbers = Numbers(7);
    // CMP r,imm; CMP r,r; CMP [rbx],imm; TEST r,imm; TEST r,r; of 8, 16, 32 and 64 bits.
    let comparisons: [&[u8]; 12] = [
        &[0x3c, 0x7f],
        &[0x66, 0x83, 0xf8, 0xff],
        &[0x83, 0xf8, 0x05],
        &[0x48, 0x83, 0xf8, 0x05],
        &[0x38, 0xc8],
        &[0x39, 0xc8],
        &[0x48, 0x39, 0xc8],
        &[0x48, 0x83, 0x3b, 0x10],
        &[0x80, 0x3b, 0x10],
        &[0xa8, 0x81],
        &[0x85, 0xc0],
        &[0x48, 0x85, 0xc8],
    ];
    for round in 0..4_000 {
        let comparison = comparisons[round % comparisons.len()];
        let code = (numbers.next() & 15) as u8;
        let bytes = [comparison, &[0x70 | code, 0x40]].concat();
        let (frame, _) = one.memory.page(silicon_memory::HostPhysical(CODE)).expect("memory");
        frame.write(0, &bytes);
        let Decoded::Block(ops) = decode_block(frame, 0, CodeSize::Bits64, 32, &Model::default()) else {
            panic!("the block is whole")
        };
        assert_eq!(ops.len(), 2);
        assert_ne!(
            ops[0].chain as usize,
            decode_one(comparison, CodeSize::Bits64, &Model::default())[0].chain as usize,
            "{bytes:02x?}"
        );
        for core in [&mut one, &mut other] {
            core.rip = CODE;
            core.gpr[BLOCK_RIP as usize] = CODE;
            // The page of the memory operand is there in one round and absent from the look-up in another.
            core.gpr[3] = DATA + (round as u64 % 7) * 0x1000;
        }
        let (a, b) = (numbers.next(), if round % 3 == 0 { 5 } else { numbers.next() });
        for core in [&mut one, &mut other] {
            (core.gpr[0], core.gpr[1]) = if round % 5 == 0 { (a, a) } else { (b, a) };
        }
        assert_eq!((ops[0].exec)(&mut one, &ops[0]), Ok(()));
        let branched = (ops[1].exec)(&mut one, &ops[1]);
        let stop = super::next(&mut other, ops.iter());
        assert_eq!(stop, if branched.is_ok() { Stop::END } else { Stop::BRANCH }, "{bytes:02x?}");
        assert_eq!((one.rip, one.flags.bits(), one.gpr), (other.rip, other.flags.bits(), other.gpr), "{bytes:02x?}");
    }
}
