use x86_defs::rflags::{CF, PF, SF, STATUS, ZF};

use crate::exec::trial::{self, DATA, Numbers};

#[test]
fn bit_tests_of_registers_take_the_number_modulo_the_size() {
    let mut core = trial::core();
    for (opcode, expected) in [(0xa3, 0b1010), (0xab, 0b1010), (0xb3, 0b0010), (0xbb, 0b0010)] {
        (core.gpr[0], core.gpr[1]) = (0b1010, 32 + 3);
        core.flags.set_bits(STATUS & !CF);
        trial::run(&mut core, &[0x0f, opcode, 0xc8]).unwrap();
        assert_eq!((core.gpr[0], core.flags.bits()), (expected, STATUS), "{opcode:#x}");
    }
    // btc rax, 63
    trial::run(&mut core, &[0x48, 0x0f, 0xba, 0xf8, 63]).unwrap();
    assert_eq!((core.gpr[0], core.flags.cf()), (1 << 63 | 0b0010, false));
}

#[test]
fn bit_strings_in_memory_reach_beyond_the_operand_in_both_directions() {
    let mut core = trial::core();
    core.gpr[3] = DATA + 0x1000;
    for number in [0_i64, 5, 31, 32, 1000, -1, -32, -33, -4000] {
        core.gpr[1] = number as u64;
        let byte = (DATA + 0x1000).wrapping_add_signed(number >> 3);
        trial::run(&mut core, &[0xf0, 0x48, 0x0f, 0xab, 0x0b]).unwrap();
        assert!(!core.flags.cf());
        assert_eq!(core.load_linear::<u8>(byte, 3), Ok(1 << (number & 7)), "{number}");
        trial::run(&mut core, &[0x0f, 0xa3, 0x0b]).unwrap();
        assert!(core.flags.cf());
        core.gpr[1] &= 0xffff;
        trial::run(&mut core, &[0x66, 0x0f, 0xb3, 0x0b]).unwrap();
        assert!(core.flags.cf());
        assert_eq!(core.load_linear::<u8>(byte, 3), Ok(0), "{number}");
    }
    // With an immediate the number stays inside of the operand.
    core.store_linear(DATA + 0x1000, 3, 2_u32).unwrap();
    trial::run(&mut core, &[0x0f, 0xba, 0x23, 33]).unwrap();
    assert!(core.flags.cf());
}

#[test]
fn scans_leave_the_destination_of_a_zero_source() {
    let mut core = trial::core();
    core.gpr[0] = 0xffff_ffff_1234_5678;
    for bytes in [&[0x0f, 0xbc, 0xc1][..], &[0x0f, 0xbd, 0xc1], &[0x66, 0x0f, 0xbc, 0xc1]] {
        trial::run(&mut core, bytes).unwrap();
        assert_eq!((core.gpr[0], core.flags.zf()), (0xffff_ffff_1234_5678, true));
    }
    core.gpr[1] = 0x8000_0000_0008_0000;
    trial::run(&mut core, &[0x48, 0x0f, 0xbc, 0xc1]).unwrap();
    assert_eq!((core.gpr[0], core.flags.zf()), (19, false));
    trial::run(&mut core, &[0x48, 0x0f, 0xbd, 0xc1]).unwrap();
    assert_eq!(core.gpr[0], 63);
}

#[test]
fn counts_and_their_flags() {
    let mut core = trial::core();
    for (source, lzcnt, tzcnt, popcnt) in [(0_u64, 16, 16, 0), (0x8000, 0, 15, 1), (0x12_0007, 13, 0, 3)] {
        core.gpr[1] = source;
        core.flags.set_bits(STATUS);
        trial::run(&mut core, &[0x66, 0xf3, 0x0f, 0xbd, 0xc1]).unwrap();
        let flags = |count: u64| if count == 0 { ZF } else { 0 } | if count == 16 { CF } else { 0 };
        assert_eq!((core.gpr[0], core.flags.bits()), (lzcnt, flags(lzcnt)));
        trial::run(&mut core, &[0x66, 0xf3, 0x0f, 0xbc, 0xc1]).unwrap();
        assert_eq!((core.gpr[0], core.flags.bits()), (tzcnt, flags(tzcnt)));
        trial::run(&mut core, &[0x66, 0xf3, 0x0f, 0xb8, 0xc1]).unwrap();
        assert_eq!((core.gpr[0], core.flags.bits()), (popcnt, if popcnt == 0 { ZF } else { 0 }));
    }
}

