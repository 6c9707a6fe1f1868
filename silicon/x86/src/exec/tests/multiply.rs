use x86_defs::rflags::{CF, OF, STATUS};

use crate::Leave;
use crate::exec::trial::{self, DATA, Numbers};

const SIZES: [(u32, &[u8], u8); 4] = [(8, &[], 0), (16, &[0x66], 1), (32, &[], 1), (64, &[0x48], 1)];

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn wide(value: u64, bits: u32) -> i128 {
    let drop = 64 - bits;
    i128::from(((value << drop) as i64) >> drop)
}

/// The double-width accumulator.
fn pair(core: &crate::Core, bits: u32) -> u128 {
    match bits {
        8 => u128::from(core.gpr[0] & 0xffff),
        _ => u128::from(core.gpr[2] & mask(bits)) << bits | u128::from(core.gpr[0] & mask(bits)),
    }
}

#[test]
fn products_match_wide_arithmetic() {
    let mut core = trial::core();
    let mut numbers = Numbers(6);
    for (bits, prefix, wide_form) in SIZES {
        let keep = u128::MAX >> (128 - 2 * bits);
        for _ in 0..400 {
            let (a, b) = (numbers.next(), numbers.next());
            for (modrm, product) in [
                (0xe3, u128::from(a & mask(bits)) * u128::from(b & mask(bits))),
                (0xeb, (wide(a, bits) * wide(b, bits)) as u128),
            ] {
                (core.gpr[0], core.gpr[3]) = (a, b);
                trial::run(&mut core, &[prefix, &[0xf6 + wide_form, modrm][..]].concat()).unwrap();
                assert_eq!(pair(&core, bits), product & keep, "{a:#x} {b:#x}");
                let fits =
                    if modrm == 0xe3 { product >> bits == 0 } else { wide(product as u64, bits) as u128 == product };
                let expected = if fits { 0 } else { CF | OF };
                assert_eq!(core.flags.bits() & (CF | OF), expected, "{a:#x} {b:#x}");
                if bits > 8 && modrm == 0xeb {
                    core.gpr[0] = a;
                    core.flags.set_bits(!expected & STATUS);
                    trial::run(&mut core, &[prefix, &[0x0f, 0xaf, 0xc3][..]].concat()).unwrap();
                    assert_eq!(core.gpr[0] & mask(bits), product as u64 & mask(bits));
                    assert_eq!(core.flags.bits() & (CF | OF), expected);
                }
            }
        }
    }
    core.gpr[3] = 7;
    trial::run(&mut core, &[0x48, 0x6b, 0xc3, 0xfe]).unwrap();
    assert_eq!(core.gpr[0] as i64, -14);
    trial::run(&mut core, &[0x66, 0x69, 0xc3, 0x00, 0x80]).unwrap();
    assert_eq!((core.gpr[0] & 0xffff, core.flags.cf()), (0x8000, true));
}

#[test]
fn quotients_match_wide_arithmetic_or_raise_a_divide_error() {
    let mut core = trial::core();
    let mut numbers = Numbers(7);
    let (mut divided, mut refused) = (0, 0);
    for (bits, prefix, wide_form) in SIZES {
        for round in 0..2000 {
            let (a, b) = (numbers.next(), numbers.next());
            // Small high halves: most random quotients would not fit.
            let high = [numbers.next(), 0, u64::MAX, numbers.next() & 7][round % 4];
            for signed in [false, true] {
                (core.gpr[0], core.gpr[2], core.gpr[3]) = (a, high, b);
                if bits == 8 {
                    core.gpr[0] = high << 8 & 0xff00 | a & 0xff;
                }
                let before = core.gpr;
                let drop = 128 - 2 * bits;
                let dividend = pair(&core, bits);
                let (quotient, remainder) = if signed {
                    let (n, d) = ((dividend << drop) as i128 >> drop, wide(b, bits));
                    (
                        n.checked_div(d).filter(|&q| wide(q as u64, bits) == q).map(|q| q as u64),
                        n.checked_rem(d).unwrap_or(0) as u64,
                    )
                } else {
                    let d = u128::from(b & mask(bits));
                    let q = dividend.checked_div(d).filter(|&q| q <= u128::from(mask(bits)));
                    (q.map(|q| q as u64), dividend.checked_rem(d).unwrap_or(0) as u64)
                };
                let modrm = if signed { 0xfb } else { 0xf3 };
                let done = trial::run(&mut core, &[prefix, &[0xf6 + wide_form, modrm][..]].concat());
                let Some(quotient) = quotient else {
                    assert_eq!((done, core.fault.vector), (Err(Leave::Fault), 0), "{dividend:#x} / {b:#x}");
                    assert_eq!(core.gpr, before);
                    refused += 1;
                    continue;
                };
                assert_eq!(done, Ok(()), "{dividend:#x} / {b:#x} {bits} {signed}");
                divided += 1;
                let expected = u128::from(remainder & mask(bits)) << bits | u128::from(quotient & mask(bits));
                assert_eq!(pair(&core, bits), expected, "{dividend:#x} / {b:#x} {bits} {signed}");
            }
        }
    }
    assert!(divided > 3000 && refused > 1000, "{divided} {refused}");
}

#[test]
fn the_most_negative_dividend_by_minus_one_is_a_divide_error() {
    let mut core = trial::core();
    (core.gpr[0], core.gpr[2], core.gpr[3]) = (0, 1 << 63, u64::MAX);
    assert_eq!(trial::run(&mut core, &[0x48, 0xf7, 0xfb]), Err(Leave::Fault));
    (core.gpr[0], core.gpr[2]) = (1 << 63, u64::MAX);
    assert_eq!(trial::run(&mut core, &[0x48, 0xf7, 0xfb]), Err(Leave::Fault));
    core.gpr[0] += 1;
    assert_eq!(trial::run(&mut core, &[0x48, 0xf7, 0xfb]), Ok(()));
    assert_eq!((core.gpr[0], core.gpr[2]), (i64::MAX as u64, 0));
}

#[test]
fn mulx_writes_both_halves_and_no_flags() {
    let mut core = trial::core();
    core.flags.set_bits(STATUS);
    (core.gpr[2], core.gpr[1], core.gpr[3]) = (u64::MAX, u64::MAX, DATA);
    // mulx rax, rsi, rcx; mulx rax, rax, [rbx]
    trial::run(&mut core, &[0xc4, 0xe2, 0xcb, 0xf6, 0xc1]).unwrap();
    assert_eq!((core.gpr[0], core.gpr[6], core.flags.bits()), (u64::MAX - 1, 1, STATUS));
    core.store_linear(DATA, 3, 4_u64).unwrap();
    trial::run(&mut core, &[0xc4, 0xe2, 0xfb, 0xf6, 0x03]).unwrap();
    assert_eq!(core.gpr[0], 3);
}
