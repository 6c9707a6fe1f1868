//! FPATAN.

use crate::exact::{self, Finite, Unrounded};
use crate::x87::constants::PI;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, propagate};
use crate::x87::outcome::Outcome;
use crate::x87::transcendental::wide::{
    ONE, add, deliver_inexact, div, from_integer, mul, negate, odd_series, shifted, signed,
};

/// The arc tangents of one to eight eighths: exponent and significand.
const EIGHTHS: [(i32, u128); 8] = [
    (-4, 0xfead_d4d5_617b_6e32_c897_989f_3e88_8ef7),
    (-3, 0xfadb_afc9_6406_eb15_6dc7_9ef5_f7a2_17e5),
    (-2, 0xb7b0_ca0f_26f7_8473_8aa3_2122_dcfe_4483),
    (-2, 0xed63_382b_0dda_7b45_6fe4_45ec_bc3a_8d03),
    (-1, 0x8f00_5d5e_f7f5_9f9b_5c83_5e16_65c4_3747),
    (-1, 0xa4bc_7d19_34f7_0924_19a8_7f2a_457d_ac9e),
    (-1, 0xb805_3e2b_c231_9e73_cb2d_a552_10a4_443d),
    (-1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1),
];

/// Enough for `(1/16)^2n < 2^-130`.
const TERMS: u32 = 17;

/// The arc tangent of a number from zero to one.
fn arctangent(z: Unrounded) -> Unrounded {
    // The nearest eighth.
    let eighths = if z.exponent < -4 { 0 } else { ((z.significand >> (123 - z.exponent)) + 1) >> 1 };
    let Some(&(exponent, significand)) = (eighths as usize).checked_sub(1).and_then(|index| EIGHTHS.get(index)) else {
        return odd_series(z, TERMS, true);
    };
    let base = Unrounded { negative: false, exponent, significand };
    let Some(c) = from_integer(eighths as i32).map(|c| shifted(c, -3)) else {
        return base;
    };
    // atan z = atan c + atan ((z - c) / (1 + z c))
    match exact::add(z, negate(c)) {
        Some(difference) => add(base, odd_series(div(difference, add(ONE, mul(z, c))), TERMS, true)),
        None => base,
    }
}

/// The angle, from zero to pi, of a point with positive `y`.
fn angle(y: Finite, x: Finite) -> Unrounded {
    let (up, right) = (signed(y.widen(), false), signed(x.widen(), false));
    let steep = (up.exponent, up.significand) > (right.exponent, right.significand);
    let acute =
        if steep { add(shifted(PI, -1), negate(arctangent(div(right, up)))) } else { arctangent(div(up, right)) };
    if x.negative { add(PI, negate(acute)) } else { acute }
}

/// FPATAN: the angle of the point (`x`, `y`), where `x` is ST0 and `y` ST1, with the sign of `y`.
///
/// Source: Intel SDM volume 2, "FPATAN—Partial Arctangent".
pub fn fpatan(x: F80, y: F80, control: ControlWord) -> Outcome<F80> {
    let (x, y) = (Operand::new(x), Operand::new(y));
    if let Some(outcome) = propagate(&y, &x) {
        return outcome;
    }
    let before = x.denormal_flag() | y.denormal_flag();
    if control.stops(before) {
        return Outcome::with(y.pattern, before);
    }
    let eighth = shifted(PI, -2);
    let angle = match (y.value, x.value) {
        (Value::Infinity, Value::Infinity) if x.negative => Some(add(shifted(PI, -1), eighth)),
        (Value::Infinity, Value::Infinity) => Some(eighth),
        (Value::Infinity, _) => Some(shifted(PI, -1)),
        (_, Value::Infinity) | (Value::Zero, _) => x.negative.then_some(PI),
        (Value::Finite(y), Value::Finite(x)) => Some(angle(y, x)),
        _ => Some(shifted(PI, -1)),
    };
    match angle {
        Some(angle) => deliver_inexact(signed(angle, y.negative), before, control),
        None => Outcome::with(F80::zero(y.negative), before),
    }
}
