//! x87: every operation under every precision and rounding, with exceptions masked and not.

use silicon_float::x87::{self, Class, Constant, Destination, Source};
use silicon_float::{ControlWord, F80, Ordering4, Outcome, Signalling};

use crate::operands::Random;
use crate::x87_unit::{Left, UNTOUCHED, execute};

const CASES: u32 = 50_000;

/// A control word: any precision and rounding; now and then some exceptions not masked.
fn control(random: &mut Random) -> u16 {
    let precision = [0, 2, 3, 3][random.below(4) as usize] << 8;
    let masks = if random.below(3) == 0 { random.below(64) as u16 } else { 0x3f };
    precision | (random.below(4) as u16) << 10 | masks | 0x40
}

/// Asserts a result in ST0, or ST0 left alone, and the flags.
fn check(what: &str, a: F80, b: F80, control: u16, model: Outcome<F80>, here: &Left) {
    let stored = model.reaches(Destination::Register, ControlWord(control));
    let value = if stored { model.value } else { a };
    let unmasked = model.flags.0 & !(control as u8) & 7 != 0;
    // What the flags found afterwards say after an exception found before has no meaning.
    let flags = if unmasked { model.flags.0 & 7 } else { model.flags.0 };
    assert_eq!(
        (value, flags, model.c1),
        (here.st0, here.flags(), here.c(1)),
        "{what} {a:x?} {b:x?} control {control:#x}: model {model:x?} stored {stored}, here {here:x?}"
    );
}

macro_rules! binary {
    ($test:ident, $op:literal, $model:path) => {
        #[test]
        fn $test() {
            let mut random = Random(11);
            for _ in 0..CASES {
                let control = control(&mut random);
                let a = random.f80();
                let b = random.f80_near(a);
                let model = $model(a, b, ControlWord(control));
                check($op, a, b, control, model, &execute!($op, a, b, control));
            }
        }
    };
}

binary!(addition_agrees, "fadd st(0), st(1)", x87::add);
binary!(subtraction_agrees, "fsub st(0), st(1)", x87::sub);
binary!(multiplication_agrees, "fmul st(0), st(1)", x87::mul);
binary!(division_agrees, "fdiv st(0), st(1)", x87::div);

#[test]
fn square_root_agrees() {
    let mut random = Random(12);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        check("fsqrt", a, a, control, x87::sqrt(a, ControlWord(control)), &execute!("fsqrt", a, a, control));
    }
}

#[test]
fn rounding_to_integral_agrees() {
    let mut random = Random(13);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let model = x87::round_to_int(a, ControlWord(control));
        check("frndint", a, a, control, model, &execute!("frndint", a, a, control));
    }
}

#[test]
fn scaling_agrees() {
    let mut random = Random(14);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let b = match random.below(3) {
            0 => random.f80(),
            1 => x87::from_i64(random.below(70000) as i64 - 35000),
            _ => F80 {
                significand: random.next() | 1 << 63,
                sign_exponent: (0x3ffc + random.below(20) as u16) | (random.below(2) << 15) as u16,
            },
        };
        check("fscale", a, b, control, x87::scale(a, b, ControlWord(control)), &execute!("fscale", a, b, control));
    }
}

#[test]
fn extraction_agrees() {
    let mut random = Random(15);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let model = x87::extract(a, ControlWord(control));
        let here = execute!("fxtract", a, a, control);
        let stored = model.reaches(Destination::Register, ControlWord(control));
        let (st0, st1) = if stored { (model.value.significand, model.value.exponent) } else { (a, a) };
        assert_eq!(
            (st0, st1, model.flags.0, model.c1),
            (here.st0, here.st1, here.flags(), here.c(1)),
            "{a:x?} {control:#x} {model:x?} {here:x?}"
        );
    }
}

fn check_comparison(a: F80, model: Outcome<Ordering4>, here: &Left) {
    let ordering = match (here.c(3), here.c(2), here.c(0)) {
        (_, true, _) => Ordering4::Unordered,
        (true, _, _) => Ordering4::Equal,
        (_, _, true) => Ordering4::Less,
        _ => Ordering4::Greater,
    };
    assert_eq!((model.value, model.flags.0, model.c1), (ordering, here.flags(), here.c(1)), "{a:x?} {here:x?}");
}

#[test]
fn comparison_agrees() {
    let mut random = Random(16);
    for _ in 0..CASES {
        let a = random.f80();
        let b = random.f80_near(a);
        for (signalling, here) in [
            (Signalling::Signalling, execute!("fcom st(1)", a, b, 0x37f)),
            (Signalling::Quiet, execute!("fucom st(1)", a, b, 0x37f)),
        ] {
            let model = x87::compare(a, b, signalling);
            check_comparison(a, model, &here);
        }
    }
}

