use x86_defs::rflags::{CF, STATUS, ZF};

use crate::exec::trial::{self, DATA, Numbers};
use crate::op::CodeSize;

#[test]
fn thirty_two_bit_writes_clear_the_upper_half_and_smaller_ones_do_not() {
    let mut core = trial::core();
    core.gpr[0] = u64::MAX;
    trial::run(&mut core, &[0xb0, 0x12]).unwrap();
    assert_eq!(core.gpr[0], 0xffff_ffff_ffff_ff12);
    trial::run(&mut core, &[0x66, 0xb8, 0x34, 0x12]).unwrap();
    assert_eq!(core.gpr[0], 0xffff_ffff_ffff_1234);
    trial::run(&mut core, &[0xb8, 1, 0, 0, 0x80]).unwrap();
    assert_eq!(core.gpr[0], 0x8000_0001);
    trial::run(&mut core, &[0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff]).unwrap();
    assert_eq!(core.gpr[0], u64::MAX);
    trial::run(&mut core, &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    assert_eq!(core.gpr[0], 0x0807_0605_0403_0201);
}

#[test]
fn sixty_four_bit_offsets_are_not_truncated() {
    let mut core = trial::core();
    core.gpr[0] = 0x1122_3344_5566_7788;
    trial::run(&mut core, &[0x48, 0xa3, 0x10, 0, 0x01, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!(core.load_linear::<u64>(DATA + 0x10, 3), Ok(0x1122_3344_5566_7788));
    core.gpr[0] = 0;
    trial::run(&mut core, &[0xa0, 0x11, 0, 0x01, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!(core.gpr[0], 0x77);
    let high = trial::op(CodeSize::Bits64, &[0xa1, 0, 0, 0, 0, 0x12, 0x34, 0xff, 0xff]).unwrap();
    assert_eq!(high.imm, 0xffff_3412_0000_0000);
}

#[test]
fn addresses_wrap_at_the_address_size() {
    let mut core = trial::core();
    (core.gpr[0], core.gpr[1]) = (0xffff_ffff_ffff_fffe, 1);
    // lea rdx, [rax+rcx*4+0x10]; lea rdx, [eax+ecx*4+0x10]; lea dx, [rax+rcx*4+0x10]
    trial::run(&mut core, &[0x48, 0x8d, 0x54, 0x88, 0x10]).unwrap();
    assert_eq!(core.gpr[2], 0x12);
    core.gpr[0] = 0x5_ffff_fffe;
    trial::run(&mut core, &[0x67, 0x48, 0x8d, 0x54, 0x88, 0x10]).unwrap();
    assert_eq!(core.gpr[2], 0x12);
    core.gpr[2] = u64::MAX;
    trial::run(&mut core, &[0x66, 0x8d, 0x54, 0x88, 0x10]).unwrap();
    assert_eq!(core.gpr[2], 0xffff_ffff_ffff_0012);
    // lea eax, [rip+8]
    trial::run(&mut core, &[0x8d, 0x05, 8, 0, 0, 0]).unwrap();
    assert_eq!(core.gpr[0], trial::CODE + 6 + 8);
}

#[test]
fn extensions_by_size() {
    let mut core = trial::core();
    core.gpr[1] = 0x1122_3344_8566_f788;
    for (bytes, expected) in [
        (&[0x0f, 0xb6, 0xc1][..], 0x88),
        (&[0x0f, 0xb6, 0xc5], 0xf7),
        (&[0x0f, 0xb7, 0xc1], 0xf788),
        (&[0x48, 0x0f, 0xbe, 0xc1], 0xffff_ffff_ffff_ff88),
        (&[0x0f, 0xbf, 0xc1], 0xffff_f788),
        (&[0x48, 0x63, 0xc1], 0xffff_ffff_8566_f788),
        (&[0x63, 0xc1], 0x8566_f788),
        (&[0x66, 0x0f, 0xbe, 0xc1], 0x1234_5678_9abc_ff88),
    ] {
        core.gpr[0] = 0x1234_5678_9abc_def0;
        trial::run(&mut core, bytes).unwrap();
        assert_eq!(core.gpr[0], expected, "{bytes:02x?}");
    }
    core.gpr[0] = 0x80;
    for (bytes, expected) in
        [(&[0x66, 0x98][..], 0xff80), (&[0x98], 0xffff_ff80), (&[0x48, 0x98], 0xffff_ffff_ffff_ff80)]
    {
        trial::run(&mut core, bytes).unwrap();
        assert_eq!(core.gpr[0], expected);
    }
    trial::run(&mut core, &[0x99]).unwrap();
    assert_eq!(core.gpr[2], 0xffff_ffff);
    trial::run(&mut core, &[0x48, 0x99]).unwrap();
    assert_eq!(core.gpr[2], u64::MAX);
}

#[test]
fn all_sixteen_conditions_agree_in_setcc_cmovcc_and_their_definition() {
    use x86_defs::rflags::{OF, PF, SF};
    let mut core = trial::core();
    let mut numbers = Numbers(3);
    for _ in 0..200 {
        let f = numbers.next() & STATUS;
        let is = |bit: u64| f & bit != 0;
        let base =
            [is(OF), is(CF), is(ZF), is(CF) || is(ZF), is(SF), is(PF), is(SF) != is(OF), is(ZF) || is(SF) != is(OF)];
        for code in 0..16_u8 {
            let expected = base[usize::from(code >> 1)] != (code & 1 == 1);
            core.flags.set_bits(f);
            (core.gpr[0], core.gpr[1]) = (u64::MAX << 1, 77);
            trial::run(&mut core, &[0x0f, 0x90 | code, 0xc0]).unwrap();
            assert_eq!(core.gpr[0] & 0xff, u64::from(expected));
            trial::run(&mut core, &[0x0f, 0x40 | code, 0xc1]).unwrap();
            let kept = 0xffff_ff00 | u64::from(expected);
            assert_eq!(core.gpr[0], if expected { 77 } else { kept });
        }
    }
}

#[test]
fn exchanges_and_byte_swaps() {
    let mut core = trial::core();
    (core.gpr[0], core.gpr[1], core.gpr[3]) = (0x1122_3344_5566_7788, 0xff, DATA);
    trial::run(&mut core, &[0x48, 0x91]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[1]), (0xff, 0x1122_3344_5566_7788));
    trial::run(&mut core, &[0x0f, 0xc9]).unwrap();
    assert_eq!(core.gpr[1], 0x8877_6655);
    trial::run(&mut core, &[0x48, 0x0f, 0xc9]).unwrap();
    assert_eq!(core.gpr[1], 0x5566_7788_0000_0000);
    // movbe [rbx], ecx after mov ecx; xchg [rbx], ah; xlat
    core.gpr[1] = 0x0102_0304;
    trial::run(&mut core, &[0x0f, 0x38, 0xf1, 0x0b]).unwrap();
    assert_eq!(core.load_linear::<u32>(DATA, 3), Ok(0x0403_0201));
    trial::run(&mut core, &[0x86, 0x23]).unwrap();
    assert_eq!((core.gpr[0], core.load_linear::<u8>(DATA, 3)), (0x01ff, Ok(0)));
    core.gpr[0] = 0x102;
    trial::run(&mut core, &[0xd7]).unwrap();
    assert_eq!(core.gpr[0], 0x103);
}

#[test]
fn decimal_adjustments() {
    let mut core = trial::core();
    let run = |core: &mut crate::Core, bytes: &[u8]| {
        let op = trial::op(CodeSize::Bits32, bytes).unwrap();
        (op.exec)(core, &op)
    };
    // 79 + 35 = 114 in packed decimal.
    core.gpr[0] = 0x79;
    core.gpr[1] = 0x35;
    run(&mut core, &[0x00, 0xc8]).unwrap();
    run(&mut core, &[0x27]).unwrap();
    assert_eq!((core.gpr[0], core.flags.cf()), (0x14, true));
    // 35 - 47 = -12 (88 with a borrow).
    (core.gpr[0], core.gpr[1]) = (0x35, 0x47);
    run(&mut core, &[0x28, 0xc8]).unwrap();
    run(&mut core, &[0x2f]).unwrap();
    assert_eq!((core.gpr[0], core.flags.cf(), core.flags.af()), (0x88, true, true));
    core.gpr[0] = 0x000b;
    core.flags.set_bits(0);
    run(&mut core, &[0x37]).unwrap();
    assert_eq!((core.gpr[0], core.flags.cf()), (0x0101, true));
    core.gpr[0] = 63;
    run(&mut core, &[0xd4, 10]).unwrap();
    assert_eq!(core.gpr[0], 0x0603);
    run(&mut core, &[0xd5, 10]).unwrap();
    assert_eq!(core.gpr[0], 63);
    assert!(run(&mut core, &[0xd4, 0]).is_err());
    assert_eq!(core.fault.vector, 0);
}

#[test]
fn flag_instructions_change_only_their_flag() {
    let mut core = trial::core();
    core.flags.set_bits(STATUS & !CF);
    trial::run(&mut core, &[0xf5]).unwrap();
    assert_eq!(core.flags.bits(), STATUS);
    trial::run(&mut core, &[0x9f]).unwrap();
    assert_eq!(core.gpr[0], 0xd700);
    core.gpr[0] = 0x4200;
    trial::run(&mut core, &[0x9e]).unwrap();
    assert_eq!(core.flags.bits(), ZF | x86_defs::rflags::OF);
    trial::run(&mut core, &[0xfd]).unwrap();
    assert_eq!(core.rflags(), 0x602 | ZF | x86_defs::rflags::OF);
}
