//! F16C: every half-precision number, and what rounds to one.

use std::arch::asm;
use std::arch::x86_64::__m128i;

use silicon_float::{HalfImm, Mxcsr, sse};

use crate::operands::Random;
use crate::sse::mxcsr;

/// Runs one instruction from one vector register to another under an MXCSR value.
macro_rules! vectors {
    ($instruction:expr, $a:ident: $from:ty => $to:ty, $mxcsr:expr) => {{
        let a = std::mem::transmute::<$from, __m128i>($a);
        let result: __m128i;
        let mut control: u32 = $mxcsr;
        let mut saved = 0u32;
        asm!(
            "stmxcsr [{saved}]", "ldmxcsr [{control}]",
            $instruction,
            "stmxcsr [{control}]", "ldmxcsr [{saved}]",
            saved = in(reg) &mut saved, control = in(reg) &mut control,
            a = in(xmm_reg) a, r = out(xmm_reg) result,
            options(nostack),
        );
        (std::mem::transmute::<__m128i, $to>(result), control)
    }};
}

/// VCVTPH2PS.
fn from_halves(a: [u16; 8], control: u32) -> ([u32; 4], u32) {
    // SAFETY: MXCSR has all exceptions masked and is put back within the block; memory operands are locals.
    unsafe { vectors!("vcvtph2ps {r}, {a}", a: [u16; 8] => [u32; 4], control) }
}

/// VCVTPS2PH with each of its immediates.
pub fn to_halves(a: [u32; 4], immediate: u8, control: u32) -> ([u16; 8], u32) {
    // SAFETY: as above; where an exception is not masked, its handler masks it.
    unsafe {
        match immediate & 7 {
            0 => vectors!("vcvtps2ph {r}, {a}, 0", a: [u32; 4] => [u16; 8], control),
            1 => vectors!("vcvtps2ph {r}, {a}, 1", a: [u32; 4] => [u16; 8], control),
            2 => vectors!("vcvtps2ph {r}, {a}, 2", a: [u32; 4] => [u16; 8], control),
            3 => vectors!("vcvtps2ph {r}, {a}, 3", a: [u32; 4] => [u16; 8], control),
            4 => vectors!("vcvtps2ph {r}, {a}, 4", a: [u32; 4] => [u16; 8], control),
            5 => vectors!("vcvtps2ph {r}, {a}, 5", a: [u32; 4] => [u16; 8], control),
            6 => vectors!("vcvtps2ph {r}, {a}, 6", a: [u32; 4] => [u16; 8], control),
            _ => vectors!("vcvtps2ph {r}, {a}, 7", a: [u32; 4] => [u16; 8], control),
        }
    }
}

/// A number around the range of half precision.
pub fn near_half(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => random.f32(),
        1 => {
            // What is in the middle of two halves, or next to it.
            let mut m = Mxcsr::default();
            let middle = sse::f16_to_f32(random.next() as u16, &mut m) | (random.below(2) as u32) << 12;
            middle.wrapping_add(random.below(3) as u32).wrapping_sub(1)
        }
        _ => {
            let exponent = 127 - 28 + random.below(48) as u32;
            (random.next() as u32) << 31 | exponent << 23 | random.fraction(23) as u32
        }
    }
}

#[test]
fn every_half_widens_as_here() {
    if !std::is_x86_feature_detected!("f16c") {
        return;
    }
    let mut random = Random(15);
    for a in 0..=u16::MAX {
        let control = mxcsr(&mut random);
        let mut m = Mxcsr(control);
        let model = sse::f16_to_f32(a, &mut m);
        let (here, after) = from_halves([a, 0, 0, 0, 0, 0, 0, 0], control);
        assert_eq!((model, m.0), (here[0], after), "{a:#x} {control:#x}: model {model:#x}, here {:#x}", here[0]);
    }
}

#[test]
fn singles_narrow_to_halves_as_here() {
    if !std::is_x86_feature_detected!("f16c") {
        return;
    }
    let mut random = Random(16);
    for _ in 0..400_000 {
        let control = mxcsr(&mut random);
        let immediate = random.next() as u8;
        let a = near_half(&mut random);
        let mut m = Mxcsr(control);
        let model = sse::f32_to_f16(a, HalfImm(immediate), &mut m);
        let (here, after) = to_halves([a, 0, 0, 0], immediate, control);
        assert_eq!(
            (model, m.0),
            (here[0], after),
            "{a:#x} {immediate:#x} {control:#x}: model {model:#x} {:#x}, here {:#x} {after:#x}",
            m.0,
            here[0]
        );
    }
}
