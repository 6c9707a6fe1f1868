//! Instructions about caches and ordering, which the modelled memory needs no action for.

use crate::Core;
use crate::op::{Done, Op};

/// NOP, hints and fences.
#[inline(always)]
pub fn nop(_: &mut Core, _: &Op) -> Done {
    Ok(())
}

/// CLFLUSH, CLFLUSHOPT and CLWB: the address is checked as a load of one byte would be.
pub fn flush_line(core: &mut Core, op: &Op) -> Done {
    core.load::<u8>(op).map(drop)
}
