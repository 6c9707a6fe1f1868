//! A stack that an event or a far transfer uses before it is committed to SS:RSP.

use x86_defs::segment::{index, rights};

use super::descriptor::{error, wrap};
use crate::core::SegmentRegister;
use crate::mem::{Access, AccessKind};
use crate::{Core, Leave};
use x86_defs::exception::vector;

/// SS:RSP and the privilege level that they are used with.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    pub ss: SegmentRegister,
    pub sp: u64,
    /// Mask of the stack pointer.
    pub mask: u64,
    pub cpl: u8,
    /// No base, no limit: 64-bit mode.
    flat: bool,
    /// Error code of #SS when the limit is exceeded.
    error: u32,
}

/// Whether `bytes` at `offset` are inside of a stack or data segment.
#[must_use]
pub fn within(segment: &SegmentRegister, offset: u64, bytes: u64) -> bool {
    let last = offset.wrapping_add(bytes - 1);
    let limit = u64::from(segment.limit);
    if segment.has(rights::EXPAND_DOWN) && !segment.has(rights::CODE) {
        let top = if segment.has(rights::DB) { 0xffff_ffff } else { 0xffff };
        offset > limit && last <= top
    } else {
        last <= limit
    }
}

impl Stack {
    /// The stack that is in use.
    #[must_use]
    pub fn current(core: &Core) -> Self {
        Self {
            ss: core.seg[index::SS],
            sp: core.gpr[4],
            mask: core.mode.stack_mask,
            cpl: core.mode.cpl,
            flat: core.mode.is_64(),
            error: 0,
        }
    }

    /// A new stack outside of 64-bit mode.
    #[must_use]
    pub fn new_legacy(ss: SegmentRegister, sp: u64, cpl: u8) -> Self {
        let mask = if ss.has(rights::DB) { 0xffff_ffff } else { 0xffff };
        Self { ss, sp, mask, cpl, flat: false, error: error(ss.selector) }
    }

    /// A new stack of a 64-bit handler.
    #[must_use]
    pub fn new_64(ss: SegmentRegister, sp: u64, cpl: u8) -> Self {
        Self { ss, sp, mask: u64::MAX, cpl, flat: true, error: 0 }
    }

    fn access(&self, kind: AccessKind) -> Access {
        Access { kind, user: self.cpl == 3, implicit: false, segment: index::SS as u8 }
    }

    fn linear(&self, core: &mut Core, offset: u64, bytes: u64) -> Result<u64, Leave> {
        if self.flat {
            return Ok(offset);
        }
        if self.ss.unusable() || !within(&self.ss, offset, bytes) {
            return Err(core.raise_code(vector::SS, self.error));
        }
        Ok(self.ss.base.wrapping_add(offset) & 0xffff_ffff)
    }

    /// Fails as pushing `bytes` would, without a store.
    ///
    /// # Errors
    /// What a store would raise.
    pub fn check_push(&self, core: &mut Core, bytes: u64) -> Result<(), Leave> {
        let low = self.sp.wrapping_sub(bytes) & self.mask;
        if low & self.mask <= self.mask - (bytes - 1) {
            let linear = self.linear(core, low, bytes)?;
            core.check_slow(linear, bytes, self.access(AccessKind::Write))
        } else {
            // The frame wraps around the end of the segment: each word is checked as it is pushed.
            Ok(())
        }
    }

    /// Pushes the low `bytes` (2, 4 or 8) of `value`.
    ///
    /// # Errors
    /// What the store raises.
    pub fn push(&mut self, core: &mut Core, bytes: u8, value: u64) -> Result<(), Leave> {
        let size = u64::from(bytes);
        let new = self.sp.wrapping_sub(size) & self.mask;
        let linear = self.linear(core, new, size)?;
        let access = self.access(AccessKind::Write);
        match bytes {
            2 => core.store_slow(linear, access, value as u16)?,
            4 => core.store_slow(linear, access, value as u32)?,
            _ => core.store_slow(linear, access, value)?,
        }
        self.sp = (self.sp & !self.mask) | new;
        Ok(())
    }

