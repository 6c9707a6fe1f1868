//! Instructions that move registers or the stack: FXCH, FCMOVcc, FFREE, FINCSTP, FDECSTP, FNOP.

use silicon_float::Flags;
use silicon_float::x87::F80;

use super::status::{StackFault, fsw};
use crate::op::Done;
use crate::{Core, Op};

/// FXCH: an empty register takes part with the indefinite NaN.
pub fn fxch(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let i = op.a;
    let (a, b) = (core.fpu.stack(0), core.fpu.stack(i));
    if let (Some(a), Some(b)) = (a, b) {
        core.fpu.set_stack(0, b);
        core.fpu.set_stack(i, a);
        core.complete_x87(op, Flags::NONE, false);
        return Ok(());
    }
    core.stack_fault(op, StackFault::Underflow, |fpu| {
        fpu.set_stack(0, b.unwrap_or(F80::INDEFINITE));
        fpu.set_stack(i, a.unwrap_or(F80::INDEFINITE));
    })
}

/// FCMOVcc with the condition of Jcc that has the number `CONDITION`. C1 stays, but for a stack fault.
pub fn fcmov<const CONDITION: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let (Some(_), Some(value)) = (core.fpu.stack(0), core.fpu.stack(op.a)) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    if core.flags.condition::<CONDITION>() {
        core.fpu.set_stack(0, value);
    }
    core.note_x87_pointer(op);
    Ok(())
}

/// FFREE; FFREEP also pops.
pub fn ffree<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    core.fpu.free(op.a);
    core.fpu.pop_stack(POPS);
    core.fpu.set_conditions(fsw::C1, 0);
    core.note_x87_pointer(op);
    Ok(())
}

/// FINCSTP: tags stay.
pub fn fincstp(core: &mut Core, op: &Op) -> Done {
    move_top(core, op, 1)
}

/// FDECSTP: tags stay.
pub fn fdecstp(core: &mut Core, op: &Op) -> Done {
    move_top(core, op, 7)
}

fn move_top(core: &mut Core, op: &Op, by: u8) -> Done {
    core.begin_x87()?;
    core.fpu.set_top(core.fpu.top() + by);
    core.fpu.set_conditions(fsw::C1, 0);
    core.note_x87_pointer(op);
    Ok(())
}

/// FNOP: changes nothing but FIP.
pub fn fnop(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    core.note_x87_pointer(op);
    Ok(())
}
