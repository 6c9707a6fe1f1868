//! Fused multiply-add of all that is special, in every mode.

use std::arch::asm;

use silicon_float::{F32, F64, Mxcsr, sse};

use crate::operands::Random;
use crate::sse::fused;

/// Zeros, denormals, the smallest and largest normal numbers, ordinary numbers, infinities, NaNs.
const SINGLES: [u32; 17] = [
    0,
    1,
    0x7f_ffff,
    0x80_0000,
    0x80_0001,
    0x3280_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x4040_0000,
    0x4b80_0001,
    0x7e80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc1_2345,
    0x7f81_2345,
    0x0040_0000,
];

const DOUBLES: [u64; 17] = [
    0,
    1,
    0xf_ffff_ffff_ffff,
    1 << 52,
    1 << 52 | 1,
    0x3c90_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x4008_0000_0000_0000,
    0x4340_0000_0000_0001,
    0x7fd0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff8_1234_5678_9abc,
    0x7ff0_1234_5678_9abc,
    0x0008_0000_0000_0000,
];

macro_rules! agrees {
    ($test:ident, $specials:ident, $format:ty, $float:ty, $bits:ty, $instruction:literal) => {
        #[test]
        fn $test() {
            if !std::is_x86_feature_detected!("fma") {
                return;
            }
            let sign: $bits = 1 << (<$bits>::BITS - 1);
            let all: Vec<$bits> = $specials.iter().flat_map(|&s| [s, s | sign]).collect();
            // Rounding, DAZ and FTZ, and PE, whose being set already makes for another path.
            let controls =
                (0..32u32).map(|i| 0x1f80 | (i & 3) << 13 | (i >> 2 & 1) << 6 | (i >> 3 & 1) << 15 | (i >> 4) << 5);
            for control in controls {
                for &a in &all {
                    for &b in &all {
                        for &c in &all {
                            let mut m = Mxcsr(control);
                            let model = sse::fma::<$format>(a, b, c, &mut m);
                            let here = fused!($instruction, $float, b, a, c, control);
                            assert_eq!((model, m.0), here, "{a:#x} * {b:#x} + {c:#x}, {control:#x}: {model:#x}");
                        }
                    }
                }
            }
        }
    };
}

agrees!(special_singles_agree, SINGLES, F32, f32, u32, "vfmadd213ss {a}, {b}, {c}");
agrees!(special_doubles_agree, DOUBLES, F64, f64, u64, "vfmadd213sd {a}, {b}, {c}");

/// A number of a few bits around one, so that products and sums are now exact, now not by the last bit.
fn sparse(random: &mut Random, fraction_bits: u32) -> f64 {
    let bits = 1 + random.below(u64::from(fraction_bits));
    let significand = 1 << bits | random.next() & ((1 << bits) - 1);
    let power = 2f64.powi(random.below(120) as i32 - 60);
    if random.below(2) == 0 { significand as f64 * power } else { -(significand as f64 * power) }
}

#[test]
fn exactness_is_seen_to_the_last_bit() {
    if !std::is_x86_feature_detected!("fma") {
        return;
    }
    let mut random = Random(91);
    let (mut exact, mut inexact) = (0, 0);
    for _ in 0..400_000 {
        let control = 0x1f80;
        let (a, b) = (sparse(&mut random, 52), sparse(&mut random, 52));
        let product = a * b;
        let c = match random.below(4) {
            0 => -product,
            1 => -f64::from_bits(product.to_bits() + random.below(4)),
            2 => -a.mul_add(b, -product),
            _ => sparse(&mut random, 52),
        };
        let [a, b, c] = [a, b, c].map(f64::to_bits);
        let mut m = Mxcsr(control);
        let model = sse::fma::<F64>(a, b, c, &mut m);
        let here = fused!("vfmadd213sd {a}, {b}, {c}", f64, b, a, c, control);
        assert_eq!((model, m.0), here, "{a:#x} * {b:#x} + {c:#x}");
        *(if m.0 == control { &mut exact } else { &mut inexact }) += 1;

        let (a, b) = (sparse(&mut random, 23) as f32, sparse(&mut random, 23) as f32);
        let c = if random.below(2) == 0 { -(a * b) } else { sparse(&mut random, 23) as f32 };
        let [a, b, c] = [a, b, c].map(f32::to_bits);
        let mut m = Mxcsr(control);
        let model = sse::fma::<F32>(a, b, c, &mut m);
        let here = fused!("vfmadd213ss {a}, {b}, {c}", f32, b, a, c, control);
        assert_eq!((model, m.0), here, "{a:#x} * {b:#x} + {c:#x}");
    }
    assert!(exact > 20_000 && inexact > 20_000, "{exact} {inexact}");
}
