use x86_defs::rflags::DF;

use crate::exec::trial::{self, DATA, Numbers};
use crate::{Core, Leave};

const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

fn bytes(core: &mut Core, at: u64, len: u64) -> Vec<u8> {
    (at..at + len).map(|a| core.load_linear::<u8>(a, 3).unwrap()).collect()
}

/// Numbers the bytes of the data.
fn fill(core: &mut Core, pages: u64) {
    for i in 0..pages * 4096 {
        core.store_linear(DATA + i, 3, (i ^ i >> 8) as u8).unwrap();
    }
}

/// Executes until the instruction has completed; gives the number of executions.
fn complete(core: &mut Core, instruction: &[u8]) -> usize {
    let mut executions = 1;
    while trial::run(core, instruction) == Err(Leave::Again) {
        executions += 1;
        assert!(executions < 100_000, "no progress");
    }
    executions
}

#[test]
fn copies_equal_a_byte_loop_for_any_overlap_direction_and_size() {
    let mut numbers = Numbers(9);
    let mut core = trial::core();
    for (bytes_each, prefix, opcode) in [(1_u64, &[][..], 0xa4), (2, &[0x66], 0xa5), (4, &[], 0xa5), (8, &[0x48], 0xa5)]
    {
        let rep: Vec<u8> = match prefix {
            [0x48] => vec![0xf3, 0x48, opcode],
            _ => [prefix, &[0xf3, opcode]].concat(),
        };
        for round in 0..60 {
            fill(&mut core, 4);
            let from = 0x100 + numbers.next() % 0x1800;
            let to = match round % 3 {
                0 => 0x2000 + numbers.next() % 0x400,
                1 => from + numbers.next() % 40,
                _ => from - numbers.next() % 40,
            };
            let count = numbers.next() % 600 + 1;
            let down = numbers.next() & 1 == 1;
            let mut expected = bytes(&mut core, DATA, 0x4000);
            let (mut s, mut d) = (from, to);
            if down {
                (s, d) = (s + count * bytes_each, d + count * bytes_each);
            }
            core.rflags_rest = core.rflags_rest & !DF | if down { DF } else { 0 };
            (core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]) = (DATA + s, DATA + d, count);
            for _ in 0..count {
                let element: Vec<u8> = expected[s as usize..(s + bytes_each) as usize].to_vec();
                expected[d as usize..(d + bytes_each) as usize].copy_from_slice(&element);
                let step = if down { bytes_each.wrapping_neg() } else { bytes_each };
                (s, d) = (s.wrapping_add(step), d.wrapping_add(step));
            }
            complete(&mut core, &rep);
            assert_eq!((core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]), (DATA + s, DATA + d, 0));
            assert!(bytes(&mut core, DATA, 0x4000) == expected, "{bytes_each} {from:#x} {to:#x} {count} {down}");
        }
    }
}

#[test]
fn a_page_is_cleared_in_one_execution() {
    let mut core = trial::core();
    fill(&mut core, 2);
    (core.gpr[RDI], core.gpr[RCX]) = (DATA, 512);
    let before = core.stall;
    core.load_linear::<u8>(DATA, 3).unwrap();
    assert_eq!(complete(&mut core, &[0xf3, 0x48, 0xab]), 1);
    assert!(bytes(&mut core, DATA, 4096).iter().all(|&b| b == 0));
    assert_eq!(core.load_linear::<u8>(DATA + 4097, 3), Ok(0x11));
    assert!(core.stall >= before + 128 * crate::cost::STRING_BULK);
    core.gpr[0] = 0x1122_3344;
    (core.gpr[RDI], core.gpr[RCX]) = (DATA + 0xffe, 3);
    complete(&mut core, &[0xf3, 0xab]);
    assert_eq!(core.load_linear::<u64>(DATA + 0xffe, 3), Ok(0x1122_3344_1122_3344));
    assert_eq!(core.gpr[RDI], DATA + 0x100a);
}

#[test]
fn a_fault_in_the_middle_leaves_the_registers_at_the_element_that_failed() {
    let mut core = trial::core();
    fill(&mut core, 1);
    trial::unmap(&mut core, DATA + 0x3000);
    (core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]) = (DATA, DATA + 0x2ffd, 100);
    let leave = loop {
        match trial::run(&mut core, &[0xf3, 0xa5]) {
            Err(Leave::Again) => {}
            other => break other,
        }
    };
    assert_eq!(leave, Err(Leave::Fault));
    assert_eq!((core.fault.vector, core.fault.address), (14, DATA + 0x3000));
    // The first element would lie across both pages: nothing of it is written.
    assert_eq!((core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]), (DATA, DATA + 0x2ffd, 100));
    core.gpr[RDI] = DATA + 0x2ff8;
    while trial::run(&mut core, &[0xf3, 0xa5]) == Err(Leave::Again) {}
    assert_eq!((core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]), (DATA + 8, DATA + 0x3000, 98));
}

