//! The descriptor of a TSS ("TSS Descriptor", "Exception Conditions Checked During a Task Switch").

use super::TaskSwitch;
use super::image::Layout;
use crate::exec::segment::descriptor::{Descriptor, Located, find as find_descriptor, gp, np, system_type, ts};
use crate::{Core, Leave};

/// The TSS of a task to switch to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tss {
    pub selector: u16,
    pub located: Located,
    pub layout: Layout,
}

impl Tss {
    pub(super) fn descriptor(&self) -> Descriptor {
        self.located.descriptor
    }
}

/// The TSS that `selector` names, with the type and size that a switch by `source` needs.
///
/// # Errors
/// #GP, or for IRET #TS: no TSS descriptor of the GDT in the right state. #NP: not present. #TS: too small. The GDT
/// cannot be read.
pub(super) fn find(core: &mut Core, source: TaskSwitch, selector: u16) -> Result<Tss, Leave> {
    let wrong = if source == TaskSwitch::Iret { ts } else { gp };
    if selector & 4 != 0 || selector & !7 == 0 {
        return Err(wrong(core, selector));
    }
    let Some(located) = find_descriptor(core, selector)? else { return Err(wrong(core, selector)) };
    let (layout, busy) = match located.descriptor.system_type() {
        Some(system_type::TSS16_AVAILABLE) => (Layout::Bits16, false),
        Some(system_type::TSS16_BUSY) => (Layout::Bits16, true),
        Some(system_type::TSS_AVAILABLE) => (Layout::Bits32, false),
        Some(system_type::TSS_BUSY) => (Layout::Bits32, true),
        _ => return Err(wrong(core, selector)),
    };
    if busy != (source == TaskSwitch::Iret) {
        return Err(wrong(core, selector));
    }
    if !located.descriptor.present() {
        return Err(np(core, selector));
    }
    if located.descriptor.limit() < layout.least_limit() {
        return Err(ts(core, selector));
    }
    Ok(Tss { selector, located, layout })
}
