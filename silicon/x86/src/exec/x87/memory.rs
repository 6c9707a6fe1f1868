//! Memory operands.

use silicon_float::x87::{self, F80, Source};
use silicon_memory::Word;

use crate::mem::AccessKind;
use crate::{Core, Leave, Op};

/// A memory operand of an arithmetic instruction.
pub trait Operand {
    /// Loads it.
    ///
    /// # Errors
    /// The exception or VM-exit of the access.
    fn load(core: &mut Core, op: &Op) -> Result<Source, Leave>;
}

/// m32fp.
pub struct Single;
/// m64fp.
pub struct Double;
/// m16int.
pub struct Integer16;
/// m32int.
pub struct Integer32;

impl Operand for Single {
    #[inline(always)]
    fn load(core: &mut Core, op: &Op) -> Result<Source, Leave> {
        core.load(op).map(Source::Single)
    }
}

impl Operand for Double {
    #[inline(always)]
    fn load(core: &mut Core, op: &Op) -> Result<Source, Leave> {
        core.load(op).map(Source::Double)
    }
}

impl Operand for Integer16 {
    #[inline(always)]
    fn load(core: &mut Core, op: &Op) -> Result<Source, Leave> {
        core.load::<u16>(op).map(|v| x87::from_i16(v as i16).into())
    }
}

impl Operand for Integer32 {
    #[inline(always)]
    fn load(core: &mut Core, op: &Op) -> Result<Source, Leave> {
        core.load::<u32>(op).map(|v| x87::from_i32(v as i32).into())
    }
}

/// A range of linear addresses that an instruction reads or writes in pieces.
#[derive(Clone, Copy)]
pub struct Area {
    linear: u64,
    seg: u8,
    mask: u64,
}

impl Core {
    /// The memory operand as a range of `bytes`. A range to write to has been checked to the last byte.
    pub(super) fn area(&mut self, op: &Op, bytes: u64, kind: AccessKind) -> Result<Area, Leave> {
        let offset = self.address(op);
        let linear = self.linear(op.seg, offset, bytes, kind)?;
        let mask = if self.mode.is_64() { u64::MAX } else { 0xffff_ffff };
        let within_page = (linear & 0xfff) + bytes <= 4096;
        // Within a page, what the first piece may do the others may as well.
        if kind == AccessKind::Write && !within_page {
            // Pieces fault in order: of an m80 operand the significand, then sign and exponent (as an AMD EPYC does).
            let first = if bytes == 10 { 8 } else { bytes };
            self.check_store(linear, op.seg, first)?;
            if bytes > first {
                self.check_store(linear.wrapping_add(first) & mask, op.seg, bytes - first)?;
            }
        }
        Ok(Area { linear, seg: op.seg, mask })
    }

    /// Loads the piece at `at`.
    pub(super) fn load_piece<T: Word>(&mut self, area: Area, at: u64) -> Result<T, Leave> {
        self.load_linear(area.linear.wrapping_add(at) & area.mask, area.seg)
    }

    /// Stores the piece at `at`.
    pub(super) fn store_piece<T: Word>(&mut self, area: Area, at: u64, value: T) -> Result<(), Leave> {
        self.store_linear(area.linear.wrapping_add(at) & area.mask, area.seg, value)
    }

    /// Loads the register image at `at`.
    pub(super) fn load_f80_piece(&mut self, area: Area, at: u64) -> Result<F80, Leave> {
        self.image_access(at, |core| {
            let significand = core.load_piece(area, at)?;
            let sign_exponent = core.load_piece(area, at + 8)?;
            Ok(F80 { significand, sign_exponent })
        })
    }

    /// An operand of 80 bits must be aligned to 8 bytes where alignment is checked; the images of FSAVE follow one
    /// another without gaps, and only the area must be aligned.
    fn image_access<R>(&mut self, at: u64, access: impl FnOnce(&mut Self) -> R) -> R {
        if at == 0 { access(self) } else { self.unaligned(access) }
    }

    /// Stores a register image at `at`.
    pub(super) fn store_f80_piece(&mut self, area: Area, at: u64, value: F80) -> Result<(), Leave> {
        self.image_access(at, |core| {
            core.store_piece(area, at, value.significand)?;
            core.store_piece(area, at + 8, value.sign_exponent)
        })
    }

    /// Loads an m80 operand.
    pub(super) fn load_f80(&mut self, op: &Op) -> Result<F80, Leave> {
        let area = self.area(op, 10, AccessKind::Read)?;
        self.load_f80_piece(area, 0)
    }

    /// Stores an m80 operand.
    pub(super) fn store_f80(&mut self, op: &Op, value: F80) -> Result<(), Leave> {
        let area = self.area(op, 10, AccessKind::Write)?;
        self.store_f80_piece(area, 0, value)
    }
}
