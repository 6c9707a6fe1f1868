//! Loading a segment register ("Loading Segment Registers").

use x86_defs::segment::{index, rights};

use super::descriptor::{find, gp, is_null, mark_accessed, np, require, rpl, ss};
use crate::core::SegmentRegister;
use crate::core::mode::Operating;
use crate::{Core, Leave};

/// A segment register as a load in real-address mode makes it: limit and size stay.
#[must_use]
pub fn real_mode_segment(core: &Core, segment: usize, selector: u16) -> SegmentRegister {
    let old = core.seg[segment];
    let present_data = rights::P | rights::S | rights::WRITABLE | rights::ACCESSED;
    SegmentRegister {
        selector,
        base: u64::from(selector) << 4,
        limit: old.limit,
        rights: (old.rights & (rights::G | rights::DB)) | present_data,
    }
}

/// A segment register in virtual-8086 mode.
#[must_use]
pub fn vm86_segment(selector: u16) -> SegmentRegister {
    SegmentRegister { selector, base: u64::from(selector) << 4, limit: 0xffff, rights: 0xf3 }
}

/// A null data segment register. Its base is zero.
#[must_use]
pub fn null_segment(selector: u16) -> SegmentRegister {
    SegmentRegister { selector, rights: rights::UNUSABLE, ..SegmentRegister::default() }
}

/// What loading `selector` into ES, SS, DS, FS or GS gives; [`commit`] is the other half.
///
/// # Errors
/// #GP, #NP, #SS; the descriptor table cannot be read or its accessed bit not be set.
pub fn data_segment(core: &mut Core, segment: usize, selector: u16) -> Result<SegmentRegister, Leave> {
    match core.mode.operating {
        Operating::Real => return Ok(real_mode_segment(core, segment, selector)),
        Operating::Virtual8086 => return Ok(vm86_segment(selector)),
        _ => {}
    }
    if segment == index::SS {
        return stack_segment(core, selector);
    }
    if is_null(selector) {
        return Ok(null_segment(selector));
    }
    let located = require(core, selector)?;
    let d = located.descriptor;
    if !d.is_readable() {
        return Err(gp(core, selector));
    }
    if !d.is_conforming() && (rpl(selector) > d.dpl() || core.mode.cpl > d.dpl()) {
        return Err(gp(core, selector));
    }
    if !d.present() {
        return Err(np(core, selector));
    }
    mark_accessed(core, located)?;
    Ok(d.segment(selector))
}

fn stack_segment(core: &mut Core, selector: u16) -> Result<SegmentRegister, Leave> {
    let cpl = core.mode.cpl;
    if is_null(selector) {
        return if core.mode.is_64() && cpl != 3 && rpl(selector) == cpl {
            Ok(SegmentRegister { selector, ..super::stack::null_ss(cpl) })
        } else {
            Err(core.gp0())
        };
    }
    let located = require(core, selector)?;
    let d = located.descriptor;
    if rpl(selector) != cpl || d.dpl() != cpl || !d.is_writable_data() {
        return Err(gp(core, selector));
    }
    if !d.present() {
        return Err(ss(core, selector));
    }
    mark_accessed(core, located)?;
    Ok(d.segment(selector))
}

/// SS for a return to privilege level `cpl`, into 64-bit code or not.
///
/// # Errors
/// #GP, #SS; the descriptor table cannot be read.
pub fn outer_ss(core: &mut Core, selector: u16, cpl: u8, to: Target) -> Result<SegmentRegister, Leave> {
    if is_null(selector) {
        return if to == Target::Code64 && cpl != 3 && rpl(selector) == cpl {
            Ok(SegmentRegister { selector, ..super::stack::null_ss(cpl) })
        } else {
            Err(core.gp0())
        };
    }
    let Some(located) = find(core, selector)? else { return Err(gp(core, selector)) };
    let d = located.descriptor;
    if rpl(selector) != cpl || d.dpl() != cpl || !d.is_writable_data() {
        return Err(gp(core, selector));
    }
    if !d.present() {
        return Err(ss(core, selector));
    }
    mark_accessed(core, located)?;
    Ok(d.segment(selector))
}

/// What kind of code a transfer goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Code64,
    /// Compatibility or protected mode.
    Legacy,
}

/// Loads the hidden part and recomputes the mode where the register has a say in it.
pub fn commit(core: &mut Core, segment: usize, register: SegmentRegister) {
    core.seg[segment] = register;
    if matches!(segment, index::CS | index::SS) || !core.mode.is_64() {
        core.update_mode();
    }
}

/// Makes data segments that a less privileged level must not use null ("RETF", "IRET").
pub fn drop_inner_segments(core: &mut Core) {
    let cpl = core.mode.cpl;
    for segment in [index::ES, index::DS, index::FS, index::GS] {
        let s = &mut core.seg[segment];
        let conforming = s.has(rights::CODE | rights::CONFORMING);
        if !s.unusable() && !conforming && s.dpl() < cpl {
            s.selector = 0;
            s.rights = rights::UNUSABLE;
        }
    }
}
