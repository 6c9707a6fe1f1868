//! SSE: every operation, every rounding mode, DAZ and FTZ; all exceptions masked.

use std::arch::asm;

use silicon_float::{F32, F64, Mxcsr, Ordering4, RoundImm, Signalling, sse};

use crate::operands::Random;

const CASES: u32 = 50_000;

/// Masked MXCSR values: every rounding mode with and without DAZ, FTZ and a PE that is set already.
pub fn mxcsr(random: &mut Random) -> u32 {
    let r = random.next() as u32;
    let optional = |bit: u32, flag| if r >> bit & 1 != 0 { flag } else { 0 };
    0x1f80 | (r & 0x6000) | optional(0, Mxcsr::DAZ) | optional(1, Mxcsr::FTZ) | optional(2, 0x20)
}

/// Runs one instruction on two registers of type `$ty` under an MXCSR value.
macro_rules! run {
    ($instruction:expr, $ty:ty, $a:expr, $b:expr, $mxcsr:expr) => {{
        let (mut a, b) = (<$ty>::from_bits($a), <$ty>::from_bits($b));
        let mut control: u32 = $mxcsr;
        let mut saved = 0u32;
        // SAFETY: MXCSR has all exceptions masked and is put back within the block; memory operands are locals.
        unsafe {
            asm!(
                "stmxcsr [{saved}]", "ldmxcsr [{control}]",
                $instruction,
                "stmxcsr [{control}]", "ldmxcsr [{saved}]",
                saved = in(reg) &mut saved, control = in(reg) &mut control,
                a = inout(xmm_reg) a, b = in(xmm_reg) b,
                options(nostack),
            );
        }
        (a.to_bits(), control)
    }};
}
pub(crate) use run;

/// Runs one conversion from a register of class `$from` to one of class `$to`.
macro_rules! convert {
    ($instruction:expr, $from:ident $a:expr, $to:ident $init:expr, $mxcsr:expr) => {{
        let mut result = $init;
        let mut control: u32 = $mxcsr;
        let mut saved = 0u32;
        // SAFETY: as in `run`.
        unsafe {
            asm!(
                "stmxcsr [{saved}]", "ldmxcsr [{control}]",
                $instruction,
                "stmxcsr [{control}]", "ldmxcsr [{saved}]",
                saved = in(reg) &mut saved, control = in(reg) &mut control,
                a = in($from) $a, r = inout($to) result,
                options(nostack),
            );
        }
        (result, control)
    }};
}

macro_rules! binary {
    ($test:ident, $f32:literal, $f64:literal, $model:ident) => {
        #[test]
        fn $test() {
            let mut random = Random(0x5eed ^ stringify!($test).len() as u64);
            for _ in 0..CASES {
                let control = mxcsr(&mut random);
                let a = random.f32();
                let b = random.f32_near(a);
                let mut m = Mxcsr(control);
                let r = sse::$model::<F32>(a, b, &mut m);
                let (hr, hm) = run!($f32, f32, a, b, control);
                assert_eq!(
                    (r, m.0),
                    (hr, hm),
                    "{a:#x} {b:#x} {control:#x}: model {r:#x} {:#x}, here {hr:#x} {hm:#x}",
                    m.0
                );

                let a = random.f64();
                let b = random.f64_near(a);
                let mut m = Mxcsr(control);
                let r = sse::$model::<F64>(a, b, &mut m);
                let (hr, hm) = run!($f64, f64, a, b, control);
                assert_eq!(
                    (r, m.0),
                    (hr, hm),
                    "{a:#x} {b:#x} {control:#x}: model {r:#x} {:#x}, here {hr:#x} {hm:#x}",
                    m.0
                );
            }
        }
    };
}

/// Square root ignores its first operand.
mod roots {
    use silicon_float::{Float, Mxcsr, sse};
    pub fn sqrt<F: Float>(_: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
        sse::sqrt::<F>(b, mxcsr)
    }
}

binary!(addition_agrees, "addss {a}, {b}", "addsd {a}, {b}", add);
binary!(subtraction_agrees, "subss {a}, {b}", "subsd {a}, {b}", sub);
binary!(multiplication_agrees, "mulss {a}, {b}", "mulsd {a}, {b}", mul);
binary!(division_agrees, "divss {a}, {b}", "divsd {a}, {b}", div);
binary!(minimum_agrees, "minss {a}, {b}", "minsd {a}, {b}", min);
binary!(maximum_agrees, "maxss {a}, {b}", "maxsd {a}, {b}", max);

