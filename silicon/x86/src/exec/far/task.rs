//! Task switches, which always exit ("Task switches" in "Other Causes of VM Exits").

use x86_defs::vmx::ExitReason;

use crate::vmx::ExitInfo;
use crate::{Core, Leave};

/// Source of a task switch, as bits 31:30 of the exit qualification ("Exit Qualification for Task Switches").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskSwitch {
    Call = 0,
    Iret = 1,
    Jump = 2,
    IdtGate = 3,
}

/// Records the VM-exit of a task switch to the TSS that `selector` names. `length`: bytes of the instruction, 0 for an
/// event that no instruction asked for.
pub fn task_switch(core: &mut Core, source: TaskSwitch, selector: u16, length: u8) -> Leave {
    core.vmexit_with(ExitInfo {
        reason: Some(ExitReason::TaskSwitch),
        qualification: u64::from(selector) | (source as u64) << 30,
        instruction_length: u32::from(length),
        ..ExitInfo::default()
    })
}
