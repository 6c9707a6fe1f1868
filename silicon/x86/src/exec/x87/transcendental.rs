//! F2XM1, FYL2X, FYL2XP1, FPATAN, FSIN, FCOS, FSINCOS and FPTAN.

use silicon_float::Flags;
use silicon_float::x87::{self, ControlWord, F80, Outcome, Pair};

use super::status::{StackFault, fsw};
use super::unary::{replace, replace_and_push};
use crate::op::Done;
use crate::{Core, Op};

/// F2XM1.
pub fn f2xm1(core: &mut Core, op: &Op) -> Done {
    replace(core, op, x87::f2xm1)
}

/// FYL2X.
pub fn fyl2x(core: &mut Core, op: &Op) -> Done {
    replace_two(core, op, x87::fyl2x)
}

/// FYL2XP1.
pub fn fyl2xp1(core: &mut Core, op: &Op) -> Done {
    replace_two(core, op, x87::fyl2xp1)
}

/// FPATAN.
pub fn fpatan(core: &mut Core, op: &Op) -> Done {
    replace_two(core, op, x87::fpatan)
}

/// Replaces ST(1) by `f` of ST(0) and ST(1), and pops.
fn replace_two(core: &mut Core, op: &Op, f: fn(F80, F80, ControlWord) -> Outcome<F80>) -> Done {
    core.begin_x87()?;
    let (Some(x), Some(y)) = (core.fpu.stack(0), core.fpu.stack(1)) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| {
            fpu.set_stack(1, F80::INDEFINITE);
            fpu.pop_stack(1);
        });
    };
    let outcome = f(x, y, core.fpu.control());
    core.deliver_x87(op, outcome, 1, 1)
}

/// FSIN.
pub fn fsin(core: &mut Core, op: &Op) -> Done {
    angle(core, op, x87::fsin)
}

/// FCOS.
pub fn fcos(core: &mut Core, op: &Op) -> Done {
    angle(core, op, x87::fcos)
}

fn angle(core: &mut Core, op: &Op, f: fn(F80, ControlWord) -> Option<Outcome<F80>>) -> Done {
    core.begin_x87()?;
    let Some(value) = core.fpu.stack(0) else {
        core.fpu.set_conditions(fsw::C2, 0);
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    match f(value, core.fpu.control()) {
        Some(outcome) => {
            core.fpu.set_conditions(fsw::C2, 0);
            core.deliver_x87(op, outcome, 0, 0)
        }
        None => out_of_range(core, op),
    }
}

/// FSINCOS.
pub fn fsincos(core: &mut Core, op: &Op) -> Done {
    angle_pair(core, op, x87::fsincos)
}

/// FPTAN.
pub fn fptan(core: &mut Core, op: &Op) -> Done {
    angle_pair(core, op, x87::fptan)
}

fn angle_pair(core: &mut Core, op: &Op, f: fn(F80, ControlWord) -> Option<Outcome<Pair>>) -> Done {
    core.begin_x87()?;
    let control = core.fpu.control();
    let room = core.fpu.stack(7).is_none();
    let result = core.fpu.stack(0).map(|value| f(value, control));
    match result {
        Some(None) if room => out_of_range(core, op),
        Some(Some(outcome)) => {
            core.fpu.set_conditions(fsw::C2, 0);
            replace_and_push(core, op, |_, _| outcome)
        }
        // A stack fault: the function is not asked for.
        _ => {
            core.fpu.set_conditions(fsw::C2, 0);
            let indefinite = Pair { replaced: F80::INDEFINITE, pushed: F80::INDEFINITE };
            replace_and_push(core, op, |_, _| Outcome { value: indefinite, flags: Flags::NONE, c1: false })
        }
    }
}

/// The argument is 2^63 or more in magnitude: C2 says so, and it stays.
fn out_of_range(core: &mut Core, op: &Op) -> Done {
    core.fpu.set_conditions(fsw::C2, fsw::C2);
    core.complete_x87(op, Flags::NONE, false);
    Ok(())
}
