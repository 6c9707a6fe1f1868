//! Instructions that replace ST(0), or take it apart, without a transcendental function.

use silicon_float::Flags;
use silicon_float::x87::{self, Class, ControlWord, Destination, F80, Outcome, Remainder};

use super::status::{StackFault, fsw};
use crate::op::Done;
use crate::{Core, Op};

/// Replaces ST(0) by `f` of it.
#[inline(always)]
pub(super) fn replace(core: &mut Core, op: &Op, f: impl FnOnce(F80, ControlWord) -> Outcome<F80>) -> Done {
    core.begin_x87()?;
    let Some(value) = core.fpu.stack(0) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    let outcome = f(value, core.fpu.control());
    core.deliver_x87(op, outcome, 0, 0)
}

fn exact(value: F80) -> Outcome<F80> {
    Outcome { value, flags: Flags::NONE, c1: false }
}

/// FCHS.
pub fn fchs(core: &mut Core, op: &Op) -> Done {
    replace(core, op, |value, _| exact(value.chs()))
}

/// FABS.
pub fn fabs(core: &mut Core, op: &Op) -> Done {
    replace(core, op, |value, _| exact(value.abs()))
}

/// FSQRT.
pub fn fsqrt(core: &mut Core, op: &Op) -> Done {
    replace(core, op, x87::sqrt)
}

/// FRNDINT.
pub fn frndint(core: &mut Core, op: &Op) -> Done {
    replace(core, op, x87::round_to_int)
}

/// FSCALE.
pub fn fscale(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let (Some(a), Some(b)) = (core.fpu.stack(0), core.fpu.stack(1)) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    let outcome = x87::scale(a, b, core.fpu.control());
    core.deliver_x87(op, outcome, 0, 0)
}

/// FXTRACT: the exponent replaces ST(0), the significand is pushed.
pub fn fxtract(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    replace_and_push(core, op, |value, control| {
        let outcome = x87::extract(value, control);
        let Outcome { value, flags, c1 } = outcome;
        Outcome { value: x87::Pair { replaced: value.exponent, pushed: value.significand }, flags, c1 }
    })
}

/// Replaces ST(0) and pushes, after [`Core::begin_x87`].
pub(super) fn replace_and_push(
    core: &mut Core,
    op: &Op,
    f: impl FnOnce(F80, ControlWord) -> Outcome<x87::Pair>,
) -> Done {
    let Some(value) = core.fpu.stack(0) else {
        return both_indefinite(core, op, StackFault::Underflow);
    };
    if core.fpu.stack(7).is_some() {
        return both_indefinite(core, op, StackFault::Overflow);
    }
    let control = core.fpu.control();
    let outcome = f(value, control);
    if outcome.reaches(Destination::Register, control) {
        core.fpu.set_stack(0, outcome.value.replaced);
        core.fpu.push_stack(outcome.value.pushed);
    }
    core.complete_x87(op, outcome.flags, outcome.c1);
    Ok(())
}

fn both_indefinite(core: &mut Core, op: &Op, fault: StackFault) -> Done {
    core.stack_fault(op, fault, |fpu| {
        fpu.set_stack(0, F80::INDEFINITE);
        fpu.push_stack(F80::INDEFINITE);
    })
}

/// FPREM.
pub fn fprem(core: &mut Core, op: &Op) -> Done {
    remainder(core, op, x87::fprem)
}

/// FPREM1.
pub fn fprem1(core: &mut Core, op: &Op) -> Done {
    remainder(core, op, x87::fprem1)
}

fn remainder(core: &mut Core, op: &Op, f: fn(F80, F80, ControlWord) -> Outcome<Remainder>) -> Done {
    core.begin_x87()?;
    let (Some(a), Some(b)) = (core.fpu.stack(0), core.fpu.stack(1)) else {
        core.fpu.set_conditions(fsw::C2, 0);
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    let control = core.fpu.control();
    let outcome = f(a, b, control);
    let Remainder { value, partial, quotient } = outcome.value;
    core.fpu.set_conditions(fsw::C2, 0);
    if outcome.reaches(Destination::Register, control) {
        core.fpu.set_stack(0, value);
    }
    // There is no quotient of what is invalid or not a number, nor of what stopped before the operation.
    if outcome.reaches(Destination::Register, control) && x87::examine(value) != Class::Nan {
        let bit = |set: bool, code: u16| if set { code } else { 0 };
        let codes = bit(partial, fsw::C2) | bit(quotient & 4 != 0, fsw::C0) | bit(quotient & 2 != 0, fsw::C3);
        core.fpu.set_conditions(fsw::C0 | fsw::C2 | fsw::C3, codes);
    }
    core.complete_x87(op, outcome.flags, quotient & 1 != 0);
    Ok(())
}