#[test]
fn square_root_agrees() {
    let mut random = Random(77);
    for _ in 0..CASES {
        let control = mxcsr(&mut random);
        let mut b = random.f32();
        if random.below(4) == 0 {
            // A square, so that the root is exact.
            let small = (random.below(1 << 12)) as f32;
            b = (small * small).to_bits();
        }
        let mut m = Mxcsr(control);
        let r = roots::sqrt::<F32>(0, b, &mut m);
        let (hr, hm) = run!("sqrtss {a}, {b}", f32, 0, b, control);
        assert_eq!((r, m.0), (hr, hm), "{b:#x} {control:#x}: model {r:#x}, here {hr:#x}");
        let b = random.f64();
        let mut m = Mxcsr(control);
        let r = roots::sqrt::<F64>(0, b, &mut m);
        let (hr, hm) = run!("sqrtsd {a}, {b}", f64, 0, b, control);
        assert_eq!((r, m.0), (hr, hm), "{b:#x} {control:#x}: model {r:#x}, here {hr:#x}");
    }
}

macro_rules! predicates {
    ($random:ident, $($n:literal)*) => {$({
        let control = mxcsr(&mut $random);
        let a = $random.f32();
        let b = $random.f32_near(a);
        let mut m = Mxcsr(control);
        let r = sse::cmp::<F32>(a, b, $n, &mut m);
        let (hr, hm) = run!(concat!("vcmpss {a}, {a}, {b}, ", $n), f32, a, b, control);
        assert_eq!((r, m.0), (hr != 0, hm), "predicate {} of {a:#x} {b:#x} {control:#x}", $n);
        let a = $random.f64();
        let b = $random.f64_near(a);
        let mut m = Mxcsr(control);
        let r = sse::cmp::<F64>(a, b, $n, &mut m);
        let (hr, hm) = run!(concat!("vcmpsd {a}, {a}, {b}, ", $n), f64, a, b, control);
        assert_eq!((r, m.0), (hr != 0, hm), "predicate {} of {a:#x} {b:#x} {control:#x}", $n);
    })*};
}

