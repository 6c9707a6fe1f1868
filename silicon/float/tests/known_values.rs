//! Values that hold on every host.

use silicon_float::x87::{self, Pair};
use silicon_float::{ControlWord, F32, F64, F80, Flags, HalfImm, Mxcsr, SimdException, sse};

const CONTROL: ControlWord = ControlWord(ControlWord::INIT);

fn f80((sign_exponent, significand): (u16, u64)) -> F80 {
    F80 { significand, sign_exponent }
}

fn from(x: f64) -> F80 {
    x87::from_f64(x.to_bits()).value
}

/// Sines and cosines are of the argument reduced with 66 bits of pi.
#[test]
fn transcendental_functions_are_correctly_rounded() {
    for (x, sine, cosine, tangent) in [
        (0.5, (0x3ffd, 0xf577_43a2_582f_7f44), (0x3ffe, 0xe0a9_4032_dbea_7cee), (0x3ffe, 0x8bda_7adf_9a3a_5219)),
        (0.78125, (0x3ffe, 0xb444_5270_9a59_7529), (0x3ffe, 0xb5c4_c7d4_f7da_e916), (0x3ffe, 0xfde2_88ef_ac8b_fa9d)),
        (1.0, (0x3ffe, 0xd76a_a478_4867_7021), (0x3ffe, 0x8a51_407d_a834_5c92), (0x3fff, 0xc759_22e5_f71d_2dc5)),
        (3.0, (0x3ffc, 0x9081_c36d_b6aa_da79), (0xbffe, 0xfd70_25f4_2f2e_9308), (0xbffc, 0x91f7_b892_a5c3_7866)),
        (-10.25, (0x3ffe, 0xbc15_3243_02d9_4fa8), (0xbffe, 0xadab_3829_97b9_da77), (0xbfff, 0x8a9f_a460_92d7_08da)),
        (1000000.5, (0x3ffc, 0x915c_9296_e30b_d6af), (0x3ffe, 0xfd68_53bc_df44_5eda), (0x3ffc, 0x92d9_461b_f22a_edcd)),
    ] {
        let x = from(x);
        let both = x87::fsincos(x, CONTROL).map(|outcome| outcome.value);
        assert_eq!(both, Some(Pair { replaced: f80(sine), pushed: f80(cosine) }));
        assert_eq!(x87::fsin(x, CONTROL).map(|outcome| outcome.value), Some(f80(sine)));
        assert_eq!(x87::fcos(x, CONTROL).map(|outcome| outcome.value), Some(f80(cosine)));
        assert_eq!(x87::fptan(x, CONTROL).map(|outcome| outcome.value.replaced), Some(f80(tangent)));
    }
    for (x, power) in [
        (0.5, (0x3ffd, 0xd413_cccf_e779_9211)),
        (-0.5, (0xbffd, 0x95f6_1998_0c43_36f7)),
        (9.094947017729282e-13, (0x3fd6, 0xb172_17f7_d20c_f928)),
        (0.9375, (0x3ffe, 0xea4a_fa2a_490d_9859)),
    ] {
        assert_eq!(x87::f2xm1(from(x), CONTROL).value, f80(power));
    }
    for (x, y, logarithm) in [
        (3.0, 1.0, (0x3fff, 0xcae0_0d1c_fdeb_43d0)),
        (0.1, 2.5, (0xc002, 0x84e0_8b2f_6031_35f8)),
        (1.0000001, 1.0, (0x3fe8, 0x9ae8_7f52_fe65_ba16)),
        (1e300, -3.0, (0xc00a, 0xbadb_c3ba_9f45_352b)),
    ] {
        assert_eq!(x87::fyl2x(from(x), from(y), CONTROL).value, f80(logarithm));
    }
    for (x, y, logarithm) in [
        (0.25, 1.0, (0x3ffd, 0xa4d3_c25e_68dc_57f2)),
        (-0.125, 3.0, (0xbffe, 0x93f3_9040_7e6f_2e66)),
        (8.881784197001252e-16, 1.0, (0x3fcd, 0xb8aa_3b29_5c17_d9a6)),
    ] {
        assert_eq!(x87::fyl2xp1(from(x), from(y), CONTROL).value, f80(logarithm));
    }
    for (x, y, angle) in [
        (1.0, 1.0, (0x3ffe, 0xc90f_daa2_2168_c235)),
        (-1.0, 0.25, (0x4000, 0xb962_1fa5_8b28_5383)),
        (3.0, -7.0, (0xbfff, 0x953c_5c27_dfaf_e08a)),
        (-5.0, -1e-10, (0xc000, 0xc90f_daa2_1be9_623c)),
        (1.0, 0.3, (0x3ffd, 0x9539_d330_f578_2da1)),
    ] {
        assert_eq!(x87::fpatan(from(x), from(y), CONTROL).value, f80(angle));
    }
}

