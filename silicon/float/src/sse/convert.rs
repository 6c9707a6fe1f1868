//! Conversions between the two formats, and to integral numbers in the same format.

use crate::flags::{Flags, Rounding};
use crate::mxcsr::Mxcsr;
use crate::round::to_integer;
use crate::sse::format::{F32, F64, Float, Layout, Operand, Value, deliver, infinity, propagate, zero};
use crate::sse::native::{is_normal, is_plain, is_well_inside};

/// CVTSS2SD.
#[inline]
pub fn f32_to_f64(a: u32, mxcsr: &mut Mxcsr) -> u64 {
    if is_plain::<F32>(a) {
        return f64::from(f32::from_bits(a)).to_bits();
    }
    convert::<F32, F64>(a, mxcsr)
}

/// CVTSD2SS.
#[inline]
pub fn f64_to_f32(a: u64, mxcsr: &mut Mxcsr) -> u32 {
    if mxcsr.rounds_to_nearest() && is_normal::<F64>(a) {
        let wide = f64::from_bits(a);
        let narrow = wide as f32;
        if is_well_inside::<F32>(narrow.to_bits()) {
            mxcsr.raise(Flags::PE.when(f64::from(narrow) != wide));
            return narrow.to_bits();
        }
    }
    convert::<F64, F32>(a, mxcsr)
}

#[cold]
fn convert<A: Float, B: Float>(a: A::Bits, mxcsr: &mut Mxcsr) -> B::Bits {
    let a = Operand::new::<A>(a, *mxcsr);
    match a.value {
        Value::Zero => zero::<B>(a.negative),
        Value::Infinity => infinity::<B>(a.negative),
        Value::Nan => {
            mxcsr.raise(Flags::IE.when(a.is_signalling::<A>()));
            let fraction = (a.bits & A::FRACTION) << (63 - A::FRACTION_BITS) >> (63 - B::FRACTION_BITS);
            let sign = if a.negative { B::SIGN } else { 0 };
            B::from_u64(sign | B::INFINITY | B::QUIET | fraction)
        }
        Value::Finite(x) => {
            if !mxcsr.before(a.denormal_flag()) {
                return zero::<B>(false);
            }
            deliver::<B>(x.widen(), mxcsr)
        }
    }
}

/// The immediate operand of ROUNDSS and its kin. Source: Intel SDM volume 2, "ROUNDSD", "Rounding Modes and Encoding of
/// Rounding Control (RC) Field".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundImm(pub u8);

impl RoundImm {
    /// The mode: of the immediate, or of MXCSR.
    pub fn rounding(self, mxcsr: Mxcsr) -> Rounding {
        if self.0 & 4 != 0 { mxcsr.rounding() } else { Rounding::from_rc(u32::from(self.0)) }
    }

    /// Whether an inexact result goes unreported.
    pub fn suppresses_precision(self) -> bool {
        self.0 & 8 != 0
    }
}

/// ROUNDSS, ROUNDSD: `a` rounded to an integral number.
pub fn round_to_int<F: Float>(a: F::Bits, immediate: RoundImm, mxcsr: &mut Mxcsr) -> F::Bits {
    let a = Operand::new::<F>(a, *mxcsr);
    if let Some(nan) = propagate::<F>(&[a], mxcsr) {
        return nan;
    }
    let Value::Finite(x) = a.value else {
        return F::from_u64(a.bits);
    };
    if x.exponent >= F::FRACTION_BITS as i32 {
        return F::from_u64(a.bits);
    }
    let Some(whole) = to_integer(x, immediate.rounding(*mxcsr)) else {
        return F::from_u64(a.bits);
    };
    if !immediate.suppresses_precision() {
        mxcsr.raise(Flags::PE.when(whole.inexact));
    }
    // Fewer bits than the significand has: exact.
    let magnitude: u64 = F::native_from_i64(whole.magnitude as i64).into();
    F::from_u64(magnitude | if a.negative { F::SIGN } else { 0 })
}
