//! Task switches ("Task Switching").
//!
//! In VMX non-root operation each one exits, after the checks that come before anything changes ([`task_switch`]); the
//! hypervisor then lets the processor carry it out ([`crate::processor::Processor::switch_task`]).
//!
//! | file | what |
//! |---|---|
//! | `tss` | the descriptor of a TSS and its checks |
//! | `image` | what a TSS holds, in the 16-bit and the 32-bit layout |
//! | `load` | segment registers of the new task |
//! | `switch` | the switch itself |

mod image;
mod load;
mod switch;
#[cfg(test)]
mod tests;
mod tss;

use x86_defs::vmx::ExitReason;

use crate::vmx::ExitInfo;
use crate::{Core, Leave};

pub use switch::{Switched, TaskSwitchRequest};

/// Source of a task switch, as bits 31:30 of the exit qualification ("Exit Qualification for Task Switches").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskSwitch {
    Call = 0,
    Iret = 1,
    Jump = 2,
    IdtGate = 3,
}

impl TaskSwitch {
    /// The source that an exit qualification names.
    #[must_use]
    pub const fn from_qualification(qualification: u64) -> Self {
        match qualification >> 30 & 3 {
            0 => Self::Call,
            1 => Self::Iret,
            2 => Self::Jump,
            _ => Self::IdtGate,
        }
    }

    /// Whether the new task is nested in the old one: it has a link to it, and runs with NT set.
    #[must_use]
    const fn nests(self) -> bool {
        matches!(self, Self::Call | Self::IdtGate)
    }
}

/// Records the VM-exit of a task switch to the TSS that `selector` names, or raises what is wrong with its descriptor
/// ("Treatment of Task Switches"). `length`: bytes of the instruction, 0 for an event that no instruction asked for.
pub fn task_switch(core: &mut Core, source: TaskSwitch, selector: u16, length: u8) -> Leave {
    if let Err(left) = tss::find(core, source, selector) {
        return left;
    }
    core.vmexit_with(ExitInfo {
        reason: Some(ExitReason::TaskSwitch),
        qualification: u64::from(selector) | (source as u64) << 30,
        instruction_length: u32::from(length),
        ..ExitInfo::default()
    })
}
