//! Recording a VM-exit.

use x86_defs::vmx::ExitReason;

use crate::{Core, Leave, Op};

/// The VM-exit information fields ("VM-Exit Information Fields").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// Basic exit reason; `None` before the first exit.
    pub reason: Option<ExitReason>,
    /// The exit is a failed VM-entry (bit 31 of the reason).
    pub entry_failure: bool,
    pub qualification: u64,
    pub guest_linear: u64,
    pub guest_physical: u64,
    /// VM-exit interruption information and error code.
    pub interruption: u32,
    pub interruption_error: u32,
    /// IDT-vectoring information and error code.
    pub idt_vectoring: u32,
    pub idt_vectoring_error: u32,
    pub instruction_length: u32,
    pub instruction_info: u32,
}

impl Core {
    /// Records the VM-exit that `op` causes instead of executing.
    #[cold]
    pub fn vmexit(&mut self, op: &Op, reason: ExitReason, qualification: u64) -> Leave {
        self.vmexit_with(ExitInfo {
            reason: Some(reason),
            qualification,
            instruction_length: u32::from(op.len),
            ..ExitInfo::default()
        })
    }

    /// Records a VM-exit.
    #[cold]
    pub fn vmexit_with(&mut self, info: ExitInfo) -> Leave {
        self.vmx.exit = info;
        Leave::Exit
    }
}
