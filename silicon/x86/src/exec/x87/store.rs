//! Instructions that store ST(0): FST, FSTP, FIST, FISTP, FISTTP and FBSTP.

use silicon_float::Flags;
use silicon_float::x87::{self, ControlWord, Destination, F80, Outcome};
use silicon_memory::Word;

use super::status::StackFault;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// The eighteen-digit packed BCD indefinite.
const BCD_INDEFINITE: [u8; 10] = [0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff];

/// Converts ST(0), stores it with `store`, and pops `POPS` times. An empty ST(0) stores `indefinite`.
#[inline(always)]
fn convert<T, const POPS: u8>(
    core: &mut Core,
    op: &Op,
    indefinite: T,
    convert: impl FnOnce(F80, ControlWord) -> Outcome<T>,
    store: impl FnOnce(&mut Core, &Op, T) -> Result<(), Leave>,
) -> Done {
    core.begin_x87()?;
    let Some(value) = core.fpu.stack(0) else {
        if core.stack_faults_masked() {
            store(core, op, indefinite)?;
        }
        return core.stack_fault(op, StackFault::Underflow, |fpu| fpu.pop_stack(POPS));
    };
    let control = core.fpu.control();
    let outcome = convert(value, control);
    let (flags, c1) = (outcome.flags, outcome.c1);
    if outcome.reaches(Destination::Memory, control) {
        store(core, op, outcome.value)?;
        core.fpu.pop_stack(POPS);
    }
    core.complete_x87(op, flags, c1);
    Ok(())
}

#[inline(always)]
fn store<T: Word>(core: &mut Core, op: &Op, value: T) -> Result<(), Leave> {
    core.store(op, value)
}

/// FST m32fp, FSTP m32fp.
pub fn fst_m32<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    convert::<_, POPS>(core, op, 0xffc0_0000, x87::to_f32, store::<u32>)
}

/// FST m64fp, FSTP m64fp.
pub fn fst_m64<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    convert::<_, POPS>(core, op, 0xfff8_0000_0000_0000, x87::to_f64, store::<u64>)
}

/// FSTP m80fp: any pattern, as it is.
pub fn fstp_m80(core: &mut Core, op: &Op) -> Done {
    let as_it_is = |value, _| Outcome { value, flags: Flags::NONE, c1: false };
    convert::<_, 1>(core, op, F80::INDEFINITE, as_it_is, Core::store_f80)
}

/// FBSTP.
pub fn fbstp(core: &mut Core, op: &Op) -> Done {
    convert::<_, 1>(core, op, BCD_INDEFINITE, x87::to_bcd, |core, op, v| core.store_f80(op, F80::from_bytes(v)))
}

/// FIST m16int, FISTP m16int.
pub fn fist_m16<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    convert::<_, POPS>(core, op, i16::MIN, x87::to_i16, |core, op, v| core.store(op, v as u16))
}

/// FIST m32int, FISTP m32int.
pub fn fist_m32<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    convert::<_, POPS>(core, op, i32::MIN, x87::to_i32, |core, op, v| core.store(op, v as u32))
}

/// FISTP m64int.
pub fn fistp_m64(core: &mut Core, op: &Op) -> Done {
    convert::<_, 1>(core, op, i64::MIN, x87::to_i64, |core, op, v| core.store(op, v as u64))
}

/// FISTTP m16int.
pub fn fisttp_m16(core: &mut Core, op: &Op) -> Done {
    convert::<_, 1>(core, op, i16::MIN, |v, _| x87::to_i16_truncated(v), |core, op, v| core.store(op, v as u16))
}

/// FISTTP m32int.
pub fn fisttp_m32(core: &mut Core, op: &Op) -> Done {
    convert::<_, 1>(core, op, i32::MIN, |v, _| x87::to_i32_truncated(v), |core, op, v| core.store(op, v as u32))
}

/// FISTTP m64int.
pub fn fisttp_m64(core: &mut Core, op: &Op) -> Done {
    convert::<_, 1>(core, op, i64::MIN, |v, _| x87::to_i64_truncated(v), |core, op, v| core.store(op, v as u64))
}

/// FSTPNCE ("no check for empty", an alias of FSTP ST(i) that the manual does not list): of an empty ST(0) it copies
/// nothing, and pops.
pub fn fstpnce_sti(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    if let Some(value) = core.fpu.stack(0) {
        core.fpu.set_stack(op.a, value);
    }
    core.fpu.pop_stack(1);
    core.complete_x87(op, Flags::NONE, false);
    Ok(())
}

/// FST ST(i), FSTP ST(i).
pub fn fst_sti<const POPS: u8>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let i = op.a;
    let Some(value) = core.fpu.stack(0) else {
        return core.stack_fault(op, StackFault::Underflow, |fpu| {
            fpu.set_stack(i, F80::INDEFINITE);
            fpu.pop_stack(POPS);
        });
    };
    core.fpu.set_stack(i, value);
    core.fpu.pop_stack(POPS);
    core.complete_x87(op, Flags::NONE, false);
    Ok(())
}
