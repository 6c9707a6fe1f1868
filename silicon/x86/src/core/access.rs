//! Loads and stores of instructions.
//!
//! Handlers use [`Core::load`], [`Core::store`] and [`Core::modify`] for their memory operand, [`Core::push`] and
//! [`Core::pop`] for the stack, and [`Core::load_linear`] and friends where the linear address is known. System
//! structures (descriptor tables, TSS) go through [`Core::load_system`] and [`Core::store_system`].
//!
//! Every access either completes or raises its exception (or VM-exit) and changes nothing. A handler must do all
//! that can fail before it changes a register, a flag or memory.

use silicon_memory::{Frame, Word};
use x86_defs::segment::index;

use crate::mem::{Access, AccessKind};
use crate::op::FLAT;
use crate::{Core, Leave, Op};

/// A run of bytes inside of one page of ordinary memory, for string instructions.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub frame: Frame,
    pub offset: usize,
    /// Bytes up to the end of the page.
    pub len: usize,
}

impl Core {
    /// Effective address of the memory operand (offset in its segment).
    #[inline(always)]
    #[must_use]
    pub fn address(&self, op: &Op) -> u64 {
        let base = self.gpr[(op.base & 31) as usize];
        let index = self.gpr[(op.index & 31) as usize];
        let sum = base.wrapping_add(index << (op.scale_drop & 3)).wrapping_add(i64::from(op.disp) as u64);
        let drop = op.scale_drop >> 2;
        (sum << drop) >> drop
    }

    /// Linear address of `offset` in segment `seg` (an index, or with [`FLAT`]), checked against the segment.
    #[inline(always)]
    pub fn linear(&mut self, seg: u8, offset: u64, bytes: u64, kind: AccessKind) -> Result<u64, Leave> {
        if seg & FLAT != 0 { Ok(offset) } else { self.segmented(seg, offset, bytes, kind) }
    }

    /// Loads the memory operand.
    #[inline(always)]
    pub fn load<T: Word>(&mut self, op: &Op) -> Result<T, Leave> {
        let offset = self.address(op);
        let linear = self.linear(op.seg, offset, T::BYTES, AccessKind::Read)?;
        self.load_linear(linear, op.seg)
    }

    /// Stores to the memory operand.
    #[inline(always)]
    pub fn store<T: Word>(&mut self, op: &Op, value: T) -> Result<(), Leave> {
        let offset = self.address(op);
        let linear = self.linear(op.seg, offset, T::BYTES, AccessKind::Write)?;
        self.store_linear(linear, op.seg, value)
    }

    /// Replaces the memory operand by `f` of it: checks that the store will be allowed before it loads.
    ///
    /// `f` must not fail; it may change flags and registers.
    #[inline(always)]
    pub fn modify<T: Word>(&mut self, op: &Op, f: impl FnOnce(&mut Self, T) -> T) -> Result<(), Leave> {
        let offset = self.address(op);
        let linear = self.linear(op.seg, offset, T::BYTES, AccessKind::Write)?;
        self.modify_linear(linear, op.seg, f)
    }

    /// Loads from a linear address at the current privilege. `seg` (index, [`FLAT`] ignored) decides #SS or #GP.
    #[inline(always)]
    pub fn load_linear<T: Word>(&mut self, linear: u64, seg: u8) -> Result<T, Leave> {
        if let Some(frame) = self.mmu.fast_frame::<T>(linear, self.mmu.need_read) {
            return Ok(frame.load(linear));
        }
        self.load_slow(linear, self.access(AccessKind::Read, seg))
    }

    /// Stores to a linear address at the current privilege.
    #[inline(always)]
    pub fn store_linear<T: Word>(&mut self, linear: u64, seg: u8, value: T) -> Result<(), Leave> {
        if let Some(frame) = self.mmu.fast_frame::<T>(linear, self.mmu.need_write) {
            frame.store(linear, value);
            return Ok(());
        }
        self.store_slow(linear, self.access(AccessKind::Write, seg), value)
    }

    /// See [`Core::modify`].
    #[inline(always)]
    pub fn modify_linear<T: Word>(
        &mut self,
        linear: u64,
        seg: u8,
        f: impl FnOnce(&mut Self, T) -> T,
    ) -> Result<(), Leave> {
        if let Some(frame) = self.mmu.fast_frame::<T>(linear, self.mmu.need_write) {
            let new = f(self, frame.load(linear));
            frame.store(linear, new);
            return Ok(());
        }
        let access = self.access(AccessKind::Write, seg);
        let old = self.load_slow::<T>(linear, access)?;
        // The translation for writing has just succeeded, so the store cannot fail (a device store is recorded).
        let flags = self.flags;
        let new = f(self, old);
        let stored = self.store_slow(linear, access, new);
        if stored.is_err() {
            self.flags = flags;
        }
        stored
    }

