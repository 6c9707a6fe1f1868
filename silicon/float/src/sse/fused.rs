//! Fused multiply-add.

use crate::exact;
use crate::flags::Flags;
use crate::mxcsr::Mxcsr;
use crate::sse::arithmetic::cancelled;
use crate::sse::format::{Float, Layout, Operand, Value, deliver, infinity, invalid, propagate};
use crate::sse::native::{is_plain, is_well_inside};

/// `-a`, but a NaN as it is: what the negating and subtracting forms of FMA do to an operand.
#[inline]
pub fn negate<F: Float>(a: F::Bits) -> F::Bits {
    if a.into() & !F::SIGN > F::INFINITY { a } else { F::negate(a) }
}

/// FMA: `a * b + c`, rounded once.
///
/// With the operands of the instruction numbered from the destination, `(a, b, c)` is (1, 3, 2) for the 132 form,
/// (2, 1, 3) for 213 and (2, 3, 1) for 231: a NaN is taken from the first of `a`, `b`, `c` that is one. For the negated
/// and subtracting forms, [`negate`] `a` or `c`.
#[inline]
pub fn fma<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_plain::<F>(a) && is_plain::<F>(b) && is_plain::<F>(c) {
        let result = F::native_fma(a, b, c);
        // A zero may be a difference that is exact or a product that is tiny.
        if is_well_inside::<F>(result) {
            if mxcsr.flags().contains(Flags::PE) {
                return result;
            }
            if let Some(exact) = F::fma_is_exact(a, b, c, result) {
                mxcsr.raise(Flags::PE.when(!exact));
                return result;
            }
        }
    }
    fma_slow::<F>(a, b, c, mxcsr)
}

#[cold]
fn fma_slow<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let [a, b, c] = [a, b, c].map(|bits| Operand::new::<F>(bits, *mxcsr));
    if let Some(nan) = propagate::<F>(&[a, b, c], mxcsr) {
        return nan;
    }
    let negative = a.negative != b.negative;
    let infinite = matches!(a.value, Value::Infinity) || matches!(b.value, Value::Infinity);
    if infinite {
        let opposite = matches!(c.value, Value::Infinity) && c.negative != negative;
        if a.is_zero() || b.is_zero() || opposite {
            return invalid::<F>(mxcsr);
        }
    }
    if !mxcsr.before(a.denormal_flag() | b.denormal_flag() | c.denormal_flag()) {
        return F::from_u64(a.bits);
    }
    if infinite {
        return infinity::<F>(negative);
    }
    let product = match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => Some(exact::multiply(x, y)),
        _ => None,
    };
    match (product, c.value) {
        (_, Value::Infinity) => F::from_u64(c.bits),
        (Some(product), Value::Finite(z)) => match exact::add(product, z.widen()) {
            Some(sum) => deliver::<F>(sum, mxcsr),
            None => cancelled::<F>(mxcsr),
        },
        (Some(product), _) => deliver::<F>(product, mxcsr),
        (None, Value::Finite(z)) => deliver::<F>(z.widen(), mxcsr),
        (None, _) if negative == c.negative => F::from_u64(c.bits),
        (None, _) => cancelled::<F>(mxcsr),
    }
}
