use x86_defs::rflags::{AF, CF, OF, PF, SF, STATUS, ZF};

use crate::exec::trial::{self, DATA, Numbers};
use crate::op::CodeSize;

/// The four operand sizes: bits, prefix, and what to add to the opcode of the 8-bit form.
const SIZES: [(u32, &[u8], u8); 4] = [(8, &[], 0), (16, &[0x66], 1), (32, &[], 1), (64, &[0x48], 1)];

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn wide(value: u64, bits: u32) -> i128 {
    let drop = 64 - bits;
    i128::from(((value << drop) as i64) >> drop)
}

/// What a write of `result` leaves in a register that held `old`.
fn merged(old: u64, result: u64, bits: u32) -> u64 {
    match bits {
        8 | 16 => old & !mask(bits) | result & mask(bits),
        _ => result & mask(bits),
    }
}

fn result_flags(result: u64, bits: u32) -> u64 {
    let r = result & mask(bits);
    let zf = if r == 0 { ZF } else { 0 };
    let sf = if wide(result, bits) < 0 { SF } else { 0 };
    let pf = if (r & 0xff).count_ones().is_multiple_of(2) { PF } else { 0 };
    zf | sf | pf
}

/// Sum or difference with its six flags, from arithmetic in 128 bits.
fn sum(a: u64, b: u64, carry: u64, bits: u32, subtract: bool) -> (u64, u64) {
    let (ua, ub, c) = (i128::from(a & mask(bits)), i128::from(b & mask(bits)), i128::from(carry));
    let sign = if subtract { -1 } else { 1 };
    let unsigned = ua + sign * (ub + c);
    let signed = wide(a, bits) + sign * (wide(b, bits) + c);
    let nibble = (ua & 15) + sign * ((ub & 15) + c);
    let result = unsigned as u64 & mask(bits);
    let mut flags = result_flags(result, bits);
    if unsigned < 0 || unsigned > i128::from(mask(bits)) {
        flags |= CF;
    }
    if signed != wide(result, bits) {
        flags |= OF;
    }
    if !(0..=15).contains(&nibble) {
        flags |= AF;
    }
    (result, flags)
}

fn model(number: u8, a: u64, b: u64, cf: bool, bits: u32) -> (u64, u64) {
    let logic = |r: u64| (r & mask(bits), result_flags(r, bits));
    match number {
        0 => sum(a, b, 0, bits, false),
        1 => logic(a | b),
        2 => sum(a, b, u64::from(cf), bits, false),
        3 => sum(a, b, u64::from(cf), bits, true),
        4 => logic(a & b),
        6 => logic(a ^ b),
        _ => sum(a, b, 0, bits, true),
    }
}

fn instruction(prefix: &[u8], rest: &[u8]) -> Vec<u8> {
    [prefix, rest].concat()
}

#[test]
fn add_or_adc_sbb_and_sub_xor_cmp_match_wide_arithmetic() {
    let mut numbers = Numbers(1);
    let mut core = trial::core();
    for number in 0..8_u8 {
        for (bits, prefix, wide_form) in SIZES {
            let opcode = number * 8 + wide_form;
            let register = instruction(prefix, &[opcode, 0xc8]);
            let to_memory = instruction(prefix, &[opcode, 0x0b]);
            let from_memory = instruction(prefix, &[opcode + 2, 0x03]);
            for _ in 0..400 {
                let (a, b, old) = (numbers.next(), numbers.next(), numbers.next() & STATUS);
                let (result, flags) = model(number, a, b, old & CF != 0, bits);
                let kept = if number == 7 { a & mask(bits) } else { result };
                core.gpr[0] = a;
                core.gpr[1] = b;
                core.flags.set_bits(old);
                trial::run(&mut core, &register).unwrap();
                let context = format!("{register:02x?} {a:#x} {b:#x}");
                assert_eq!(core.flags.bits(), flags, "{context}");
                assert_eq!(core.gpr[0], if number == 7 { a } else { merged(a, result, bits) }, "{context}");

                core.gpr[3] = DATA + 0x123;
                core.store_linear(DATA + 0x123, 3, a).unwrap();
                core.flags.set_bits(old);
                trial::run(&mut core, &to_memory).unwrap();
                assert_eq!(core.flags.bits(), flags, "{context}");
                let stored: u64 = core.load_linear(DATA + 0x123, 3).unwrap();
                assert_eq!(stored, a & !mask(bits) | kept, "{context}");

                core.gpr[0] = a;
                core.store_linear(DATA + 0x123, 3, b).unwrap();
                core.flags.set_bits(old);
                trial::run(&mut core, &from_memory).unwrap();
                assert_eq!(core.flags.bits(), flags, "{context}");
            }
        }
    }
}