    /// Pops `bytes` (2, 4 or 8), zero-extended.
    ///
    /// # Errors
    /// What the load raises.
    pub fn pop(&mut self, core: &mut Core, bytes: u8) -> Result<u64, Leave> {
        let size = u64::from(bytes);
        let linear = self.linear(core, self.sp & self.mask, size)?;
        let access = self.access(AccessKind::Read);
        let value = match bytes {
            2 => u64::from(core.load_slow::<u16>(linear, access)?),
            4 => u64::from(core.load_slow::<u32>(linear, access)?),
            _ => core.load_slow::<u64>(linear, access)?,
        };
        self.release(size);
        Ok(value)
    }

    /// Moves the stack pointer up.
    pub fn release(&mut self, bytes: u64) {
        self.sp = (self.sp & !self.mask) | (self.sp.wrapping_add(bytes) & self.mask);
    }
}

/// The ring-`cpl` stack of a 32-bit or 16-bit TSS: (SS, ESP).
///
/// # Errors
/// #TS(TR) where it is beyond the TSS; the TSS cannot be read.
pub fn from_legacy_tss(core: &mut Core, cpl: u8) -> Result<(u16, u64), Leave> {
    let tr = core.seg[index::TR];
    let wide = tr.rights & 8 != 0;
    let (offset, sp_bytes) = if wide { (u64::from(cpl) * 8 + 4, 4) } else { (u64::from(cpl) * 4 + 2, 2) };
    if offset + sp_bytes + 1 > u64::from(tr.limit) {
        return Err(core.raise_code(vector::TS, error(tr.selector)));
    }
    let at = wrap(core, tr.base.wrapping_add(offset));
    let ss_at = wrap(core, at.wrapping_add(sp_bytes));
    let sp = if wide { u64::from(core.load_system::<u32>(at)?) } else { u64::from(core.load_system::<u16>(at)?) };
    Ok((core.load_system::<u16>(ss_at)?, sp))
}

/// Eight bytes of the 64-bit TSS: a stack pointer of RSP0-2 or of the interrupt stack table.
///
/// # Errors
/// #TS(TR) where it is beyond the TSS; the TSS cannot be read.
pub fn from_tss64(core: &mut Core, offset: u64) -> Result<u64, Leave> {
    let tr = core.seg[index::TR];
    if offset + 7 > u64::from(tr.limit) {
        return Err(core.raise_code(vector::TS, error(tr.selector)));
    }
    core.load_system(tr.base.wrapping_add(offset))
}

/// SS for a more privileged level, as the TSS gives it, checked.
///
/// # Errors
/// #TS or #SS as for "Stack Switching"; a descriptor table cannot be read.
pub fn inner_ss(core: &mut Core, selector: u16, cpl: u8) -> Result<SegmentRegister, Leave> {
    use super::descriptor::{find, is_null, mark_accessed, rpl, ss, ts};
    if is_null(selector) {
        return Err(ts(core, 0));
    }
    let Some(located) = find(core, selector)? else { return Err(ts(core, selector)) };
    let d = located.descriptor;
    if rpl(selector) != cpl || d.dpl() != cpl || !d.is_writable_data() {
        return Err(ts(core, selector));
    }
    if !d.present() {
        return Err(ss(core, selector));
    }
    mark_accessed(core, located)?;
    Ok(d.segment(selector))
}

/// SS of a 64-bit handler that runs at a more privileged level: null, with the level in DPL and RPL.
#[must_use]
pub fn null_ss(cpl: u8) -> SegmentRegister {
    SegmentRegister {
        selector: u16::from(cpl),
        base: 0,
        limit: 0,
        rights: rights::UNUSABLE | u32::from(cpl) << rights::DPL_SHIFT,
    }
}
