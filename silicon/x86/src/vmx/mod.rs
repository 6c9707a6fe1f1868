//! VMX non-root operation as hardware has it: the VMCS, VM-entry, VM-exit and intercepts.

pub mod exit;

pub use exit::ExitInfo;

/// VM-execution controls of the running guest, decoded at VM-entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controls {
    /// [`x86_defs::vmx::controls::pin`]
    pub pin: u32,
    /// [`x86_defs::vmx::controls::primary`]
    pub primary: u32,
    /// [`x86_defs::vmx::controls::secondary`]; zero where they are not activated.
    pub secondary: u32,
    pub entry: u32,
    pub exit: u32,
    pub exception_bitmap: u32,
    pub page_fault_error_mask: u32,
    pub page_fault_error_match: u32,
    pub cr0_mask: u64,
    pub cr0_shadow: u64,
    pub cr4_mask: u64,
    pub cr4_shadow: u64,
    /// Zero where VPIDs are not enabled.
    pub vpid: u16,
    /// Zero where EPT is not enabled.
    pub eptp: u64,
    pub tsc_offset: u64,
    /// Fixed point, 48 fraction bits; 1.0 where scaling is not enabled.
    pub tsc_multiplier: u64,
}

/// VMX state of a logical processor.
#[derive(Debug, Default)]
pub struct Vmx {
    pub controls: Controls,
    /// What the last VM-exit recorded.
    pub exit: ExitInfo,
    pub activity: u32,
    pub monitor_trap_pending: bool,
}
impl Vmx {
    pub fn preemption_deadline(&self) -> Option<u64> { None }
}