#[test]
fn immediates_are_sign_extended() {
    let mut core = trial::core();
    core.gpr[0] = 5;
    trial::run(&mut core, &[0x48, 0x83, 0xc0, 0xfe]).unwrap();
    assert_eq!((core.gpr[0], core.flags.bits() & CF), (3, CF));
    trial::run(&mut core, &[0x48, 0x05, 0xff, 0xff, 0xff, 0xff]).unwrap();
    assert_eq!(core.gpr[0], 2);
    trial::run(&mut core, &[0x66, 0x83, 0xe8, 0xff]).unwrap();
    assert_eq!((core.gpr[0], core.flags.bits()), (3, CF | AF | PF));
}

#[test]
fn one_operand_forms_match_wide_arithmetic() {
    let mut numbers = Numbers(2);
    let mut core = trial::core();
    for (bits, prefix, wide_form) in SIZES {
        for _ in 0..400 {
            let (a, old) = (numbers.next(), numbers.next() & STATUS);
            for (opcode, modrm, expected) in [
                (0xfe, 0xc0, sum(a, 1, 0, bits, false)),
                (0xfe, 0xc8, sum(a, 1, 0, bits, true)),
                (0xf6, 0xd0, (!a, old)),
                (0xf6, 0xd8, sum(0, a, 0, bits, true)),
            ] {
                core.gpr[0] = a;
                core.flags.set_bits(old);
                trial::run(&mut core, &instruction(prefix, &[opcode + wide_form, modrm])).unwrap();
                let flags = if opcode == 0xfe { expected.1 & !CF | old & CF } else { expected.1 };
                assert_eq!(core.gpr[0], merged(a, expected.0, bits), "{modrm:#x} {a:#x}");
                assert_eq!(core.flags.bits(), flags, "{modrm:#x} {bits} {a:#x}");
            }
        }
    }
}

#[test]
fn high_byte_registers_are_bits_8_to_15() {
    let mut core = trial::core();
    core.gpr[0] = 0x1122_3344;
    core.gpr[1] = 0x5566_7788;
    // add ah, cl; xor ch, al
    trial::run(&mut core, &[0x00, 0xcc]).unwrap();
    assert_eq!(core.gpr[0], 0x1122_bb44);
    trial::run(&mut core, &[0x30, 0xc5]).unwrap();
    assert_eq!(core.gpr[1], 0x5566_3388);
}

#[test]
fn xadd_exchanges_and_adds() {
    let mut core = trial::core();
    core.gpr[0] = 0xffff_ffff_0000_0002;
    core.gpr[1] = 0x1111_1111_ffff_ffff;
    trial::run(&mut core, &[0x0f, 0xc1, 0xc8]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[1], core.flags.bits()), (1, 2, CF | AF));
    trial::run(&mut core, &[0x0f, 0xc1, 0xc9]).unwrap();
    assert_eq!(core.gpr[1], 4);
    core.gpr[3] = DATA;
    core.store_linear(DATA, 3, 10_u64).unwrap();
    trial::run(&mut core, &[0xf0, 0x48, 0x0f, 0xc1, 0x0b]).unwrap();
    assert_eq!((core.gpr[1], core.load_linear::<u64>(DATA, 3)), (10, Ok(14)));
}

