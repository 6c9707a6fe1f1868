//! The host's own operations, and when they may stand in for the modelled ones.
//!
//! Rust's `f32` and `f64` round to nearest, ties to even, on every host. With operands that are normal or zero and a
//! result inside of the normal range, IEEE 754 leaves one possible result and one possible flag, inexact; whether that
//! is due is decided by integer arithmetic or an error-free transformation, and only while the flag is not set yet.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::sse::format::{F32, F64, Float, Layout};

/// What the host can do with a format.
pub trait Native: Sized {
    /// The bit pattern.
    type Bits: Copy + Eq + Debug + Into<u64>;

    #[doc(hidden)]
    fn from_u64(bits: u64) -> Self::Bits;
    #[doc(hidden)]
    fn native_add(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    #[doc(hidden)]
    fn native_sub(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    #[doc(hidden)]
    fn native_mul(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    #[doc(hidden)]
    fn native_div(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    #[doc(hidden)]
    fn native_sqrt(a: Self::Bits) -> Self::Bits;
    #[doc(hidden)]
    fn native_compare(a: Self::Bits, b: Self::Bits) -> Option<Ordering>;
    /// Whether `sum` is exactly `a + b`, none of which may overflow (Knuth's TwoSum).
    #[doc(hidden)]
    fn sum_is_exact(a: Self::Bits, b: Self::Bits, sum: Self::Bits) -> bool;
    /// The same number as an `f64`, for a number that is not a NaN.
    #[doc(hidden)]
    fn to_f64(a: Self::Bits) -> f64;
    #[doc(hidden)]
    fn from_f64(a: f64) -> Self::Bits;
    #[doc(hidden)]
    fn native_from_i64(a: i64) -> Self::Bits;
    #[doc(hidden)]
    fn negate(a: Self::Bits) -> Self::Bits;
    /// `a * b + c`, correctly rounded to nearest if it is well inside of the normal range.
    #[doc(hidden)]
    fn native_fma(a: Self::Bits, b: Self::Bits, c: Self::Bits) -> Self::Bits;
    /// Whether `result` is exactly `a * b + c`. None where that is not easy to see.
    #[doc(hidden)]
    fn fma_is_exact(a: Self::Bits, b: Self::Bits, c: Self::Bits, result: Self::Bits) -> Option<bool>;
}

macro_rules! native {
    ($format:ty, $float:ty, $bits:ty, $fma:path, $fma_is_exact:path) => {
        impl Native for $format {
            type Bits = $bits;

            #[inline]
            fn from_u64(bits: u64) -> $bits {
                bits as $bits
            }
            #[inline]
            fn native_add(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) + <$float>::from_bits(b)).to_bits()
            }
            #[inline]
            fn native_sub(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) - <$float>::from_bits(b)).to_bits()
            }
            #[inline]
            fn native_mul(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) * <$float>::from_bits(b)).to_bits()
            }
            #[inline]
            fn native_div(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) / <$float>::from_bits(b)).to_bits()
            }
            #[inline]
            fn native_sqrt(a: $bits) -> $bits {
                <$float>::from_bits(a).sqrt().to_bits()
            }
            #[inline]
            fn native_compare(a: $bits, b: $bits) -> Option<Ordering> {
                <$float>::from_bits(a).partial_cmp(&<$float>::from_bits(b))
            }
            #[inline]
            fn sum_is_exact(a: $bits, b: $bits, sum: $bits) -> bool {
                let (a, b, sum) = (<$float>::from_bits(a), <$float>::from_bits(b), <$float>::from_bits(sum));
                let b_part = sum - a;
                let a_part = sum - b_part;
                (a - a_part) + (b - b_part) == 0.0
            }
            #[inline]
            fn to_f64(a: $bits) -> f64 {
                f64::from(<$float>::from_bits(a))
            }
            #[inline]
            fn from_f64(a: f64) -> $bits {
                (a as $float).to_bits()
            }
            #[inline]
            fn native_from_i64(a: i64) -> $bits {
                (a as $float).to_bits()
            }
            #[inline]
            fn negate(a: $bits) -> $bits {
                a ^ 1 << (<$bits>::BITS - 1)
            }
            #[inline]
            fn native_fma(a: $bits, b: $bits, c: $bits) -> $bits {
                $fma(<$float>::from_bits(a), <$float>::from_bits(b), <$float>::from_bits(c)).to_bits()
            }
            #[inline]
            fn fma_is_exact(a: $bits, b: $bits, c: $bits, result: $bits) -> Option<bool> {
                let [a, b, c, result] = [a, b, c, result].map(<$float>::from_bits);
                $fma_is_exact(a, b, c, result)
            }
        }
    };
}

