//! Virtual-8086 mode extensions: INT n to the handlers of the 8086 program itself ("Method 5: Software Interrupt Handling"
//! and "Method 6: Software Interrupt Handling").

use x86_defs::control::cr4;
use x86_defs::rflags;
use x86_defs::segment::index;

use super::iret::iopl;
use crate::core::mode::Operating;
use crate::exec::segment::load::vm86_segment;
use crate::exec::segment::stack::Stack;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Whether a program that may not change IF has VIF in its place: in virtual-8086 mode with CR4.VME, at level 3 of
/// protected mode with CR4.PVI.
#[must_use]
pub fn has_virtual_if(core: &Core) -> bool {
    let enabled = if core.mode.operating == Operating::Virtual8086 { cr4::VME } else { cr4::PVI };
    core.mode.cpl == 3 && iopl(core) < 3 && core.cr4 & enabled != 0
}

/// FLAGS as the program sees them: IF is VIF, IOPL is 3.
#[must_use]
pub fn virtual_flags(flags: u64) -> u64 {
    let virtual_if = if flags & rflags::VIF != 0 { rflags::IF } else { 0 };
    (flags & !rflags::IF) | virtual_if | rflags::IOPL
}

/// Whether the interrupt redirection bit map in the TSS gives `vector` to the 8086 program.
pub(super) fn redirects(core: &mut Core, vector: u8) -> Result<bool, Leave> {
    /// Offset of the I/O map base; the redirection bit map is the 32 bytes before the I/O map.
    const MAP_BASE: u64 = 102;
    let tr = core.seg[index::TR];
    let limit = u64::from(tr.limit);
    if limit < MAP_BASE + 1 {
        return Err(core.gp0());
    }
    let map: u16 = core.load_system(tr.base.wrapping_add(MAP_BASE) & 0xffff_ffff)?;
    let at = u64::from(map).wrapping_sub(32).wrapping_add(u64::from(vector >> 3));
    if at > limit {
        return Err(core.gp0());
    }
    let bits: u8 = core.load_system(tr.base.wrapping_add(at) & 0xffff_ffff)?;
    Ok(bits >> (vector & 7) & 1 == 0)
}

/// INT n through the 8086 program's own interrupt vector table.
pub(super) fn int_8086(core: &mut Core, op: &Op, vector: u8) -> Done {
    let target: u32 = core.load_linear(u64::from(vector) * 4, index::DS as u8)?;
    let flags = core.rflags();
    let own_if = iopl(core) == 3;
    let mut stack = Stack::current(core);
    stack.check_push(core, 6)?;
    stack.push(core, 2, if own_if { flags } else { virtual_flags(flags) })?;
    stack.push(core, 2, u64::from(core.seg[index::CS].selector))?;
    let return_rip = core.next_rip(op);
    stack.push(core, 2, return_rip)?;
    core.gpr[4] = stack.sp;
    core.seg[index::CS] = vm86_segment((target >> 16) as u16);
    core.rip = u64::from(target as u16);
    core.events.no_step = flags & rflags::TF != 0;
    let interrupt = if own_if { rflags::IF } else { rflags::VIF };
    core.set_rflags(flags & !(rflags::TF | rflags::RF | interrupt));
    core.update_mode();
    Err(Leave::Branch)
}