#[test]
fn examination_agrees() {
    let mut random = Random(17);
    for _ in 0..CASES {
        let a = random.f80();
        let here = execute!("fxam", a, a, 0x37f);
        let class = match (here.c(3), here.c(2), here.c(0)) {
            (false, false, false) => Class::Unsupported,
            (false, false, true) => Class::Nan,
            (false, true, false) => Class::Normal,
            (false, true, true) => Class::Infinity,
            (true, false, false) => Class::Zero,
            (true, true, false) => Class::Denormal,
            other => panic!("{other:?}"),
        };
        assert_eq!((x87::examine(a), a.is_negative()), (class, here.c(1)), "{a:x?}");
    }
}

#[test]
fn partial_remainders_agree() {
    let mut random = Random(18);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let b = random.f80_near(a);
        for (what, model, here) in [
            ("fprem", x87::fprem(a, b, ControlWord(control)), execute!("fprem", a, b, control)),
            ("fprem1", x87::fprem1(a, b, ControlWord(control)), execute!("fprem1", a, b, control)),
        ] {
            let stored = model.reaches(Destination::Register, ControlWord(control));
            let value = if stored { model.value.value } else { a };
            assert_eq!(
                (value, model.flags.0),
                (here.st0, here.flags()),
                "{what} {a:x?} {b:x?} {control:#x}: {model:x?} {here:x?}"
            );
            if stored && here.flags() & 1 == 0 {
                let quotient = u8::from(here.c(0)) << 2 | u8::from(here.c(3)) << 1 | u8::from(here.c(1));
                assert_eq!(
                    (model.value.partial, model.value.quotient),
                    (here.c(2), quotient),
                    "{what} {a:x?} {b:x?} {control:#x}: {model:x?} {here:x?}"
                );
            }
        }
    }
}

#[test]
fn loads_agree() {
    let mut random = Random(19);
    for _ in 0..CASES {
        let control = control(&mut random);
        let (single, double) = (random.f32(), random.f64());
        let memory = |bytes: &[u8]| {
            let mut memory = UNTOUCHED;
            memory[..bytes.len()].copy_from_slice(bytes);
            memory
        };
        for (what, model, here) in [
            (
                "fld m32",
                x87::from_f32(single),
                execute!("fld dword ptr [{m}]", F80::ONE, F80::ONE, control, memory(&single.to_le_bytes())),
            ),
            (
                "fld m64",
                x87::from_f64(double),
                execute!("fld qword ptr [{m}]", F80::ONE, F80::ONE, control, memory(&double.to_le_bytes())),
            ),
        ] {
            let value = if model.reaches(Destination::Push, ControlWord(control)) { model.value } else { F80::ONE };
            assert_eq!(
                (value, model.flags.0, model.c1),
                (here.st0, here.flags(), here.c(1)),
                "{what} {single:#x} {double:#x} {control:#x}: {model:x?} {here:x?}"
            );
        }
        let i = random.next() as i64 >> random.below(64);
        let bytes = memory(&i.to_le_bytes());
        assert_eq!(x87::from_i16(i as i16), execute!("fild word ptr [{m}]", F80::ONE, F80::ONE, control, bytes).st0);
        assert_eq!(x87::from_i32(i as i32), execute!("fild dword ptr [{m}]", F80::ONE, F80::ONE, control, bytes).st0);
        assert_eq!(x87::from_i64(i), execute!("fild qword ptr [{m}]", F80::ONE, F80::ONE, control, bytes).st0);
        let mut decimal = [0u8; 10];
        for byte in &mut decimal[..random.below(10) as usize] {
            *byte = (random.below(10) << 4 | random.below(10)) as u8;
        }
        decimal[9] = (random.below(2) << 7) as u8;
        assert_eq!(
            x87::from_bcd(decimal),
            execute!("fbld tbyte ptr [{m}]", F80::ONE, F80::ONE, control, memory(&decimal)).st0
        );
    }
}

/// Asserts bytes in memory, or memory left alone, and the flags.
fn check_store<T: std::fmt::Debug>(what: &str, a: F80, control: u16, model: Outcome<T>, bytes: &[u8], here: &Left) {
    let stored = model.reaches(Destination::Memory, ControlWord(control));
    let mut memory = UNTOUCHED;
    if stored {
        memory[..bytes.len()].copy_from_slice(bytes);
    }
    assert_eq!(
        (memory, model.flags.0, model.c1),
        (here.memory, here.flags(), here.c(1)),
        "{what} {a:x?} control {control:#x}: model {model:x?} stored {stored}, here {here:x?}"
    );
}