    /// Fails as a store of `bytes` to `linear` would, without storing.
    pub fn check_store(&mut self, linear: u64, seg: u8, bytes: u64) -> Result<(), Leave> {
        let access = self.access(AccessKind::Write, seg);
        self.check_slow(linear, bytes, access)
    }

    /// An access at the current privilege.
    #[inline(always)]
    #[must_use]
    pub fn access(&self, kind: AccessKind, seg: u8) -> Access {
        Access { kind, user: self.mode.cpl == 3, implicit: false, segment: seg & 7 }
    }

    /// Pushes a word of the operand size on the stack.
    #[inline(always)]
    pub fn push<T: Word>(&mut self, value: T) -> Result<(), Leave> {
        let sp = self.gpr[4];
        let mask = self.mode.stack_mask;
        let new = sp.wrapping_sub(T::BYTES) & mask;
        let seg = self.stack_segment();
        let linear = self.linear(seg, new, T::BYTES, AccessKind::Write)?;
        self.store_linear(linear, seg, value)?;
        self.gpr[4] = (sp & !mask) | new;
        Ok(())
    }

    /// Pops a word of the operand size off the stack.
    #[inline(always)]
    pub fn pop<T: Word>(&mut self) -> Result<T, Leave> {
        let sp = self.gpr[4];
        let mask = self.mode.stack_mask;
        let seg = self.stack_segment();
        let linear = self.linear(seg, sp & mask, T::BYTES, AccessKind::Read)?;
        let value = self.load_linear(linear, seg)?;
        self.gpr[4] = (sp & !mask) | (sp.wrapping_add(T::BYTES) & mask);
        Ok(value)
    }

    /// SS as [`Op::seg`] has it: [`FLAT`] in 64-bit mode.
    #[inline(always)]
    #[must_use]
    pub fn stack_segment(&self) -> u8 {
        index::SS as u8 | if self.mode.is_64() { FLAT } else { 0 }
    }

    /// Loads from a system structure: a supervisor access whatever the CPL.
    pub fn load_system<T: Word>(&mut self, linear: u64) -> Result<T, Leave> {
        self.load_slow(linear, Access { kind: AccessKind::Read, user: false, implicit: true, segment: index::DS as u8 })
    }

    /// Stores to a system structure.
    pub fn store_system<T: Word>(&mut self, linear: u64, value: T) -> Result<(), Leave> {
        let access = Access { kind: AccessKind::Write, user: false, implicit: true, segment: index::DS as u8 };
        self.store_slow(linear, access, value)
    }

    /// The bytes from `linear` to the end of its page, when they are ordinary memory (not a device, no store to
    /// decoded code). `None`: go element by element through [`Core::load_linear`] and [`Core::store_linear`].
    pub fn span(&mut self, linear: u64, kind: AccessKind, seg: u8) -> Result<Option<Span>, Leave> {
        let need = if kind == AccessKind::Read { self.mmu.need_read } else { self.mmu.need_write };
        let offset = (linear & 0xfff) as usize;
        if let Some(frame) = self.mmu.fast_frame::<u8>(linear, need) {
            return Ok(Some(Span { frame, offset, len: 4096 - offset }));
        }
        let access = self.access(kind, seg);
        self.check_slow(linear, 1, access)?;
        // The walk has filled the look-up, unless the page is a device's or holds decoded code.
        Ok(self.mmu.fast_frame::<u8>(linear, need).map(|frame| Span { frame, offset, len: 4096 - offset }))
    }

    // General registers by operand size. Slots as in `op::reg`.

    /// Reads a register: the low `T::BYTES` bytes (8-bit: AH..DH for slots with bit 6).
    #[inline(always)]
    #[must_use]
    pub fn get<T: Word>(&self, slot: u8) -> T {
        let value = self.gpr[(slot & 31) as usize];
        if T::BYTES == 1 { T::from_u64(value >> ((slot >> 3) & 8)) } else { T::from_u64(value) }
    }

    /// Writes a register: 32 bits zero-extend, 8 and 16 bits leave the rest.
    #[inline(always)]
    pub fn set<T: Word>(&mut self, slot: u8, value: T) {
        let register = &mut self.gpr[(slot & 31) as usize];
        let v = value.to_u64();
        match T::BYTES {
            1 => {
                let shift = (slot >> 3) & 8;
                *register = (*register & !(0xff << shift)) | (v << shift);
            }
            2 => *register = (*register & !0xffff) | v,
            _ => *register = v,
        }
    }
}
