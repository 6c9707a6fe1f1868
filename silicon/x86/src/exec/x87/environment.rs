//! FNSTENV, FLDENV, FNSAVE and FRSTOR.
//!
//! Source: Intel SDM volume 1, "Saving the x87 FPU's State with FSTENV/FNSTENV and FSAVE/FNSAVE". In real-address and
//! virtual-8086 mode the pointers are linear addresses; the selectors that would add to them are not kept.

use silicon_float::x87::{self, Class, F80};

use super::memory::Area;
use super::stack::TOP_SHIFT;
use super::status::fsw;
use crate::core::Fpu;
use crate::core::mode::Operating;
use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Fields of the environment: control, status and tag word, then two fields each for FIP and FDP.
const FIELDS: usize = 7;
/// Reserved upper halves of 32-bit fields.
const RESERVED: u32 = 0xffff_0000;
/// The bits of FOP.
const FOP: u32 = 0x7ff;

/// Size of the fields, from the operand size.
pub trait Form {
    /// Bytes of a field.
    const FIELD: u64;
    /// Bytes of the environment.
    const ENVIRONMENT: u64 = FIELDS as u64 * Self::FIELD;
}

/// The 14-byte environment.
pub struct Bits16;
/// The 28-byte environment.
pub struct Bits32;

impl Form for Bits16 {
    const FIELD: u64 = 2;
}

impl Form for Bits32 {
    const FIELD: u64 = 4;
}

impl Fpu {
    /// The tag word, two bits a register: 0 valid, 1 zero, 2 special, 3 empty.
    #[must_use]
    pub fn full_tags(&self) -> u16 {
        (0..8).fold(0, |tags, r| {
            let tag = if self.ftw >> r & 1 == 0 { 3 } else { tag(self.st[r]) };
            tags | tag << (2 * r)
        })
    }

    /// Sets which registers are empty from a full tag word; the rest of it follows from what they hold.
    pub fn set_full_tags(&mut self, tags: u16) {
        self.ftw = (0..8).fold(0, |ftw, r| ftw | u8::from(tags >> (2 * r) & 3 != 3) << r);
    }
}

fn tag(value: F80) -> u16 {
    match x87::examine(value) {
        Class::Normal => 0,
        Class::Zero => 1,
        _ => 2,
    }
}

/// Whether pointers are stored as linear addresses, with FOP beside them in both forms.
fn linear_layout(core: &Core) -> bool {
    matches!(core.mode.operating, Operating::Real | Operating::Virtual8086)
}

fn fields<F: Form>(core: &Core) -> [u32; FIELDS] {
    let fpu = &core.fpu;
    let words = [fpu.fcw, fpu.fsw, fpu.full_tags()].map(|word| RESERVED | u32::from(word));
    let (fip, fdp, fop) = (fpu.fip as u32, fpu.fdp as u32, u32::from(fpu.fop));
    let pointers = match (linear_layout(core), F::FIELD) {
        (false, 4) => [fip, fop << 16, fdp, RESERVED],
        (false, _) => [fip, 0, fdp, 0],
        (true, 4) => [RESERVED | fip, fip >> 16 << 12 | fop, RESERVED | fdp, fdp >> 16 << 12],
        (true, _) => [fip, fip >> 4 & 0xf000 | fop, fdp, fdp >> 4 & 0xf000],
    };
    let mut all = [0; FIELDS];
    all[..3].copy_from_slice(&words);
    all[3..].copy_from_slice(&pointers);
    all
}

fn set_fields<F: Form>(core: &mut Core, fields: [u32; FIELDS]) {
    let linear = linear_layout(core);
    let fpu = &mut core.fpu;
    let [fcw, fsw, tags, i0, i1, d0, d1] = fields;
    fpu.fsw = fsw as u16;
    fpu.set_control(fcw as u16);
    fpu.set_full_tags(tags as u16);
    let (fip, fdp, fop) = match (linear, F::FIELD) {
        (false, 4) => (i0, d0, i1 >> 16),
        // The 16-bit form for protected mode has no opcode.
        (false, _) => (i0, d0, 0),
        (true, 4) => (i0 & 0xffff | i1 >> 12 << 16, d0 & 0xffff | d1 >> 12 << 16, i1),
        (true, _) => (i0 | (i1 & 0xf000) << 4, d0 | (d1 & 0xf000) << 4, i1),
    };
    fpu.fip = u64::from(fip);
    fpu.fdp = u64::from(fdp);
    fpu.fop = (fop & FOP) as u16;
}

fn store_environment<F: Form>(core: &mut Core, area: Area) -> Result<(), Leave> {
    for (at, field) in (0..).step_by(F::FIELD as usize).zip(fields::<F>(core)) {
        match F::FIELD {
            4 => core.store_piece(area, at, field)?,
            _ => core.store_piece(area, at, field as u16)?,
        }
    }
    Ok(())
}

fn load_environment<F: Form>(core: &mut Core, area: Area) -> Result<[u32; FIELDS], Leave> {
    let mut fields = [0; FIELDS];
    for (at, field) in (0..).step_by(F::FIELD as usize).zip(&mut fields) {
        *field = match F::FIELD {
            4 => core.load_piece::<u32>(area, at)?,
            _ => u32::from(core.load_piece::<u16>(area, at)?),
        };
    }
    Ok(fields)
}

/// Where the image of ST(i) is in the area of FNSAVE.
fn register_at<F: Form>(i: u8) -> u64 {
    F::ENVIRONMENT + 10 * u64::from(i)
}

/// FNSTENV; then masks all exceptions.
pub fn fnstenv<F: Form>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87_without_wait()?;
    let area = core.area(op, F::ENVIRONMENT, AccessKind::Write)?;
    store_environment::<F>(core, area)?;
    core.fpu.set_control(core.fpu.fcw | fsw::EXCEPTIONS);
    Ok(())
}

/// FLDENV.
pub fn fldenv<F: Form>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let area = core.area(op, F::ENVIRONMENT, AccessKind::Read)?;
    let fields = load_environment::<F>(core, area)?;
    set_fields::<F>(core, fields);
    Ok(())
}

/// FNSAVE; then initializes as FNINIT does.
pub fn fnsave<F: Form>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87_without_wait()?;
    let area = core.area(op, register_at::<F>(8), AccessKind::Write)?;
    store_environment::<F>(core, area)?;
    for i in 0..8 {
        let value = core.fpu.stack_bits(i);
        core.store_f80_piece(area, register_at::<F>(i), value)?;
    }
    core.fpu.init_x87();
    Ok(())
}

/// FRSTOR.
pub fn frstor<F: Form>(core: &mut Core, op: &Op) -> Done {
    core.begin_x87()?;
    let area = core.area(op, register_at::<F>(8), AccessKind::Read)?;
    let fields = load_environment::<F>(core, area)?;
    let mut stack = [F80::ZERO; 8];
    for (i, value) in (0..).zip(&mut stack) {
        *value = core.load_f80_piece(area, register_at::<F>(i))?;
    }
    set_fields::<F>(core, fields);
    stack.rotate_right(usize::from(core.fpu.fsw >> TOP_SHIFT & 7));
    core.fpu.st = stack;
    Ok(())
}