#[test]
fn stores_agree() {
    let mut random = Random(20);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let word = ControlWord(control);
        macro_rules! store {
            ($op:literal, $model:expr) => {{
                let model = $model;
                check_store($op, a, control, model, &model.value.to_le_bytes(), &execute!($op, a, a, control));
            }};
        }
        store!("fst dword ptr [{m}]", x87::to_f32(a, word));
        store!("fst qword ptr [{m}]", x87::to_f64(a, word));
        store!("fist word ptr [{m}]", x87::to_i16(a, word));
        store!("fist dword ptr [{m}]", x87::to_i32(a, word));
        store!("fistp qword ptr [{m}]", x87::to_i64(a, word));
        store!("fisttp word ptr [{m}]", x87::to_i16_truncated(a));
        store!("fisttp dword ptr [{m}]", x87::to_i32_truncated(a));
        store!("fisttp qword ptr [{m}]", x87::to_i64_truncated(a));
        let model = x87::to_bcd(a, word);
        check_store("fbstp", a, control, model, &model.value, &execute!("fbstp tbyte ptr [{m}]", a, a, control));
    }
}

#[test]
fn constants_agree_in_every_rounding_mode() {
    for rounding in 0..4 {
        for precision in [0, 2, 3] {
            let control = 0x7f | precision << 8 | rounding << 10;
            for (constant, here) in [
                (Constant::One, execute!("fld1", F80::ONE, F80::ONE, control)),
                (Constant::Zero, execute!("fldz", F80::ONE, F80::ONE, control)),
                (Constant::Pi, execute!("fldpi", F80::ONE, F80::ONE, control)),
                (Constant::LnOf2, execute!("fldln2", F80::ONE, F80::ONE, control)),
                (Constant::Log2Of10, execute!("fldl2t", F80::ONE, F80::ONE, control)),
                (Constant::Log2OfE, execute!("fldl2e", F80::ONE, F80::ONE, control)),
                (Constant::Log10Of2, execute!("fldlg2", F80::ONE, F80::ONE, control)),
            ] {
                assert_eq!(x87::constant(constant, ControlWord(control)), here.st0, "{constant:?} {control:#x}");
            }
        }
    }
}

#[test]
fn signs_change_on_any_pattern() {
    let mut random = Random(21);
    for _ in 0..1000 {
        let a = random.f80();
        assert_eq!(a.chs(), execute!("fchs", a, a, 0x37f).st0);
        assert_eq!(a.abs(), execute!("fabs", a, a, 0x37f).st0);
    }
}

#[test]
fn operands_in_memory_agree() {
    let mut random = Random(22);
    for _ in 0..CASES {
        let (control, a) = (control(&mut random), random.f80());
        let (single, double) = (random.f32(), random.f64());
        let word = ControlWord(control);
        let (m32, m64) = (Source::Single(single), Source::Double(double));
        let mut memory = UNTOUCHED;
        macro_rules! same {
            ($op:literal, $model:expr) => {
                check($op, a, F80::ONE, control, $model, &execute!($op, a, F80::ONE, control, memory))
            };
        }
        memory[..4].copy_from_slice(&single.to_le_bytes());
        same!("fadd dword ptr [{m}]", x87::add(a, m32, word));
        same!("fsub dword ptr [{m}]", x87::sub(a, m32, word));
        same!("fsubr dword ptr [{m}]", x87::sub(m32, a, word));
        same!("fmul dword ptr [{m}]", x87::mul(a, m32, word));
        let model = x87::compare(a, m32, Signalling::Signalling);
        check_comparison(a, model, &execute!("fcom dword ptr [{m}]", a, a, 0x37f, memory));
        memory[..8].copy_from_slice(&double.to_le_bytes());
        same!("fadd qword ptr [{m}]", x87::add(a, m64, word));
        same!("fdiv qword ptr [{m}]", x87::div(a, m64, word));
        same!("fdivr qword ptr [{m}]", x87::div(m64, a, word));
        let model = x87::compare(a, m64, Signalling::Signalling);
        check_comparison(a, model, &execute!("fcom qword ptr [{m}]", a, a, 0x37f, memory));
        same!("fiadd dword ptr [{m}]", x87::add(a, x87::from_i32(double as i32), word));
        same!("fisubr word ptr [{m}]", x87::sub(x87::from_i16(double as i16), a, word));
    }
}
