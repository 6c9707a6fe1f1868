//! Instructions that push: FLD, FILD, FBLD and the constants.

use silicon_float::Flags;
use silicon_float::x87::{self, Constant, Destination, F80, Outcome};

use super::status::StackFault;
use crate::op::Done;
use crate::{Core, Op};

impl Core {
    /// Pushes `outcome`, if there is room.
    #[inline(always)]
    fn push_outcome(&mut self, op: &Op, outcome: Outcome<F80>) -> Done {
        if self.fpu.stack(7).is_some() {
            return self.stack_fault(op, StackFault::Overflow, |fpu| fpu.push_stack(F80::INDEFINITE));
        }
        if outcome.reaches(Destination::Push, self.fpu.control()) {
            self.fpu.push_stack(outcome.value);
        }
        self.complete_x87(op, outcome.flags, outcome.c1);
        Ok(())
    }

    /// Pushes what raises nothing.
    #[inline(always)]
    fn push_value(&mut self, op: &Op, value: F80) -> Done {
        self.push_outcome(op, Outcome { value, flags: Flags::NONE, c1: false })
    }
}

/// FLD m32fp.
pub fn fld_m32(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let bits = core.load(op)?;
    core.push_outcome(op, x87::from_f32(bits))
}

/// FLD m64fp.
pub fn fld_m64(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let bits = core.load(op)?;
    core.push_outcome(op, x87::from_f64(bits))
}

/// FLD m80fp: any pattern, as it is.
pub fn fld_m80(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let value = core.load_f80(op)?;
    core.push_value(op, value)
}

/// FLD ST(i).
pub fn fld_sti(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    match core.fpu.stack(op.a) {
        // An underflow, also where there is no room to push into.
        None => core.stack_fault(op, StackFault::Underflow, |fpu| fpu.push_stack(F80::INDEFINITE)),
        Some(value) => core.push_value(op, value),
    }
}

/// FILD m16int.
pub fn fild_m16(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let value = core.load::<u16>(op)?;
    core.push_value(op, x87::from_i16(value as i16))
}

/// FILD m32int.
pub fn fild_m32(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let value = core.load::<u32>(op)?;
    core.push_value(op, x87::from_i32(value as i32))
}

/// FILD m64int.
pub fn fild_m64(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let value = core.load::<u64>(op)?;
    core.push_value(op, x87::from_i64(value as i64))
}

/// FBLD.
pub fn fbld(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let digits = core.load_f80(op)?.to_bytes();
    core.push_value(op, x87::from_bcd(digits))
}

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $constant:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(core: &mut Core, op: &Op) -> Done {
            core.begin_x87()?;
            let value = x87::constant(Constant::$constant, core.fpu.control());
            core.push_value(op, value)
        }
    )*};
}

constants! {
    /// FLD1.
    fld1 = One;
    /// FLDL2T.
    fldl2t = Log2Of10;
    /// FLDL2E.
    fldl2e = Log2OfE;
    /// FLDPI.
    fldpi = Pi;
    /// FLDLG2.
    fldlg2 = Log10Of2;
    /// FLDLN2.
    fldln2 = LnOf2;
    /// FLDZ.
    fldz = Zero;
}
