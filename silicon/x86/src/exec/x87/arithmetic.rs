//! FADD, FSUB, FSUBR, FMUL, FDIV, FDIVR in all their forms.

use silicon_float::x87::{self, ControlWord, F80, Outcome, Source};

use super::memory::Operand;
use super::status::StackFault;
use crate::op::Done;
use crate::{Core, Op};

/// A basic operation.
pub trait Arithmetic {
    /// What replaces `destination`.
    fn of(destination: Source, source: Source, control: ControlWord) -> Outcome<F80>;
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident) = $function:ident($x:ident, $y:ident);)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Arithmetic for $name {
            #[inline(always)]
            fn of($a: Source, $b: Source, control: ControlWord) -> Outcome<F80> {
                x87::$function($x, $y, control)
            }
        }
    )*};
}

arithmetic! {
    /// FADD, FADDP, FIADD.
    Add(a, b) = add(a, b);
    /// FMUL, FMULP, FIMUL.
    Mul(a, b) = mul(a, b);
    /// FSUB, FSUBP, FISUB: destination minus source.
    Sub(a, b) = sub(a, b);
    /// FSUBR, FSUBRP, FISUBR: source minus destination.
    SubReversed(a, b) = sub(b, a);
    /// FDIV, FDIVP, FIDIV: destination by source.
    Div(a, b) = div(a, b);
    /// FDIVR, FDIVRP, FIDIVR: source by destination.
    DivReversed(a, b) = div(b, a);
}

/// ST(0) with a memory operand.
pub fn memory<A: Arithmetic, M: Operand>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let source = M::load(core, op)?;
    let Some(destination) = core.fpu.stack(0) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.set_stack(0, F80::INDEFINITE));
    };
    let outcome = A::of(destination.into(), source, core.fpu.control());
    core.deliver_x87(op, outcome, 0, 0)
}

/// ST(0) with ST(i).
pub fn st0_sti<A: Arithmetic>(core: &mut Core, op: &Op) -> Done {
    registers::<A>(core, op, 0, op.a, 0)
}

/// ST(i) with ST(0), then pops `POPS` times.
pub fn sti_st0<A: Arithmetic, const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    registers::<A>(core, op, op.a, 0, POPS)
}

#[inline(always)]
fn registers<A: Arithmetic>(core: &mut Core, op: &Op, destination: u8, source: u8, pops: u8) -> Done {
    core.begin_x87()?;
    let (Some(a), Some(b)) = (core.fpu.stack(destination), core.fpu.stack(source)) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| {
            fpu.set_stack(destination, F80::INDEFINITE);
            fpu.pop_stack(pops);
        });
    };
    let outcome = A::of(a.into(), b.into(), core.fpu.control());
    core.deliver_x87(op, outcome, destination, pops)
}