#[test]
fn crc32_is_the_castagnoli_checksum() {
    let mut core = trial::core();
    core.gpr[0] = u64::MAX;
    for byte in b"123456789" {
        core.gpr[1] = u64::from(*byte);
        trial::run(&mut core, &[0xf2, 0x0f, 0x38, 0xf0, 0xc1]).unwrap();
    }
    assert_eq!(core.gpr[0] ^ 0xffff_ffff, 0xe306_9283);
    core.gpr[0] = 0xffff_ffff;
    core.gpr[1] = u64::from_le_bytes(*b"12345678");
    trial::run(&mut core, &[0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xc1]).unwrap();
    core.gpr[1] = u64::from(b'9');
    trial::run(&mut core, &[0xf2, 0x0f, 0x38, 0xf0, 0xc1]).unwrap();
    assert_eq!(core.gpr[0] ^ 0xffff_ffff, 0xe306_9283);
}

#[test]
fn bmi_instructions_and_their_flags() {
    let mut core = trial::core();
    core.gpr[1] = 0xff00_0000_0000_0ff0;
    core.gpr[2] = 0x0804;
    for (bytes, expected, flags) in [
        // blsi, blsmsk, blsr of rcx
        (&[0xc4, 0xe2, 0xf8, 0xf3, 0xd9][..], 0x10, CF),
        (&[0xc4, 0xe2, 0xf8, 0xf3, 0xd1], 0x1f, 0),
        (&[0xc4, 0xe2, 0xf8, 0xf3, 0xc9], 0xff00_0000_0000_0fe0, SF),
        // andn rax, rcx, rdx; bextr rax, rcx, rdx; bzhi rax, rcx, rdx
        (&[0xc4, 0xe2, 0xf0, 0xf2, 0xc2], 0x0004, 0),
        (&[0xc4, 0xe2, 0xe8, 0xf7, 0xc1], 0xff, 0),
        (&[0xc4, 0xe2, 0xe8, 0xf5, 0xc1], 0, ZF),
    ] {
        core.flags.set_bits(STATUS);
        trial::run(&mut core, bytes).unwrap();
        // PF and AF are undefined.
        assert_eq!((core.gpr[0], core.flags.bits() & !(PF | 0x10)), (expected, flags), "{bytes:02x?}");
    }
    core.gpr[2] = 64;
    trial::run(&mut core, &[0xc4, 0xe2, 0xe8, 0xf5, 0xc1]).unwrap();
    assert_eq!((core.gpr[0], core.flags.cf()), (core.gpr[1], true));
}

#[test]
fn deposit_undoes_extract() {
    let mut core = trial::core();
    let mut numbers = Numbers(8);
    for _ in 0..200 {
        let (value, mask) = (numbers.next(), numbers.next());
        (core.gpr[1], core.gpr[2]) = (value, mask);
        // pext rax, rcx, rdx; pdep rax, rax, rdx
        trial::run(&mut core, &[0xc4, 0xe2, 0xf2, 0xf5, 0xc2]).unwrap();
        let mut expected = 0;
        let mut to = 0;
        for i in 0..64 {
            if mask >> i & 1 != 0 {
                expected |= (value >> i & 1) << to;
                to += 1;
            }
        }
        assert_eq!(core.gpr[0], expected);
        trial::run(&mut core, &[0xc4, 0xe2, 0xfb, 0xf5, 0xc2]).unwrap();
        assert_eq!(core.gpr[0], value & mask);
    }
}
