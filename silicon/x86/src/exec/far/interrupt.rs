//! INT n, INT3, INTO, INT1.

use x86_defs::control::cr4;
use x86_defs::exception::vector;

use super::iret::iopl;
use super::vme;
use crate::core::mode::Operating;
use crate::event::{EventKind, Injection};
use crate::op::Done;
use crate::{Core, Leave, Op};

fn software(core: &mut Core, op: &Op, vector: u8, kind: EventKind) -> Done {
    core.rip = core.this_rip(op);
    core.deliver_software(Injection { vector, kind, error_code: None, instruction_length: op.len })?;
    Err(Leave::Branch)
}

/// INT n. `imm`: vector.
pub fn int_n(core: &mut Core, op: &Op) -> Done {
    if core.mode.operating == Operating::Virtual8086 {
        if core.cr4 & cr4::VME != 0 && vme::redirects(core, op.imm as u8)? {
            return vme::int_8086(core, op, op.imm as u8);
        }
        if iopl(core) != 3 {
            return Err(core.gp0());
        }
    }
    software(core, op, op.imm as u8, EventKind::SoftwareInterrupt)
}

/// INT3.
pub fn int3(core: &mut Core, op: &Op) -> Done {
    software(core, op, vector::BP, EventKind::SoftwareException)
}

/// INTO.
pub fn into(core: &mut Core, op: &Op) -> Done {
    if !core.flags.of() {
        return Ok(());
    }
    software(core, op, vector::OF, EventKind::SoftwareException)
}

/// INT1.
pub fn int1(core: &mut Core, op: &Op) -> Done {
    software(core, op, vector::DB, EventKind::PrivilegedSoftwareException)
}
