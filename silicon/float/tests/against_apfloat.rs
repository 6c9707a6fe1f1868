//! LLVM's arbitrary-precision floating point as the reference, on every host: results, and the flags that do not depend
//! on how an architecture detects underflow.

#[path = "against_this_processor/operands.rs"]
mod operands;

use operands::Random;
use rustc_apfloat::ieee::{Double, Half, Single, X87DoubleExtended};
use rustc_apfloat::{Float as _, FloatConvert as _, Round, Status, StatusAnd};
use silicon_float::{ControlWord, F32, F64, F80, Flags, HalfImm, Mxcsr, sse, x87};

const CASES: u32 = 20_000;

const ROUNDING: [Round; 4] =
    [Round::NearestTiesToEven, Round::TowardNegative, Round::TowardPositive, Round::TowardZero];

fn flags(status: Status) -> Flags {
    let mut flags = Flags::NONE;
    for (status_bit, flag) in [
        (Status::INVALID_OP, Flags::IE),
        (Status::DIV_BY_ZERO, Flags::ZE),
        (Status::OVERFLOW, Flags::OE),
        (Status::INEXACT, Flags::PE),
    ] {
        if status.contains(status_bit) {
            flags |= flag;
        }
    }
    flags
}

/// The flags to compare. The reference does not call it overflow if the result is the largest number.
fn compared(is_infinite: bool) -> Flags {
    if is_infinite { Flags(0x2d) } else { Flags(0x25) }
}

macro_rules! sse_agrees {
    ($test:ident, $format:ty, $reference:ty, $bits:ty, $operand:ident, $near:ident) => {
        #[test]
        fn $test() {
            let mut random = Random(51);
            for _ in 0..CASES {
                let rc = random.below(4) as usize;
                let round = ROUNDING[rc];
                let (a, c) = (random.$operand(), random.$operand());
                let b = random.$near(a);
                let [x, y, z] = [a, b, c].map(|bits| <$reference>::from_bits(bits.into()));
                let check = |what: &str, model: &dyn Fn(&mut Mxcsr) -> $bits, expected: StatusAnd<$reference>| {
                    let mut m = Mxcsr(0x1f80 | (rc as u32) << 13);
                    let value = model(&mut m);
                    let context = format!("{what} {a:#x} {b:#x} {c:#x} {round:?}");
                    if expected.value.is_nan() {
                        assert!(<$reference>::from_bits(value.into()).is_nan(), "{context}");
                    } else {
                        assert_eq!(u128::from(value), expected.value.to_bits(), "{context}");
                        assert_eq!(
                            m.flags() & compared(expected.value.is_infinite()),
                            flags(expected.status),
                            "{context}"
                        );
                    }
                };
                check("add", &|m| sse::add::<$format>(a, b, m), x.add_r(y, round));
                check("sub", &|m| sse::sub::<$format>(a, b, m), x.sub_r(y, round));
                check("mul", &|m| sse::mul::<$format>(a, b, m), x.mul_r(y, round));
                check("div", &|m| sse::div::<$format>(a, b, m), x.div_r(y, round));
                check("fma", &|m| sse::fma::<$format>(a, b, c, m), x.mul_add_r(y, z, round));
            }
        }
    };
}

sse_agrees!(single_precision_agrees, F32, Single, u32, f32, f32_near);
sse_agrees!(double_precision_agrees, F64, Double, u64, f64, f64_near);

#[test]
fn half_precision_agrees() {
    let mut random = Random(53);
    for a in 0..=u16::MAX {
        let mut m = Mxcsr::default();
        let (model, half) = (sse::f16_to_f32(a, &mut m), Half::from_bits(a.into()));
        if !half.is_nan() {
            let expected: StatusAnd<Single> = half.convert(&mut false);
            assert_eq!(u128::from(model), expected.value.to_bits(), "{a:#x}");
            assert_eq!(m, Mxcsr::default());
        }
        let rc = random.below(4) as usize;
        let b = match random.below(2) {
            0 => random.f32(),
            _ => model.wrapping_add(random.below(0x4000) as u32),
        };
        let single = Single::from_bits(b.into());
        if !single.is_nan() {
            let expected: StatusAnd<Half> = single.convert_r(ROUNDING[rc], &mut false);
            let mut m = Mxcsr::default();
            let model = sse::f32_to_f16(b, HalfImm(rc as u8), &mut m);
            assert_eq!(u128::from(model), expected.value.to_bits(), "{b:#x} {rc}");
            assert_eq!(m.flags() & compared(expected.value.is_infinite()), flags(expected.status), "{b:#x} {rc}");
        }
    }
}

#[test]
fn extended_precision_agrees() {
    let mut random = Random(52);
    let bits = |x: F80| u128::from(x.sign_exponent) << 64 | u128::from(x.significand);
    let ordinary = |x: F80| (x.sign_exponent & 0x7fff == 0) != (x.significand >> 63 != 0);
    for _ in 0..CASES {
        let rc = random.below(4) as usize;
        let a = random.f80();
        let b = random.f80_near(a);
        if !ordinary(a) || !ordinary(b) {
            continue;
        }
        let (x, y) = (X87DoubleExtended::from_bits(bits(a)), X87DoubleExtended::from_bits(bits(b)));
        let control = ControlWord(0x37f | (rc as u16) << 10);
        for (what, model, expected) in [
            ("add", x87::add(a, b, control), x.add_r(y, ROUNDING[rc])),
            ("sub", x87::sub(a, b, control), x.sub_r(y, ROUNDING[rc])),
            ("mul", x87::mul(a, b, control), x.mul_r(y, ROUNDING[rc])),
            ("div", x87::div(a, b, control), x.div_r(y, ROUNDING[rc])),
        ] {
            if !expected.value.is_nan() {
                assert_eq!(bits(model.value), expected.value.to_bits(), "{what} {a:x?} {b:x?} {rc}");
                assert_eq!(
                    model.flags & compared(expected.value.is_infinite()),
                    flags(expected.status),
                    "{what} {a:x?} {b:x?} {rc}"
                );
            }
        }
    }
}
