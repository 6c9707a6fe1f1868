//! JMP far.

use silicon_memory::Word;
use x86_defs::segment::index;

use super::target::{By, Destination, immediate_pointer, resolve};
use crate::exec::segment::load::commit;
use crate::exec::segment::moves::far_pointer;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// JMP ptr16:16, ptr16:32.
pub fn immediate(core: &mut Core, op: &Op) -> Done {
    let (selector, offset) = immediate_pointer(op);
    jump(core, op, selector, offset)
}

/// JMP m16:16, m16:32, m16:64.
pub fn memory<T: Word>(core: &mut Core, op: &Op) -> Done {
    let (selector, offset) = far_pointer::<T>(core, op)?;
    jump(core, op, selector, offset)
}

fn jump(core: &mut Core, op: &Op, selector: u16, offset: u64) -> Done {
    match resolve(core, op, By::Jump, selector, offset)? {
        Destination::Same { cs, rip } | Destination::Gate { cs, gate: super::target::CallGate { offset: rip, .. } } => {
            commit(core, index::CS, cs);
            core.rip = rip;
            Err(Leave::Branch)
        }
        // `resolve` gives this for calls only.
        Destination::Inner { .. } => Err(core.gp0()),
    }
}
