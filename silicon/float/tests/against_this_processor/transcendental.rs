//! Transcendental instructions: special cases and flags exactly, values to the last place or the one before.

use silicon_float::x87::{self, Pair};
use silicon_float::{ControlWord, F80, Outcome};

use crate::operands::Random;
use crate::x87_unit::{Left, UNTOUCHED, execute};

const CASES: u32 = 20_000;

/// The distance in units of the last place; none if the patterns are not numbers of one sign.
fn distance(a: F80, b: F80) -> Option<u128> {
    if a == b {
        return Some(0);
    }
    let finite = |x: F80| x.sign_exponent & 0x7fff != 0x7fff;
    if !finite(a) || !finite(b) || a.is_negative() != b.is_negative() {
        return None;
    }
    // The integer bit makes the pattern jump by one binade at once: take it out.
    let order = |x: F80| u128::from(x.sign_exponent & 0x7fff) << 63 | u128::from(x.significand & !(1 << 63));
    Some(order(a).abs_diff(order(b)))
}

fn close(what: &str, a: F80, b: F80, control: u16, value: F80, here: F80) {
    let limit = if control & 0xc00 == 0 { 1 } else { 2 };
    let apart = distance(value, here);
    assert!(
        apart.is_some_and(|apart| apart <= limit),
        "{what} {a:x?} {b:x?} {control:#x}: {value:x?}, here {here:x?}, apart {apart:?}"
    );
}

fn check(what: &str, a: F80, b: F80, control: u16, model: Outcome<F80>, here: &Left) {
    close(what, a, b, control, model.value, here.st0);
    assert_eq!(model.flags.0, here.flags(), "{what} {a:x?} {b:x?} {control:#x}: {model:x?} {here:x?}");
}

fn control(random: &mut Random) -> u16 {
    if random.below(2) == 0 { 0x37f } else { 0x37f | (random.below(4) as u16) << 10 }
}

/// A number whose exponent is from `low` up to `high`.
fn between(random: &mut Random, low: i32, high: i32) -> F80 {
    let exponent = low + random.below((high - low) as u64) as i32;
    let fraction = random.next() >> 2 & random.fraction(62) | random.fraction(62);
    F80 { significand: 1 << 63 | fraction, sign_exponent: (exponent + 0x3fff) as u16 | (random.below(2) << 15) as u16 }
}

#[test]
fn exponentials_agree() {
    let mut random = Random(31);
    for case in 0..CASES {
        let control = control(&mut random);
        let a = if case % 2 == 0 { between(&mut random, -70, 0) } else { random.f80() };
        if a.sign_exponent & 0x7fff >= 0x3fff && a.sign_exponent & 0x7fff != 0x7fff && a.abs() != F80::ONE {
            continue;
        }
        check("f2xm1", a, a, control, x87::f2xm1(a, ControlWord(control)), &execute!("f2xm1", a, a, control));
    }
}

#[test]
fn logarithms_agree() {
    let mut random = Random(32);
    for case in 0..CASES {
        let control = control(&mut random);
        let (a, b) = match case % 4 {
            0 => (between(&mut random, -1, 1).abs(), between(&mut random, -70, 70)),
            1 => (between(&mut random, -16000, 16000).abs(), random.f80()),
            2 => (F80 { significand: 1 << 63, sign_exponent: random.below(0x7fff) as u16 }, random.f80()),
            _ => (random.f80(), random.f80()),
        };
        check("fyl2x", a, b, control, x87::fyl2x(a, b, ControlWord(control)), &execute!("fyl2x", a, b, control));
    }
}

#[test]
fn logarithms_of_one_and_a_little_agree() {
    let mut random = Random(33);
    for case in 0..CASES {
        let control = control(&mut random);
        let (a, b) = if case % 2 == 0 {
            (between(&mut random, -70, -2), between(&mut random, -70, 70))
        } else {
            (random.f80(), random.f80())
        };
        let field = a.sign_exponent & 0x7fff;
        if field >= 0x3ffd && field != 0x7fff {
            continue;
        }
        check("fyl2xp1", a, b, control, x87::fyl2xp1(a, b, ControlWord(control)), &execute!("fyl2xp1", a, b, control));
    }
}

#[test]
fn arctangents_agree() {
    let mut random = Random(34);
    for case in 0..CASES {
        let control = control(&mut random);
        let (a, b) = match case % 3 {
            0 => (between(&mut random, -3, 3), between(&mut random, -3, 3)),
            1 => (between(&mut random, -80, 80), between(&mut random, -80, 80)),
            _ => (random.f80(), random.f80()),
        };
        check("fpatan", a, b, control, x87::fpatan(a, b, ControlWord(control)), &execute!("fpatan", a, b, control));
    }
}

#[test]
fn circular_functions_agree() {
    let mut random = Random(35);
    for case in 0..CASES {
        let control = control(&mut random);
        let a = match case % 4 {
            0 => between(&mut random, -70, 0),
            1 => between(&mut random, -2, 10),
            2 => between(&mut random, 0, 64),
            _ => random.f80(),
        };
        let word = ControlWord(control);
        for (what, model, here) in [
            ("fsin", x87::fsin(a, word), execute!("fsin", a, a, control)),
            ("fcos", x87::fcos(a, word), execute!("fcos", a, a, control)),
        ] {
            match model {
                Some(model) => check(what, a, a, control, model, &here),
                None => assert!(here.c(2) && here.st0 == a && here.flags() == 0, "{what} {a:x?}: {here:x?}"),
            }
        }
        for (what, model, here) in [
            ("fsincos", x87::fsincos(a, word), execute!("fsincos", a, a, control)),
            ("fptan", x87::fptan(a, word), execute!("fptan", a, a, control)),
        ] {
            match model {
                Some(Outcome { value: Pair { replaced, pushed }, flags, .. }) => {
                    close(what, a, a, control, pushed, here.st0);
                    close(what, a, a, control, replaced, here.st1);
                    assert_eq!(flags.0, here.flags(), "{what} {a:x?} {control:#x} {here:x?}");
                }
                None => assert!(here.c(2) && here.st0 == a && here.flags() == 0, "{what} {a:x?}: {here:x?}"),
            }
        }
    }
}
