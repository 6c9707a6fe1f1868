//! ADD, SUB, MUL, DIV and SQRT.

use crate::exact;
use crate::flags::{Flags, Rounding};
use crate::mxcsr::Mxcsr;
use crate::sse::format::{Float, Layout, Operand, Value, deliver, infinity, invalid, propagate, zero};
use crate::sse::native::{is_negative, is_normal, is_plain, is_well_inside, is_zero, product_is_exact};

/// Sets PE unless it is set already or `is_exact` finds that the result is exact.
#[inline]
fn note_inexact(mxcsr: &mut Mxcsr, is_exact: impl FnOnce() -> bool) {
    if !mxcsr.flags().contains(Flags::PE) && !is_exact() {
        mxcsr.raise(Flags::PE);
    }
}

/// ADDSS, ADDSD: `a + b`.
#[inline]
pub fn add<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_plain::<F>(a) && is_plain::<F>(b) {
        let sum = F::native_add(a, b);
        // A sum that is tiny is exact, and so is a zero.
        if is_plain::<F>(sum) {
            note_inexact(mxcsr, || F::sum_is_exact(a, b, sum));
            return sum;
        }
    }
    add_slow::<F>(a, b, mxcsr)
}

/// SUBSS, SUBSD: `a - b`.
#[inline]
pub fn sub<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_plain::<F>(a) && is_plain::<F>(b) {
        let difference = F::native_sub(a, b);
        if is_plain::<F>(difference) {
            note_inexact(mxcsr, || F::sum_is_exact(a, F::negate(b), difference));
            return difference;
        }
    }
    sub_slow::<F>(a, b, mxcsr)
}

/// MULSS, MULSD: `a * b`.
#[inline]
pub fn mul<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_plain::<F>(a) && is_plain::<F>(b) {
        let product = F::native_mul(a, b);
        if is_well_inside::<F>(product) {
            note_inexact(mxcsr, || product_is_exact::<F>(a, b));
            return product;
        }
        if is_zero::<F>(a) || is_zero::<F>(b) {
            return product;
        }
    }
    mul_slow::<F>(a, b, mxcsr)
}

/// DIVSS, DIVSD: `a / b`.
#[inline]
pub fn div<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_plain::<F>(a) && is_normal::<F>(b) {
        let quotient = F::native_div(a, b);
        if is_well_inside::<F>(quotient) {
            note_inexact(mxcsr, || product_is_exact::<F>(quotient, b) && F::native_mul(quotient, b) == a);
            return quotient;
        }
        if is_zero::<F>(a) {
            return quotient;
        }
    }
    div_slow::<F>(a, b, mxcsr)
}

/// SQRTSS, SQRTSD: the square root of `b`.
#[inline]
pub fn sqrt<F: Float>(b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    if mxcsr.rounds_to_nearest() && is_normal::<F>(b) && !is_negative::<F>(b) {
        let root = F::native_sqrt(b);
        note_inexact(mxcsr, || product_is_exact::<F>(root, root) && F::native_mul(root, root) == b);
        return root;
    }
    sqrt_slow::<F>(b, mxcsr)
}

#[cold]
fn add_slow<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let (a, b) = (Operand::new::<F>(a, *mxcsr), Operand::new::<F>(b, *mxcsr));
    if let Some(nan) = propagate::<F>(&[a, b], mxcsr) {
        return nan;
    }
    sum::<F>(a, b, mxcsr)
}

#[cold]
fn sub_slow<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let (a, mut b) = (Operand::new::<F>(a, *mxcsr), Operand::new::<F>(b, *mxcsr));
    if let Some(nan) = propagate::<F>(&[a, b], mxcsr) {
        return nan;
    }
    b.negative = !b.negative;
    b.bits ^= F::SIGN;
    if let Value::Finite(finite) = b.value {
        b.value = Value::Finite(finite.negate());
    }
    sum::<F>(a, b, mxcsr)
}

