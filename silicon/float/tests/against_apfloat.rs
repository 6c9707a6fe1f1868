//! LLVM's arbitrary-precision floating point as the reference, on every host: results, and the flags that do not depend
//! on how an architecture detects underflow.

#[path = "against_this_processor/operands.rs"]
mod operands;

use operands::Random;
use rustc_apfloat::ieee::{Double, Single, X87DoubleExtended};
use rustc_apfloat::{Float as _, Round, Status, StatusAnd};
use silicon_float::{ControlWord, F32, F64, F80, Flags, Mxcsr, sse, x87};

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