native!(F32, f32, u32, fma32, fma32_is_exact);
native!(F64, f64, u64, f64::mul_add, fma64_is_exact);

/// `a + b` and what rounding it lost, exactly (Knuth's TwoSum).
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// In double precision: the product is exact there, and the sum, rounded to odd, may be rounded again.
#[inline]
fn fma32(a: f32, b: f32, c: f32) -> f32 {
    let (sum, lost) = two_sum(f64::from(a) * f64::from(b), f64::from(c));
    let bits = sum.to_bits();
    if lost == 0.0 || bits & 1 != 0 {
        return sum as f32;
    }
    // The neighbour on the side of what was lost.
    f64::from_bits(if (lost > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 }) as f32
}

#[inline]
fn fma32_is_exact(a: f32, b: f32, c: f32, result: f32) -> Option<bool> {
    let (sum, lost) = two_sum(f64::from(a) * f64::from(b), f64::from(c));
    Some(lost == 0.0 && f64::from(result) == sum)
}

/// It is if product and sum, with what rounding them loses, amount to it.
#[inline]
fn fma64_is_exact(a: f64, b: f64, c: f64, result: f64) -> Option<bool> {
    /// Above this the part of a product that rounding loses is a normal number, or zero.
    const SAFE: f64 = 1e-280;
    let product = a * b;
    let lost_by_product = a.mul_add(b, -product);
    let (sum, lost_by_sum) = two_sum(product, c);
    let (lost, rest) = two_sum(lost_by_product, lost_by_sum);
    let (missing, other_rest) = two_sum(result, -sum);
    // Not so where one of them overflowed, since the rest is not a number then.
    let known = rest == 0.0 && other_rest == 0.0 && (product.abs() > SAFE || a == 0.0 || b == 0.0);
    known.then_some(missing == lost)
}

/// A normal number, or a zero.
#[inline]
pub(crate) fn is_plain<F: Float>(a: F::Bits) -> bool {
    is_normal::<F>(a) || is_zero::<F>(a)
}

#[inline]
pub(crate) fn is_normal<F: Float>(a: F::Bits) -> bool {
    let field = a.into() >> F::FRACTION_BITS & F::EXPONENT_FIELD;
    field.wrapping_sub(1) < F::EXPONENT_FIELD - 1
}

/// A normal number, and not the smallest, which may come of rounding up something smaller.
#[inline]
pub(crate) fn is_well_inside<F: Float>(a: F::Bits) -> bool {
    let field = a.into() >> F::FRACTION_BITS & F::EXPONENT_FIELD;
    field.wrapping_sub(2) < F::EXPONENT_FIELD - 2
}

#[inline]
pub(crate) fn is_zero<F: Float>(a: F::Bits) -> bool {
    a.into() & !F::SIGN == 0
}

#[inline]
pub(crate) fn is_negative<F: Float>(a: F::Bits) -> bool {
    a.into() & F::SIGN != 0
}

/// Whether the product of two normal numbers, inside of the normal range, has no more bits than the format.
///
/// The product of the odd parts of the significands is odd, so that its length is the precision that it needs.
#[inline]
pub(crate) fn product_is_exact<F: Float>(a: F::Bits, b: F::Bits) -> bool {
    let odd = |bits: u64| {
        let significand = bits & F::FRACTION | 1 << F::FRACTION_BITS;
        u128::from(significand >> significand.trailing_zeros())
    };
    128 - (odd(a.into()) * odd(b.into())).leading_zeros() <= F::PRECISION
}