#[test]
fn searches_stop_behind_the_element_that_decides() {
    let mut core = trial::core();
    core.store_linear(DATA + 5000, 3, 0xaa_u8).unwrap();
    core.gpr[0] = 0xaa;
    (core.gpr[RDI], core.gpr[RCX]) = (DATA + 10, u64::MAX);
    assert_eq!(complete(&mut core, &[0xf2, 0xae]), 2);
    assert_eq!((core.gpr[RDI], core.gpr[RCX]), (DATA + 5001, u64::MAX - 4991));
    assert!(core.flags.zf());
    // Not found: the count runs out, and the flags are those of the last element.
    core.gpr[0] = 1;
    (core.gpr[RDI], core.gpr[RCX]) = (DATA, 100);
    complete(&mut core, &[0xf2, 0xae]);
    assert_eq!((core.gpr[RDI], core.gpr[RCX], core.flags.zf()), (DATA + 100, 0, false));
    // A count of zero does nothing, not even to the flags.
    core.flags.set_bits(0);
    complete(&mut core, &[0xf3, 0xae]);
    assert_eq!((core.gpr[RDI], core.flags.bits()), (DATA + 100, 0));
}

#[test]
fn comparisons_stop_at_the_first_difference() {
    let mut core = trial::core();
    core.store_linear(DATA + 0x1800, 3, 5_u8).unwrap();
    core.store_linear(DATA + 0x1900, 3, 9_u8).unwrap();
    core.store_linear(DATA + 0x2801, 3, 5_u8).unwrap();
    // 0x1000.. against 0x2001..: the bytes at 0x1800 and 0x2801 are equal, those at 0x1900 and 0x2901 are not.
    (core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]) = (DATA + 0x1000, DATA + 0x2001, 0x1000);
    complete(&mut core, &[0xf3, 0xa6]);
    assert_eq!((core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]), (DATA + 0x1901, DATA + 0x2902, 0x6ff));
    assert_eq!((core.flags.zf(), core.flags.cf()), (false, false));
}

#[test]
fn address_size_and_single_elements() {
    let mut core = trial::core();
    fill(&mut core, 1);
    (core.gpr[RSI], core.gpr[RDI]) = (0xffff_ffff_0000_0000 | DATA, DATA + 0x100);
    trial::run(&mut core, &[0x67, 0xa4]).unwrap();
    assert_eq!((core.gpr[RSI], core.gpr[RDI]), (DATA + 1, DATA + 0x101));
    core.rflags_rest |= DF;
    trial::run(&mut core, &[0x48, 0xad]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[RSI]), (0x0807_0605_0403_0201, DATA - 7));
    core.rflags_rest &= !DF;
    (core.gpr[RSI], core.gpr[RDI], core.gpr[RCX]) = (DATA, DATA + 0x200, 0xffff_ffff_0000_0003);
    complete(&mut core, &[0x67, 0xf3, 0xa4]);
    assert_eq!((core.gpr[RSI], core.gpr[RCX]), (DATA + 3, 0));
}

#[test]
fn segment_overrides_move_the_source_only() {
    let mut core = trial::core();
    fill(&mut core, 1);
    core.seg[x86_defs::segment::index::FS].base = 0x20;
    (core.gpr[RSI], core.gpr[RDI]) = (DATA, DATA + 0x200);
    trial::run(&mut core, &[0x64, 0xa4]).unwrap();
    assert_eq!(core.load_linear::<u8>(DATA + 0x200, 3), Ok(0x20));
}

#[test]
fn an_element_at_a_time_while_devices_are_emulated_or_traps_are_on() {
    let mut core = trial::core();
    (core.gpr[RDI], core.gpr[RCX]) = (DATA, 3);
    core.mmu.mmio.active = true;
    assert_eq!(complete(&mut core, &[0xf3, 0xaa]), 3);
    core.mmu.mmio.active = false;
    core.rflags_rest |= x86_defs::rflags::TF;
    core.gpr[RCX] = 4;
    assert_eq!(complete(&mut core, &[0xf3, 0xaa]), 4);
}