#[test]
fn circular_functions_refuse_arguments_from_two_to_the_63() {
    let limit = F80 { significand: 1 << 63, sign_exponent: 0x3fff + 63 };
    assert_eq!(x87::fsin(limit, CONTROL), None);
    assert_eq!(x87::fptan(limit.chs(), CONTROL), None);
    assert!(x87::fcos(F80 { significand: u64::MAX, sign_exponent: 0x3fff + 62 }, CONTROL).is_some());
}

const ONE: u32 = 0x3f80_0000;
const THREE: u32 = 0x4040_0000;

#[test]
fn an_unmasked_invalid_lane_silences_the_inexact_lanes() {
    // Invalid not masked.
    let mut mxcsr = Mxcsr(Mxcsr::RESET & !0x80);
    let result = mxcsr.instruction(|mxcsr| {
        (sse::div::<F32>(ONE, THREE, mxcsr), sse::div::<F32>(0, 0, mxcsr), sse::div::<F32>(ONE, 0, mxcsr))
    });
    assert_eq!(result, Err(SimdException));
    assert_eq!(mxcsr.flags(), Flags::IE | Flags::ZE);
}

#[test]
fn a_flag_that_is_set_already_does_not_fault() {
    let mut mxcsr = Mxcsr(Mxcsr::RESET & !0x80 | 1);
    assert!(mxcsr.unmasked_pending());
    assert_eq!(mxcsr.instruction(|mxcsr| sse::add::<F32>(ONE, ONE, mxcsr)), Ok(0x4000_0000));
}

#[test]
fn halves_saturate_at_65504_and_denormals_are_kept() {
    let mut m = Mxcsr(Mxcsr::RESET | Mxcsr::DAZ | Mxcsr::FTZ);
    let narrow = |x: f32, immediate, m: &mut Mxcsr| sse::f32_to_f16(x.to_bits(), HalfImm(immediate), m);
    assert_eq!(narrow(65519.0, 0, &mut m), 0x7bff);
    assert_eq!(m.flags(), Flags::PE);
    assert_eq!(narrow(65520.0, 0, &mut m), 0x7c00);
    assert_eq!(narrow(1e9, 3, &mut m), 0x7bff);
    assert_eq!(m.flags(), Flags::PE | Flags::OE);
    // The smallest half: exact, so that masked underflow is not flagged, and FTZ does not flush it.
    let mut m = Mxcsr(Mxcsr::RESET | Mxcsr::DAZ | Mxcsr::FTZ);
    assert_eq!(narrow(2f32.powi(-24), 0, &mut m), 1);
    assert_eq!(f32::from_bits(sse::f16_to_f32(1, &mut m)), 2f32.powi(-24));
    assert_eq!(m.flags(), Flags::NONE);
    assert_eq!(narrow(2f32.powi(-25), 0, &mut m), 0);
    assert_eq!(narrow(2f32.powi(-26), 2, &mut m), 1);
    assert_eq!(m.flags(), Flags::UE | Flags::PE);
}

#[test]
fn fused_multiply_add_rounds_once() {
    for control in [Mxcsr::RESET, Mxcsr::RESET | 0x20] {
        let mut m = Mxcsr(control);
        let x = 1.0 + 2f64.powi(-30);
        let fused = sse::fma::<F64>(x.to_bits(), x.to_bits(), (-1.0f64).to_bits(), &mut m);
        assert_eq!(f64::from_bits(fused), 2f64.powi(-29) + 2f64.powi(-60));
        assert_eq!(m.0, control);
        let y = 1.0 + 2f32.powi(-12);
        let fused = sse::fma::<F32>(y.to_bits(), y.to_bits(), 2f32.powi(-60).to_bits(), &mut m);
        // Half-way but for the addend.
        assert_eq!(f32::from_bits(fused), 1.0 + 2f32.powi(-11) + 2f32.powi(-23));
        assert_eq!(m.flags(), Flags::PE);
    }
    let mut m = Mxcsr::default();
    let (inf, nan) = (f64::INFINITY.to_bits(), f64::NAN.to_bits());
    assert_eq!(sse::fma::<F64>(inf, 0, nan, &mut m), nan, "a quiet NaN comes before an invalid product");
    assert_eq!(m.flags(), Flags::NONE);
    assert_eq!(sse::fma::<F64>(inf, 0, 0, &mut m), 0xfff8 << 48);
    assert_eq!(m.flags(), Flags::IE);
}