#[test]
fn compare_and_exchange_writes_the_accumulator_only_when_it_differs() {
    let mut core = trial::core();
    core.gpr[3] = DATA;
    core.gpr[0] = 0xaaaa_bbbb_0000_0007;
    core.gpr[1] = 9;
    core.store_linear(DATA, 3, 7_u64).unwrap();
    trial::run(&mut core, &[0xf0, 0x0f, 0xb1, 0x0b]).unwrap();
    assert_eq!(core.load_linear::<u64>(DATA, 3), Ok(9));
    assert_eq!(core.gpr[0], 0xaaaa_bbbb_0000_0007);
    assert!(core.flags.zf());
    trial::run(&mut core, &[0xf0, 0x0f, 0xb1, 0x0b]).unwrap();
    assert_eq!((core.gpr[0], core.flags.zf(), core.flags.cf()), (9, false, true));
}

#[test]
fn double_width_compare_and_exchange() {
    let mut core = trial::core();
    core.gpr[6] = DATA + 16;
    core.store_linear(DATA + 16, 3, 5_u128 << 64 | 6).unwrap();
    (core.gpr[0], core.gpr[2], core.gpr[3], core.gpr[1]) = (6, 5, 1, 2);
    core.flags.set_bits(STATUS & !ZF);
    trial::run(&mut core, &[0xf0, 0x48, 0x0f, 0xc7, 0x0e]).unwrap();
    assert_eq!(core.load_linear::<u128>(DATA + 16, 3), Ok(2 << 64 | 1));
    assert_eq!(core.flags.bits(), STATUS);
    trial::run(&mut core, &[0x0f, 0xc7, 0x0e]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[2], core.flags.bits()), (1, 0, STATUS & !ZF));
    core.gpr[6] += 8;
    assert_eq!(trial::run(&mut core, &[0x48, 0x0f, 0xc7, 0x0e]), Err(crate::Leave::Fault));
    assert_eq!(core.fault.vector, 13);
}

#[test]
fn carry_and_overflow_chains_do_not_touch_each_other() {
    let mut core = trial::core();
    core.gpr[0] = u64::MAX;
    core.gpr[1] = 1;
    core.flags.set_bits(OF | SF);
    // adcx rax, rcx; adox rax, rcx
    trial::run(&mut core, &[0x66, 0x48, 0x0f, 0x38, 0xf6, 0xc1]).unwrap();
    assert_eq!((core.gpr[0], core.flags.bits()), (0, OF | SF | CF));
    trial::run(&mut core, &[0xf3, 0x48, 0x0f, 0x38, 0xf6, 0xc1]).unwrap();
    assert_eq!((core.gpr[0], core.flags.bits()), (2, SF | CF));
}

#[test]
fn lock_is_an_invalid_opcode_where_it_is_not_allowed() {
    let is = |bytes: &[u8]| trial::op(CodeSize::Bits64, bytes).is_some();
    assert!(is(&[0xf0, 0x01, 0x0b]), "add [rbx], ecx");
    assert!(!is(&[0xf0, 0x01, 0xc8]), "add eax, ecx");
    assert!(!is(&[0xf0, 0x03, 0x0b]), "add ecx, [rbx]");
    assert!(!is(&[0xf0, 0x39, 0x0b]), "cmp [rbx], ecx");
    assert!(!is(&[0xf0, 0x89, 0x0b]), "mov [rbx], ecx");
    assert!(is(&[0xf0, 0x87, 0x0b]), "xchg [rbx], ecx");
    assert!(!is(&[0xf0, 0x90]), "nop");
    assert!(!is(&[0xf0, 0xff, 0x33]), "push [rbx]");
}
