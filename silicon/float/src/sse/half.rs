//! Half precision: F16C converts to and from it.
//!
//! Half-precision denormals are numbers like others: they set no flag, DAZ does not touch them and FTZ does not prevent
//! them. Source: Intel SDM volume 2, "VCVTPH2PS" and "VCVTPS2PH"; volume 1, "Half-Precision Floating-Point Conversion".

use crate::flags::{Flags, Rounding};
use crate::mxcsr::Mxcsr;
use crate::round::{Magnitude, Overflow, Rules, Underflow, round};
use crate::sse::format::{F32, Float, Layout, Operand, Value, WRAPPED};

/// Significand bits, with the implied one.
const PRECISION: u32 = 11;
/// The exponent of the largest finite number; also the bias.
const MAX_EXPONENT: i32 = 15;
const MIN_EXPONENT: i32 = 1 - MAX_EXPONENT;
const FRACTION_BITS: u32 = PRECISION - 1;
const INFINITY: u16 = 0x7c00;
const QUIET: u16 = 0x0200;
const SIGN: u16 = 0x8000;

/// VCVTPH2PS: exact; only a signalling NaN is an exception.
#[inline]
pub fn f16_to_f32(a: u16, mxcsr: &mut Mxcsr) -> u32 {
    let sign = u32::from(a & SIGN) << 16;
    let magnitude = u32::from(a & !SIGN);
    let widened = magnitude << (F32::FRACTION_BITS - FRACTION_BITS);
    let rebias = (F32::MAX_EXPONENT - MAX_EXPONENT) as u32;
    if magnitude >= u32::from(INFINITY) {
        if magnitude == u32::from(INFINITY) {
            return sign | F32::INFINITY as u32;
        }
        mxcsr.raise(Flags::IE.when(a & QUIET == 0));
        return sign | F32::INFINITY as u32 | F32::QUIET as u32 | widened;
    }
    if magnitude >= 1 << FRACTION_BITS {
        return sign | (widened + (rebias << F32::FRACTION_BITS));
    }
    if magnitude == 0 {
        return sign;
    }
    // A denormal: the leading one becomes the implied one.
    let shift = magnitude.leading_zeros() - (31 - FRACTION_BITS);
    let exponent = rebias + 1 - shift;
    sign | (((widened << shift) & F32::FRACTION as u32) | exponent << F32::FRACTION_BITS)
}

/// The immediate operand of VCVTPS2PH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HalfImm(pub u8);

impl HalfImm {
    /// The mode: of the immediate, or of MXCSR.
    pub fn rounding(self, mxcsr: Mxcsr) -> Rounding {
        if self.0 & 4 != 0 { mxcsr.rounding() } else { Rounding::from_rc(u32::from(self.0)) }
    }
}

/// VCVTPS2PH.
pub fn f32_to_f16(a: u32, immediate: HalfImm, mxcsr: &mut Mxcsr) -> u16 {
    let a = Operand::new::<F32>(a, *mxcsr);
    let sign = if a.negative { SIGN } else { 0 };
    let x = match a.value {
        Value::Zero => return sign,
        Value::Infinity => return sign | INFINITY,
        Value::Nan => {
            mxcsr.raise(Flags::IE.when(a.is_signalling::<F32>()));
            let fraction = ((a.bits & F32::FRACTION) >> (F32::FRACTION_BITS - FRACTION_BITS)) as u16;
            return sign | INFINITY | QUIET | fraction;
        }
        Value::Finite(x) => x,
    };
    if !mxcsr.before(a.denormal_flag()) {
        return 0;
    }
    let masked = mxcsr.masked();
    let rules = Rules {
        precision: PRECISION,
        min_exponent: MIN_EXPONENT,
        max_exponent: MAX_EXPONENT,
        rounding: immediate.rounding(*mxcsr),
        underflow: if masked.contains(Flags::UE) { Underflow::Denormalize } else { Underflow::Wrap(WRAPPED) },
        overflow: if masked.contains(Flags::OE) { Overflow::Saturate } else { Overflow::Wrap(WRAPPED) },
    };
    let rounded = round(x.widen(), &rules);
    mxcsr.raise(rounded.flags);
    match rounded.magnitude {
        Magnitude::Zero => sign,
        Magnitude::Infinity => sign | INFINITY,
        Magnitude::Finite { exponent, significand } => {
            let normal = significand >> 63 != 0;
            let field = if normal { (exponent + MAX_EXPONENT) as u16 & 0x1f } else { 0 };
            sign | field << FRACTION_BITS | (significand << 1 >> (64 - FRACTION_BITS)) as u16
        }
    }
}
