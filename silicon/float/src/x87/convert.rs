//! FLD and FST with single and double precision in memory.

use crate::flags::Flags;
use crate::round::{Overflow, Rules, Underflow, round};
use crate::sse::format::{Layout, infinity, pack, zero};
use crate::sse::{F32, F64, Float};
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, propagate_one};
use crate::x87::outcome::Outcome;
use crate::x87::source::widen;

/// FLD m32, and the conversion of a single precision operand: exact. A denormal raises DE, a signalling NaN IE.
pub fn from_f32(bits: u32) -> Outcome<F80> {
    load::<F32>(u64::from(bits))
}

/// FLD m64, and the conversion of a double precision operand: exact. A denormal raises DE, a signalling NaN IE.
pub fn from_f64(bits: u64) -> Outcome<F80> {
    load::<F64>(bits)
}

fn load<F: Float>(bits: u64) -> Outcome<F80> {
    let (value, denormal) = widen::<F>(bits);
    propagate_one(&Operand::new(value)).unwrap_or(Outcome::with(value, Flags::DE.when(denormal)))
}

/// FST m32: rounds to single precision.
pub fn to_f32(a: F80, control: ControlWord) -> Outcome<u32> {
    store::<F32>(a, control)
}

/// FST m64: rounds to double precision.
pub fn to_f64(a: F80, control: ControlWord) -> Outcome<u64> {
    store::<F64>(a, control)
}

fn store<F: Float>(a: F80, control: ControlWord) -> Outcome<F::Bits> {
    let a = Operand::new(a);
    match a.value {
        Value::Zero => Outcome::exact(zero::<F>(a.negative)),
        Value::Infinity => Outcome::exact(infinity::<F>(a.negative)),
        Value::Unsupported => Outcome::with(F::from_u64(F::DEFAULT_NAN), Flags::IE),
        Value::Nan => {
            let fraction = a.pattern.significand << 1 >> (64 - F::FRACTION_BITS);
            let sign = if a.negative { F::SIGN } else { 0 };
            let nan = F::from_u64(sign | F::INFINITY | F::QUIET | fraction);
            Outcome::with(nan, Flags::IE.when(a.is_signalling()))
        }
        Value::Finite(x) => {
            let masked = control.masked();
            let rules = Rules {
                precision: F::PRECISION,
                min_exponent: F::MIN_EXPONENT,
                max_exponent: F::MAX_EXPONENT,
                underflow: if masked.contains(Flags::UE) { Underflow::Denormalize } else { Underflow::Stop },
                overflow: if masked.contains(Flags::OE) { Overflow::Saturate } else { Overflow::Stop },
                ..control.rules(F::PRECISION)
            };
            let rounded = round(x.widen(), &rules);
            Outcome { value: pack::<F>(rounded), flags: rounded.flags, c1: rounded.up }
        }
    }
}