#[test]
fn all_thirty_two_predicates_agree() {
    if !std::is_x86_feature_detected!("avx") {
        return;
    }
    let mut random = Random(3);
    for _ in 0..4000 {
        predicates!(random, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    }
}

/// Runs a comparison that leaves its answer in ZF, PF and CF.
macro_rules! comi {
    ($instruction:expr, $ty:ty, $a:expr, $b:expr, $mxcsr:expr) => {{
        let mut control: u32 = $mxcsr;
        let mut saved = 0u32;
        let (above, equal, parity): (u8, u8, u8);
        // SAFETY: as in `run`.
        unsafe {
            asm!(
                "stmxcsr [{saved}]", "ldmxcsr [{control}]",
                $instruction, "seta {above}", "sete {equal}", "setp {parity}",
                "stmxcsr [{control}]", "ldmxcsr [{saved}]",
                saved = in(reg) &mut saved, control = in(reg) &mut control,
                a = in(xmm_reg) <$ty>::from_bits($a), b = in(xmm_reg) <$ty>::from_bits($b),
                above = out(reg_byte) above, equal = out(reg_byte) equal, parity = out(reg_byte) parity,
                options(nostack),
            );
        }
        let ordering = match (parity, equal, above) {
            (1, _, _) => Ordering4::Unordered,
            (_, 1, _) => Ordering4::Equal,
            (_, _, 1) => Ordering4::Greater,
            _ => Ordering4::Less,
        };
        (ordering, control)
    }};
}

#[test]
fn comparison_into_flags_agrees() {
    let mut random = Random(4);
    for _ in 0..CASES {
        let control = mxcsr(&mut random);
        let a = random.f32();
        let b = random.f32_near(a);
        let mut m = Mxcsr(control);
        let r = sse::comi::<F32>(a, b, Signalling::Signalling, &mut m);
        assert_eq!((r, m.0), comi!("comiss {a}, {b}", f32, a, b, control), "{a:#x} {b:#x} {control:#x}");
        let mut m = Mxcsr(control);
        let r = sse::comi::<F32>(a, b, Signalling::Quiet, &mut m);
        assert_eq!((r, m.0), comi!("ucomiss {a}, {b}", f32, a, b, control), "{a:#x} {b:#x} {control:#x}");
        let a = random.f64();
        let b = random.f64_near(a);
        let mut m = Mxcsr(control);
        let r = sse::comi::<F64>(a, b, Signalling::Signalling, &mut m);
        assert_eq!((r, m.0), comi!("comisd {a}, {b}", f64, a, b, control), "{a:#x} {b:#x} {control:#x}");
        let mut m = Mxcsr(control);
        let r = sse::comi::<F64>(a, b, Signalling::Quiet, &mut m);
        assert_eq!((r, m.0), comi!("ucomisd {a}, {b}", f64, a, b, control), "{a:#x} {b:#x} {control:#x}");
    }
}

macro_rules! same {
    ($control:expr, $a:expr, $model:expr, $here:expr) => {{
        let mut m = Mxcsr($control);
        let r = $model(&mut m);
        let (hr, hm) = $here;
        assert_eq!((r, m.0), (hr, hm), "{:#x} {:#x}: model {r:#x} {:#x}, here {hr:#x} {hm:#x}", $a, $control, m.0);
    }};
}

#[test]
fn conversions_agree() {
    let mut random = Random(5);
    for _ in 0..CASES {
        let c = mxcsr(&mut random);
        let a = random.f32();
        let b = match random.below(3) {
            0 => f64::from(f32::from_bits(random.f32())).to_bits().wrapping_add(random.below(3)),
            // Around the limits of single precision.
            1 => {
                random.next() << 63
                    | (1023 - 155 + random.below(60) + random.below(2) * 230) << 52
                    | random.fraction(52)
            }
            _ => random.f64(),
        };
        let (x, y) = (f32::from_bits(a), f64::from_bits(b));
        let bits = |(r, m): (f32, u32)| (r.to_bits(), m);
        let bits64 = |(r, m): (f64, u32)| (r.to_bits(), m);
        same!(
            c,
            a,
            |m: &mut _| sse::f32_to_f64(a, m),
            bits64(convert!("cvtss2sd {r}, {a}", xmm_reg x, xmm_reg 0f64, c))
        );
        same!(c, b, |m: &mut _| sse::f64_to_f32(b, m), bits(convert!("cvtsd2ss {r}, {a}", xmm_reg y, xmm_reg 0f32, c)));
        same!(c, a, |m: &mut _| sse::to_i32::<F32>(a, m), convert!("cvtss2si {r:e}, {a}", xmm_reg x, reg 0i32, c));
        same!(c, b, |m: &mut _| sse::to_i32::<F64>(b, m), convert!("cvtsd2si {r:e}, {a}", xmm_reg y, reg 0i32, c));
        same!(c, a, |m: &mut _| sse::to_i64::<F32>(a, m), convert!("cvtss2si {r:r}, {a}", xmm_reg x, reg 0i64, c));
        same!(c, b, |m: &mut _| sse::to_i64::<F64>(b, m), convert!("cvtsd2si {r:r}, {a}", xmm_reg y, reg 0i64, c));
        same!(
            c,
            a,
            |m: &mut _| sse::to_i32_truncated::<F32>(a, m),
            convert!("cvttss2si {r:e}, {a}", xmm_reg x, reg 0i32, c)
        );
        same!(
            c,
            b,
            |m: &mut _| sse::to_i32_truncated::<F64>(b, m),
            convert!("cvttsd2si {r:e}, {a}", xmm_reg y, reg 0i32, c)
        );
        same!(
            c,
            a,
            |m: &mut _| sse::to_i64_truncated::<F32>(a, m),
            convert!("cvttss2si {r:r}, {a}", xmm_reg x, reg 0i64, c)
        );
        same!(
            c,
            b,
            |m: &mut _| sse::to_i64_truncated::<F64>(b, m),
            convert!("cvttsd2si {r:r}, {a}", xmm_reg y, reg 0i64, c)
        );
        let i = random.next() as i64 >> random.below(64);
        let j = i as i32;
        same!(
            c,
            i,
            |m: &mut _| sse::from_i64::<F32>(i, m),
            bits(convert!("cvtsi2ss {r}, {a:r}", reg i, xmm_reg 0f32, c))
        );
        same!(
            c,
            i,
            |m: &mut _| sse::from_i64::<F64>(i, m),
            bits64(convert!("cvtsi2sd {r}, {a:r}", reg i, xmm_reg 0f64, c))
        );
        same!(
            c,
            j,
            |m: &mut _| sse::from_i32::<F32>(j, m),
            bits(convert!("cvtsi2ss {r}, {a:e}", reg j, xmm_reg 0f32, c))
        );
        same!(
            c,
            j,
            |m: &mut _| sse::from_i32::<F64>(j, m),
            bits64(convert!("cvtsi2sd {r}, {a:e}", reg j, xmm_reg 0f64, c))
        );
    }
}

macro_rules! immediates {
    ($random:ident, $($n:literal)*) => {$({
        let c = mxcsr(&mut $random);
        let (a, b) = ($random.f32(), $random.f64());
        same!(c, a, |m: &mut _| sse::round_to_int::<F32>(a, RoundImm($n), m),
            run!(concat!("roundss {a}, {b}, ", $n), f32, 0, a, c));
        same!(c, b, |m: &mut _| sse::round_to_int::<F64>(b, RoundImm($n), m),
            run!(concat!("roundsd {a}, {b}, ", $n), f64, 0, b, c));
    })*};
}

#[test]
fn rounding_to_integral_agrees() {
    if !std::is_x86_feature_detected!("sse4.1") {
        return;
    }
    let mut random = Random(6);
    for _ in 0..8000 {
        immediates!(random, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
}

macro_rules! fused {
    ($instruction:expr, $ty:ty, $a:expr, $b:expr, $c:expr, $mxcsr:expr) => {{
        let mut a = <$ty>::from_bits($a);
        let mut control: u32 = $mxcsr;
        let mut saved = 0u32;
        // SAFETY: as in `run`.
        unsafe {
            asm!(
                "stmxcsr [{saved}]", "ldmxcsr [{control}]",
                $instruction,
                "stmxcsr [{control}]", "ldmxcsr [{saved}]",
                saved = in(reg) &mut saved, control = in(reg) &mut control,
                a = inout(xmm_reg) a, b = in(xmm_reg) <$ty>::from_bits($b), c = in(xmm_reg) <$ty>::from_bits($c),
                options(nostack),
            );
        }
        (a.to_bits(), control)
    }};
}
pub(crate) use fused;

#[test]
fn fused_multiply_add_agrees() {
    if !std::is_x86_feature_detected!("fma") {
        return;
    }
    let mut random = Random(7);
    for _ in 0..CASES {
        let control = mxcsr(&mut random);
        let (a, b) = (random.f32(), random.f32());
        let near = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
        let c = if f32::from_bits(near).is_nan() { random.f32() } else { random.f32_near(near) };
        same!(
            control,
            u64::from(a) << 32 | u64::from(b),
            |m: &mut _| sse::fma::<F32>(a, b, c, m),
            fused!("vfmadd213ss {a}, {b}, {c}", f32, b, a, c, control)
        );
        let (a, b) = (random.f64(), random.f64());
        let near = (f64::from_bits(a) * f64::from_bits(b)).to_bits();
        let c = if f64::from_bits(near).is_nan() { random.f64() } else { random.f64_near(near) };
        same!(
            control,
            u128::from(a) << 64 | u128::from(b),
            |m: &mut _| sse::fma::<F64>(a, b, c, m),
            fused!("vfmadd213sd {a}, {b}, {c}", f64, b, a, c, control)
        );
    }
}

#[test]
fn estimates_are_within_the_bound_and_special_where_this_processor_is() {
    let mut random = Random(8);
    let bound = 1.5 * 2f64.powi(-12);
    for _ in 0..CASES {
        let a = random.f32();
        let exact = f64::from(f32::from_bits(a));
        for (model, here, exact) in [
            (sse::rcp(a), run!("rcpss {a}, {b}", f32, 0, a, 0x1f80), 1.0 / exact),
            (sse::rsqrt(a), run!("rsqrtss {a}, {b}", f32, 0, a, 0x1f80), 1.0 / exact.sqrt()),
        ] {
            assert_eq!(here.1, 0x1f80, "no flags");
            let here = f32::from_bits(here.0);
            let value = f32::from_bits(model);
            let magnitude = a & 0x7fff_ffff;
            if (0x7e7f_f400..=0x7e80_0c00).contains(&magnitude) && exact.abs() < 1e-30 {
                // 1/a is about the smallest normal number: the manual lets a processor flush or not.
                continue;
            }
            if here.is_normal() {
                assert!((f64::from(value) / exact - 1.0).abs() <= bound, "{a:#x}: {value} for {exact}");
            } else if exact.abs() < f64::from(f32::MIN_POSITIVE) && exact != 0.0 {
                assert_eq!(value.to_bits() & 0x7fff_ffff, 0, "{a:#x}: tiny results are flushed");
            } else {
                assert_eq!(model, here.to_bits(), "{a:#x}");
            }
        }
    }
}

#[test]
fn fused_forms_prefer_the_nan_of_a_multiplicand() {
    if !std::is_x86_feature_detected!("fma") {
        return;
    }
    // Distinct quiet NaNs tell which operand each form prefers.
    let (x, y, z, one) = (0x7fc0_0001, 0x7fc0_0002, 0x7fc0_0003, 0x3f80_0000);
    for (x, y, z) in [(x, y, z), (one, y, z), (x, one, z), (x, y, one)] {
        let model = |a, b, c| {
            let mut m = Mxcsr(0x1f80);
            (sse::fma::<F32>(a, b, c, &mut m), m.0)
        };
        assert_eq!(model(x, z, y), fused!("vfmadd132ss {a}, {b}, {c}", f32, x, y, z, 0x1f80));
        assert_eq!(model(y, x, z), fused!("vfmadd213ss {a}, {b}, {c}", f32, x, y, z, 0x1f80));
        assert_eq!(model(y, z, x), fused!("vfmadd231ss {a}, {b}, {c}", f32, x, y, z, 0x1f80));
    }
}