/// The sign of a sum that is exactly zero, of numbers that are not both zero.
pub(crate) fn cancelled<F: Float>(mxcsr: &Mxcsr) -> F::Bits {
    zero::<F>(mxcsr.rounding() == Rounding::Down)
}

fn sum<F: Float>(a: Operand, b: Operand, mxcsr: &mut Mxcsr) -> F::Bits {
    if let (Value::Infinity, Value::Infinity) = (a.value, b.value)
        && a.negative != b.negative
    {
        return invalid::<F>(mxcsr);
    }
    if !mxcsr.before(a.denormal_flag() | b.denormal_flag()) {
        return F::from_u64(a.bits);
    }
    match (a.value, b.value) {
        (Value::Infinity, _) => F::from_u64(a.bits),
        (_, Value::Infinity) => F::from_u64(b.bits),
        (Value::Zero, Value::Zero) if a.negative == b.negative => F::from_u64(a.bits),
        (Value::Finite(x), Value::Finite(y)) => match exact::add(x.widen(), y.widen()) {
            Some(sum) => deliver::<F>(sum, mxcsr),
            None => cancelled::<F>(mxcsr),
        },
        // Through rounding: a denormal with a zero is tiny.
        (Value::Finite(x), _) | (_, Value::Finite(x)) => deliver::<F>(x.widen(), mxcsr),
        _ => cancelled::<F>(mxcsr),
    }
}

#[cold]
fn mul_slow<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let (a, b) = (Operand::new::<F>(a, *mxcsr), Operand::new::<F>(b, *mxcsr));
    if let Some(nan) = propagate::<F>(&[a, b], mxcsr) {
        return nan;
    }
    if let (Value::Infinity, Value::Zero) | (Value::Zero, Value::Infinity) = (a.value, b.value) {
        return invalid::<F>(mxcsr);
    }
    let negative = a.negative != b.negative;
    if !mxcsr.before(a.denormal_flag() | b.denormal_flag()) {
        return F::from_u64(a.bits);
    }
    match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => deliver::<F>(exact::multiply(x, y), mxcsr),
        (Value::Infinity, _) | (_, Value::Infinity) => infinity::<F>(negative),
        _ => zero::<F>(negative),
    }
}

#[cold]
fn div_slow<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let (a, b) = (Operand::new::<F>(a, *mxcsr), Operand::new::<F>(b, *mxcsr));
    if let Some(nan) = propagate::<F>(&[a, b], mxcsr) {
        return nan;
    }
    let negative = a.negative != b.negative;
    match (a.value, b.value) {
        (Value::Infinity, Value::Infinity) | (Value::Zero, Value::Zero) => return invalid::<F>(mxcsr),
        // Division by zero has priority over a denormal dividend.
        (Value::Finite(_), Value::Zero) => {
            mxcsr.raise(Flags::ZE);
            return infinity::<F>(negative);
        }
        _ => {}
    }
    if !mxcsr.before(a.denormal_flag() | b.denormal_flag()) {
        return F::from_u64(a.bits);
    }
    match (a.value, b.value) {
        (Value::Finite(x), Value::Finite(y)) => deliver::<F>(exact::divide(x, y), mxcsr),
        (Value::Infinity, _) => infinity::<F>(negative),
        _ => zero::<F>(negative),
    }
}

#[cold]
fn sqrt_slow<F: Float>(b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    let b = Operand::new::<F>(b, *mxcsr);
    if let Some(nan) = propagate::<F>(&[b], mxcsr) {
        return nan;
    }
    match b.value {
        Value::Zero => F::from_u64(b.bits),
        _ if b.negative => invalid::<F>(mxcsr),
        Value::Finite(x) => {
            if !mxcsr.before(b.denormal_flag()) {
                return F::from_u64(b.bits);
            }
            deliver::<F>(exact::square_root(x), mxcsr)
        }
        _ => F::from_u64(b.bits),
    }
}
