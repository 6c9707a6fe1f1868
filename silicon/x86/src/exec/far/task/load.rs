//! Segment registers of the new task ("Exception Conditions Checked During a Task Switch").
//!
//! What is wrong with them is an exception of the new task.

use x86_defs::segment::{index, rights};

use super::image::Image;
use crate::core::SegmentRegister;
use crate::exec::segment::descriptor::{
    Located, find, is_null, mark_accessed, np, rpl, ss as stack_fault, system_type, ts,
};
use crate::exec::segment::load::{null_segment, vm86_segment};
use crate::{Core, Leave};

/// A register whose descriptor has not been looked at yet.
fn selector_only(selector: u16) -> SegmentRegister {
    null_segment(selector)
}

/// Puts the selectors into their registers, all of them unusable, and gives the task its privilege level.
pub(super) fn selectors(core: &mut Core, image: &Image, vm86: bool) {
    core.seg[index::LDTR] = selector_only(image.ldt);
    for (segment, &selector) in image.selectors.iter().enumerate() {
        core.seg[segment] = if vm86 { vm86_segment(selector) } else { selector_only(selector) };
    }
    if !vm86 {
        // An exception while the descriptors are loaded is one of the new task's level. CS is never unusable.
        let level = u32::from(rpl(image.selectors[index::CS])) << rights::DPL_SHIFT;
        core.seg[index::SS].rights = rights::UNUSABLE | level;
        core.seg[index::CS].rights =
            rights::P | rights::S | rights::CODE | rights::READABLE | rights::ACCESSED | rights::DB | rights::G | level;
        core.seg[index::CS].limit = u32::MAX;
    }
    core.update_mode();
}

/// Loads the descriptors behind the selectors.
pub(super) fn descriptors(core: &mut Core, image: &Image, vm86: bool) -> Result<(), Leave> {
    ldt(core, image.ldt)?;
    if vm86 {
        return Ok(());
    }
    let cpl = rpl(image.selectors[index::CS]);
    code(core, image.selectors[index::CS], cpl)?;
    stack(core, image.selectors[index::SS], cpl)?;
    for segment in [index::ES, index::DS, index::FS, index::GS] {
        data(core, segment, image.selectors[segment], cpl)?;
    }
    Ok(())
}

fn named(core: &mut Core, selector: u16) -> Result<Located, Leave> {
    match find(core, selector)? {
        Some(located) if !is_null(selector) => Ok(located),
        _ => Err(ts(core, selector)),
    }
}

fn ldt(core: &mut Core, selector: u16) -> Result<(), Leave> {
    if is_null(selector) {
        return Ok(());
    }
    if selector & 4 != 0 {
        return Err(ts(core, selector));
    }
    let d = named(core, selector)?.descriptor;
    if d.system_type() != Some(system_type::LDT) || !d.present() {
        return Err(ts(core, selector));
    }
    core.seg[index::LDTR] = d.segment(selector);
    Ok(())
}

fn code(core: &mut Core, selector: u16, cpl: u8) -> Result<(), Leave> {
    let located = named(core, selector)?;
    let d = located.descriptor;
    let fits = if d.is_conforming() { d.dpl() <= cpl } else { d.dpl() == cpl };
    if !d.is_code() || !fits {
        return Err(ts(core, selector));
    }
    if !d.present() {
        return Err(np(core, selector));
    }
    mark_accessed(core, located)?;
    core.seg[index::CS] = d.segment(selector);
    core.update_mode();
    Ok(())
}

fn stack(core: &mut Core, selector: u16, cpl: u8) -> Result<(), Leave> {
    let located = named(core, selector)?;
    let d = located.descriptor;
    if !d.is_writable_data() || d.dpl() != cpl || rpl(selector) != cpl {
        return Err(ts(core, selector));
    }
    if !d.present() {
        return Err(stack_fault(core, selector));
    }
    mark_accessed(core, located)?;
    core.seg[index::SS] = d.segment(selector);
    core.update_mode();
    Ok(())
}

fn data(core: &mut Core, segment: usize, selector: u16, cpl: u8) -> Result<(), Leave> {
    if is_null(selector) {
        return Ok(());
    }
    let located = named(core, selector)?;
    let d = located.descriptor;
    let visible = d.is_conforming() || (cpl <= d.dpl() && rpl(selector) <= d.dpl());
    if !d.is_readable() || !visible {
        return Err(ts(core, selector));
    }
    if !d.present() {
        return Err(np(core, selector));
    }
    mark_accessed(core, located)?;
    core.seg[segment] = d.segment(selector);
    Ok(())
}
