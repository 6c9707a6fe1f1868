//! VM-exits with instruction information ("VM-Exit Instruction-Information Field").

use x86_defs::vmx::ExitReason;

use crate::op::{BLOCK_RIP, Done};
use crate::vmx::ExitInfo;
use crate::{Core, Leave, Op};

/// Exit qualification of an instruction with a memory operand: its displacement; RIP-relative: displacement plus the
/// RIP of the next instruction.
#[must_use]
pub fn displacement(core: &Core, op: &Op) -> u64 {
    let displacement = i64::from(op.disp) as u64;
    if op.base == BLOCK_RIP { core.gpr[BLOCK_RIP as usize].wrapping_add(displacement) } else { displacement }
}

/// Records the VM-exit of `op` with instruction information.
pub fn vmexit_info(core: &mut Core, op: &Op, reason: ExitReason, qualification: u64, information: u32) -> Leave {
    core.vmexit_with(ExitInfo {
        reason: Some(reason),
        qualification,
        instruction_length: u32::from(op.len),
        instruction_info: information,
        ..ExitInfo::default()
    })
}

/// #GP(0) unless CPL is 0.
///
/// # Errors
/// #GP(0).
pub fn privileged(core: &mut Core) -> Done {
    if core.mode.cpl != 0 { Err(core.gp0()) } else { Ok(()) }
}
