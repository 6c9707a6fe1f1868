//! FBLD and FBSTP: eighteen decimal digits, two a byte, and a sign.
//!
//! Source: Intel SDM volume 1, "Packed BCD Integer".

use crate::flags::Flags;
use crate::round::{Integer, to_integer};
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value};
use crate::x87::integer::from_magnitude;
use crate::x87::outcome::Outcome;

const LARGEST: u64 = 999_999_999_999_999_999;
const INDEFINITE: [u8; 10] = [0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff];

/// FBLD: exact. Digits above nine, which the manual leaves undefined, count with their weight.
pub fn from_bcd(bytes: [u8; 10]) -> F80 {
    let magnitude =
        bytes[..9].iter().rev().fold(0u64, |sum, byte| sum * 100 + u64::from(byte >> 4) * 10 + u64::from(byte & 15));
    from_magnitude(bytes[9] & 0x80 != 0, magnitude)
}

/// FBSTP, with the rounding of the control word. What has more than eighteen digits is invalid.
pub fn to_bcd(a: F80, control: ControlWord) -> Outcome<[u8; 10]> {
    let a = Operand::new(a);
    let whole = match a.value {
        Value::Zero => Some(Integer { magnitude: 0, inexact: false, up: false }),
        Value::Finite(x) => to_integer(x, control.rounding()),
        _ => None,
    };
    let Some(whole) = whole.filter(|whole| whole.magnitude <= LARGEST) else {
        return Outcome::with(INDEFINITE, Flags::IE);
    };
    let mut value = [0; 10];
    let mut rest = whole.magnitude;
    for byte in &mut value[..9] {
        *byte = (((rest / 10 % 10) << 4) | (rest % 10)) as u8;
        rest /= 100;
    }
    value[9] = if a.negative { 0x80 } else { 0 };
    Outcome { value, flags: Flags::PE.when(whole.inexact), c1: whole.up }
}
