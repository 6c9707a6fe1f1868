//! Comparisons, to the condition codes or to RFLAGS, and FXAM.

use silicon_float::x87::{self, Class, Destination, F80, Source};
use silicon_float::{Flags, Ordering4, Signalling};
use x86_defs::rflags;

use super::memory::Operand;
use super::status::{StackFault, fsw};
use crate::core::Fpu;
use crate::op::Done;
use crate::{Core, Op};

const CODES: u16 = fsw::C3 | fsw::C2 | fsw::C0;

fn codes(ordering: Ordering4) -> u16 {
    match ordering {
        Ordering4::Unordered => CODES,
        Ordering4::Less => fsw::C0,
        Ordering4::Equal => fsw::C3,
        Ordering4::Greater => 0,
    }
}

fn compare_to_codes(core: &mut Core, op: &Op, b: Option<Source>, signalling: Signalling, pops: u8) -> Done {
    let (Some(a), Some(b)) = (core.fpu.stack(0), b) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| {
            fpu.set_conditions(CODES, CODES);
            fpu.pop_stack(pops);
        });
    };
    let outcome = x87::compare(a, b, signalling);
    if outcome.reaches(Destination::Register, core.fpu.control()) {
        core.fpu.set_conditions(CODES, codes(outcome.value));
        core.fpu.pop_stack(pops);
    }
    core.complete_x87(op, outcome.flags, false);
    Ok(())
}

/// FCOM, FCOMP, FICOM, FICOMP with a memory operand.
pub fn fcom_memory<M: Operand, const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let b = M::load(core, op)?;
    compare_to_codes(core, op, Some(b), Signalling::Signalling, POPS)
}

/// FCOM, FCOMP and FCOMPP with ST(i).
pub fn fcom_sti<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let b = core.fpu.stack(op.a).map(Source::from);
    compare_to_codes(core, op, b, Signalling::Signalling, POPS)
}

/// FUCOM, FUCOMP and FUCOMPP with ST(i).
pub fn fucom_sti<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let b = core.fpu.stack(op.a).map(Source::from);
    compare_to_codes(core, op, b, Signalling::Quiet, POPS)
}

/// FTST.
pub fn ftst(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    compare_to_codes(core, op, Some(F80::ZERO.into()), Signalling::Signalling, 0)
}

fn flags(ordering: Ordering4) -> u64 {
    match ordering {
        Ordering4::Unordered => rflags::ZF | rflags::PF | rflags::CF,
        Ordering4::Less => rflags::CF,
        Ordering4::Equal => rflags::ZF,
        Ordering4::Greater => 0,
    }
}

/// Sets ZF, PF and CF, and clears OF, SF and AF.
fn compare_to_flags(core: &mut Core, op: &Op, signalling: Signalling, pops: u8) -> Done {
    core.begin_x87()?;
    let (Some(a), Some(b)) = (core.fpu.stack(0), core.fpu.stack(op.a)) else {
        if core.stack_faults_masked() {
            core.flags.set_bits(flags(Ordering4::Unordered));
        }
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.pop_stack(pops));
    };
    let outcome = x87::compare(a, b, signalling);
    if outcome.reaches(Destination::Register, core.fpu.control()) {
        core.flags.set_bits(flags(outcome.value));
        core.fpu.pop_stack(pops);
    }
    core.complete_x87(op, outcome.flags, false);
    Ok(())
}

/// FCOMI, FCOMIP.
pub fn fcomi<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    compare_to_flags(core, op, Signalling::Signalling, POPS)
}

/// FUCOMI, FUCOMIP.
pub fn fucomi<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    compare_to_flags(core, op, Signalling::Quiet, POPS)
}

fn class_codes(fpu: &Fpu) -> u16 {
    match fpu.stack(0).map(x87::examine) {
        None => fsw::C3 | fsw::C0,
        Some(Class::Unsupported) => 0,
        Some(Class::Nan) => fsw::C0,
        Some(Class::Normal) => fsw::C2,
        Some(Class::Infinity) => fsw::C2 | fsw::C0,
        Some(Class::Zero) => fsw::C3,
        Some(Class::Denormal) => fsw::C3 | fsw::C2,
    }
}

/// FXAM: C1 is the sign, of an empty register as well.
pub fn fxam(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let codes = class_codes(&core.fpu);
    core.fpu.set_conditions(CODES, codes);
    let negative = core.fpu.stack_bits(0).is_negative();
    core.complete_x87(op, Flags::NONE, negative);
    Ok(())
}
