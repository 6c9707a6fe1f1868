//! The two formats of SSE, and taking a bit pattern apart.

use crate::exact::Finite;
use crate::flags::Flags;
use crate::mxcsr::Mxcsr;
use crate::round::{Magnitude, Overflow, Rounded, Rules, Underflow, round};
use crate::sse::native::Native;

/// A binary format of SSE. Implemented by [`F32`] and [`F64`] only.
pub trait Float: Native {
    /// Significand bits, with the implied one.
    const PRECISION: u32;
    /// The exponent of the largest finite number; also the bias.
    const MAX_EXPONENT: i32;
}

/// Single precision.
#[derive(Clone, Copy, Debug)]
pub struct F32;

/// Double precision.
#[derive(Clone, Copy, Debug)]
pub struct F64;

impl Float for F32 {
    const PRECISION: u32 = 24;
    const MAX_EXPONENT: i32 = 127;
}

impl Float for F64 {
    const PRECISION: u32 = 53;
    const MAX_EXPONENT: i32 = 1023;
}

/// Masks and fields of a format.
pub(crate) trait Layout: Float {
    const FRACTION_BITS: u32 = Self::PRECISION - 1;
    const FRACTION: u64 = (1 << Self::FRACTION_BITS) - 1;
    const QUIET: u64 = 1 << (Self::FRACTION_BITS - 1);
    const EXPONENT_FIELD: u64 = 2 * Self::MAX_EXPONENT as u64 + 1;
    const INFINITY: u64 = Self::EXPONENT_FIELD << Self::FRACTION_BITS;
    const SIGN: u64 = (Self::EXPONENT_FIELD + 1) << Self::FRACTION_BITS;
    const MIN_EXPONENT: i32 = 1 - Self::MAX_EXPONENT;
    /// "QNaN floating-point indefinite".
    const DEFAULT_NAN: u64 = Self::SIGN | Self::INFINITY | Self::QUIET;
}

impl<F: Float> Layout for F {}

/// A bit pattern, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Zero,
    Finite(Finite),
    Infinity,
    Nan,
}

/// An operand: its pattern with DAZ applied, its sign, and what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub bits: u64,
    pub negative: bool,
    pub value: Value,
    pub denormal: bool,
}

impl Operand {
    pub fn new<F: Float>(bits: F::Bits, mxcsr: Mxcsr) -> Operand {
        let mut bits: u64 = bits.into();
        let negative = bits & F::SIGN != 0;
        let field = bits >> F::FRACTION_BITS & F::EXPONENT_FIELD;
        let fraction = bits & F::FRACTION;
        let top = fraction << (63 - F::FRACTION_BITS);
        let mut denormal = false;
        let value = if field == F::EXPONENT_FIELD {
            if fraction == 0 { Value::Infinity } else { Value::Nan }
        } else if field != 0 {
            let exponent = field as i32 - F::MAX_EXPONENT;
            Value::Finite(Finite { negative, exponent, significand: 1 << 63 | top })
        } else if fraction == 0 {
            Value::Zero
        } else if mxcsr.denormals_are_zeros() {
            bits &= F::SIGN;
            Value::Zero
        } else {
            denormal = true;
            Value::Finite(Finite::normalized(negative, F::MIN_EXPONENT, top))
        };
        Operand { bits, negative, value, denormal }
    }

    pub fn is_nan(&self) -> bool {
        matches!(self.value, Value::Nan)
    }

    pub fn is_zero(&self) -> bool {
        matches!(self.value, Value::Zero)
    }

    pub fn is_signalling<F: Float>(&self) -> bool {
        self.is_nan() && self.bits & F::QUIET == 0
    }

    /// The denormal-operand exception that this operand calls for.
    pub fn denormal_flag(&self) -> Flags {
        Flags::DE.when(self.denormal)
    }
}

/// The NaN that comes out of an operation on these operands: the first NaN, made quiet. None if there is none.
pub(crate) fn propagate<F: Float>(operands: &[Operand], mxcsr: &mut Mxcsr) -> Option<F::Bits> {
    let nan = operands.iter().find(|operand| operand.is_nan())?;
    mxcsr.raise(Flags::IE.when(operands.iter().any(Operand::is_signalling::<F>)));
    Some(F::from_u64(nan.bits | F::QUIET))
}

/// The response to an invalid operation.
pub(crate) fn invalid<F: Float>(mxcsr: &mut Mxcsr) -> F::Bits {
    mxcsr.raise(Flags::IE);
    F::from_u64(F::DEFAULT_NAN)
}

pub(crate) fn zero<F: Float>(negative: bool) -> F::Bits {
    F::from_u64(if negative { F::SIGN } else { 0 })
}

pub(crate) fn infinity<F: Float>(negative: bool) -> F::Bits {
    F::from_u64(if negative { F::SIGN | F::INFINITY } else { F::INFINITY })
}

/// Any adjustment that is large enough: nobody reads the result of an unmasked overflow or underflow, but whether it is
/// inexact is flagged.
pub(crate) const WRAPPED: i32 = 1 << 14;

/// How MXCSR rounds into this format.
pub(crate) fn rules<F: Float>(mxcsr: Mxcsr) -> Rules {
    let masked = mxcsr.masked();
    Rules {
        precision: F::PRECISION,
        min_exponent: F::MIN_EXPONENT,
        max_exponent: F::MAX_EXPONENT,
        rounding: mxcsr.rounding(),
        underflow: if !masked.contains(Flags::UE) {
            Underflow::Wrap(WRAPPED)
        } else if mxcsr.flushes_to_zero() {
            Underflow::Flush
        } else {
            Underflow::Denormalize
        },
        overflow: if masked.contains(Flags::OE) { Overflow::Saturate } else { Overflow::Wrap(WRAPPED) },
    }
}

/// Rounds, raises what that finds, and packs.
pub(crate) fn deliver<F: Float>(x: crate::exact::Unrounded, mxcsr: &mut Mxcsr) -> F::Bits {
    let rounded = round(x, &rules::<F>(*mxcsr));
    mxcsr.raise(rounded.flags);
    pack::<F>(rounded)
}

pub(crate) fn pack<F: Float>(rounded: Rounded) -> F::Bits {
    match rounded.magnitude {
        Magnitude::Zero => zero::<F>(rounded.negative),
        Magnitude::Infinity => infinity::<F>(rounded.negative),
        Magnitude::Finite { exponent, significand } => {
            let normal = significand >> 63 != 0;
            let field = if normal { (exponent + F::MAX_EXPONENT) as u64 & F::EXPONENT_FIELD } else { 0 };
            let fraction = significand << 1 >> (64 - F::FRACTION_BITS);
            let sign = if rounded.negative { F::SIGN } else { 0 };
            F::from_u64(sign | field << F::FRACTION_BITS | fraction)
        }
    }
}
