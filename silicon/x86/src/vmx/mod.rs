//! VMX non-root operation as hardware has it: the VMCS, VM-entry, VM-exit and intercepts.
//!
//! Guest state is *resident*: while a VMCS is current, its guest-state area is the [`Core`](crate::Core) itself.
//! A VM-exit copies nothing; VMREAD and VMWRITE of guest fields act on the processor's registers, and the fields are
//! only collected when the VMCS stops being current. VM-entry looks again at what was written since the last one
//! ([`Dirty`]), so leaving and entering with unchanged controls costs little more than a function call.
//!
//! The hypervisor is native code, so loading the host-state area is nominal: the fields are kept and checked, and have
//! no further effect.

pub mod apic;
pub mod capability;
mod check_controls;
mod check_guest;
mod check_host;
mod dirty;
pub mod entry;
pub mod exit;
mod instruction;
pub mod intercept;
mod msr_list;
mod page_log;
pub mod preemption;
mod resident;
mod signal;
mod virtualization_exception;
mod vm_function;
pub mod vmcs;

#[cfg(test)]
mod document;
#[cfg(test)]
pub(crate) mod rules;
#[cfg(test)]
pub(crate) mod testing;

pub use dirty::Dirty;
pub use entry::{Entered, EntryFailure};
pub use exit::ExitInfo;
pub use instruction::VmFail;
pub use intercept::Direction;
pub use page_log::PageLog;
pub use signal::{Signal, Signals};
pub use vmcs::{LaunchState, Vmcs};

use intercept::Bitmaps;
use x86_defs::vmx::controls::activity;

/// VM-execution controls of the running guest, decoded at VM-entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The CR3-target values in use are the first `cr3_target_count`.
    pub cr3_targets: [u64; 4],
    pub cr3_target_count: u8,
    /// Zero where VPIDs are not enabled.
    pub vpid: u16,
    /// Zero where EPT is not enabled.
    pub eptp: u64,
    /// Zero where offsetting is not enabled.
    pub tsc_offset: u64,
    /// Fixed point, 48 fraction bits; 1.0 where scaling is not enabled.
    pub tsc_multiplier: u64,
    /// Zero where VM functions are not enabled.
    pub vm_functions: u64,
    /// Pause-loop exiting, in TSC cycles: gap and window.
    pub ple_gap: u32,
    pub ple_window: u32,
    /// State components of IA32_XSS for which XSAVES and XRSTORS exit.
    pub xss_exiting: u64,
}

/// 1.0 as a TSC multiplier.
pub const TSC_MULTIPLIER_ONE: u64 = 1 << 48;

impl Default for Controls {
    fn default() -> Self {
        Self {
            pin: 0,
            primary: 0,
            secondary: 0,
            entry: 0,
            exit: 0,
            exception_bitmap: 0,
            page_fault_error_mask: 0,
            page_fault_error_match: 0,
            cr0_mask: 0,
            cr0_shadow: 0,
            cr4_mask: 0,
            cr4_shadow: 0,
            cr3_targets: [0; 4],
            cr3_target_count: 0,
            vpid: 0,
            eptp: 0,
            tsc_offset: 0,
            tsc_multiplier: TSC_MULTIPLIER_ONE,
            vm_functions: 0,
            ple_gap: 0,
            ple_window: 0,
            xss_exiting: 0,
        }
    }
}

/// VMX state of a logical processor.
#[derive(Debug)]
pub struct Vmx {
    pub controls: Controls,
    /// What the last VM-exit recorded.
    pub exit: ExitInfo,
    /// Guest activity state ([`activity`]): what a guest's HLT that does not exit changes.
    pub activity: u32,
    /// Guest pending debug exceptions, in the layout of the VMCS field.
    pub pending_debug: u64,
    /// PDPTE registers of a guest with PAE paging.
    pub pdptes: [u64; 4],
    /// A monitor-trap-flag VM-exit is pending before the next instruction: injected as an event of type "other".
    pub monitor_trap_pending: bool,
    /// Events from outside that wait.
    pub signals: Signals,
    pub(crate) apic: apic::Apic,
    current: Option<Box<Vmcs>>,
    dirty: Dirty,
    bitmaps: Bitmaps,
    preemption: preemption::Timer,
    pause_loop: intercept::PauseLoop,
}

impl Default for Vmx {
    fn default() -> Self {
        Self {
            controls: Controls::default(),
            exit: ExitInfo::default(),
            activity: activity::ACTIVE,
            pending_debug: 0,
            pdptes: [0; 4],
            monitor_trap_pending: false,
            signals: Signals::default(),
            apic: apic::Apic::default(),
            current: None,
            dirty: Dirty::ALL,
            bitmaps: Bitmaps::default(),
            preemption: preemption::Timer::default(),
            pause_loop: intercept::PauseLoop::default(),
        }
    }
}
