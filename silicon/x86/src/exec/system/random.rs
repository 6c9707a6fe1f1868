//! RDRAND and RDSEED.
//!
//! `a`: register, `imm`: VM-exit instruction information.

use silicon_memory::Word;
use x86_defs::rflags;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::exits::vmexit_info;
use crate::op::Done;
use crate::{Core, Op};

fn deliver<T: Word>(core: &mut Core, op: &Op) {
    let value = core.rng.next();
    core.set(op.a, T::from_u64(value));
    core.flags.set_bits(rflags::CF);
}

/// RDRAND.
pub fn rdrand<T: Word>(core: &mut Core, op: &Op) -> Done {
    if core.vmx.controls.secondary & secondary::RDRAND_EXITING != 0 {
        return Err(vmexit_info(core, op, ExitReason::Rdrand, 0, op.imm as u32));
    }
    deliver::<T>(core, op);
    Ok(())
}

/// RDSEED.
pub fn rdseed<T: Word>(core: &mut Core, op: &Op) -> Done {
    if core.vmx.controls.secondary & secondary::RDSEED_EXITING != 0 {
        return Err(vmexit_info(core, op, ExitReason::Rdseed, 0, op.imm as u32));
    }
    deliver::<T>(core, op);
    Ok(())
}
