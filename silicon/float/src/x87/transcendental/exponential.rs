//! F2XM1.

use crate::exact::{Finite, Unrounded};
use crate::flags::Flags;
use crate::x87::constants::LN_OF_2;
use crate::x87::control::ControlWord;
use crate::x87::format::{F80, Operand, Value, propagate_one};
use crate::x87::outcome::Outcome;
use crate::x87::transcendental::wide::{ONE, add, deliver_inexact, div_small, mul};

/// Enough for `0.7^n / n! < 2^-130`.
const TERMS: u32 = 34;

/// F2XM1: two to the power of `a`, less one, for `a` from -1 to 1.
///
/// Outside of that range the manual leaves the result undefined; here the operand comes back, except infinities.
pub fn f2xm1(a: F80, control: ControlWord) -> Outcome<F80> {
    let a = Operand::new(a);
    if let Some(outcome) = propagate_one(&a) {
        return outcome;
    }
    match a.value {
        Value::Infinity if a.negative => Outcome::exact(F80::ONE.chs()),
        Value::Finite(x) => {
            let before = a.denormal_flag();
            if control.stops(before) {
                return Outcome::with(a.pattern, before);
            }
            finite(a.pattern, x, before, control)
        }
        _ => Outcome::exact(a.pattern),
    }
}

fn finite(pattern: F80, x: Finite, before: Flags, control: ControlWord) -> Outcome<F80> {
    if x.exponent >= 0 {
        let value = if pattern == F80::ONE.chs() { F80::packed(true, -1, 1 << 63) } else { pattern };
        return Outcome::with(value, before | Flags::PE);
    }
    deliver_inexact(exponential_less_one(mul(x.widen(), LN_OF_2)), before, control)
}

/// `e^t - 1` by Taylor's series, as `t (1 + t/2 (1 + t/3 (1 + ...)))`.
fn exponential_less_one(t: Unrounded) -> Unrounded {
    let mut sum = ONE;
    for n in (2..=TERMS).rev() {
        sum = add(ONE, mul(div_small(t, n), sum));
    }
    mul(t, sum)
}
