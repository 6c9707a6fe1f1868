//! MIN and MAX, which are comparisons: on a NaN, or two zeros, the second operand comes back as it is.

use crate::mxcsr::Mxcsr;
use crate::sse::compare::{Ordering4, Signalling, comi};
use crate::sse::format::{Float, Operand};

/// MINSS, MINSD: `a` if it is less than `b`, else `b`.
#[inline]
pub fn min<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    pick::<F>(a, b, Ordering4::Less, mxcsr)
}

/// MAXSS, MAXSD: `a` if it is greater than `b`, else `b`.
#[inline]
pub fn max<F: Float>(a: F::Bits, b: F::Bits, mxcsr: &mut Mxcsr) -> F::Bits {
    pick::<F>(a, b, Ordering4::Greater, mxcsr)
}

#[inline]
fn pick<F: Float>(a: F::Bits, b: F::Bits, first_if: Ordering4, mxcsr: &mut Mxcsr) -> F::Bits {
    let chosen = if comi::<F>(a, b, Signalling::Signalling, mxcsr) == first_if { a } else { b };
    if mxcsr.denormals_are_zeros() {
        return F::from_u64(Operand::new::<F>(chosen, *mxcsr).bits);
    }
    chosen
}
