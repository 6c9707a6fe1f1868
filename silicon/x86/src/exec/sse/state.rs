//! LDMXCSR and STMXCSR.

use silicon_float::Mxcsr;

use crate::op::Done;
use crate::{Core, Op};

/// LDMXCSR: #GP(0) for reserved bits.
pub fn ldmxcsr(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let value = core.load::<u32>(op)?;
    if value & !Mxcsr::WRITABLE != 0 {
        return Err(core.gp0());
    }
    core.fpu.mxcsr = value;
    Ok(())
}

/// STMXCSR.
pub fn stmxcsr(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    core.store(op, core.fpu.mxcsr)
}
