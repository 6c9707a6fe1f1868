//! VMX control bits ("VM-Execution Control Fields", "VM-Exit Control Fields", "VM-Entry Control Fields").

/// Pin-based VM-execution controls.
pub mod pin {
    pub const EXTERNAL_INTERRUPT_EXITING: u32 = 1 << 0;
    pub const NMI_EXITING: u32 = 1 << 3;
    pub const VIRTUAL_NMIS: u32 = 1 << 5;
    pub const PREEMPTION_TIMER: u32 = 1 << 6;
    pub const POSTED_INTERRUPTS: u32 = 1 << 7;
}

/// Primary processor-based VM-execution controls.
pub mod primary {
    pub const INTERRUPT_WINDOW_EXITING: u32 = 1 << 2;
    pub const USE_TSC_OFFSETTING: u32 = 1 << 3;
    pub const HLT_EXITING: u32 = 1 << 7;
    pub const INVLPG_EXITING: u32 = 1 << 9;
    pub const MWAIT_EXITING: u32 = 1 << 10;
    pub const RDPMC_EXITING: u32 = 1 << 11;
    pub const RDTSC_EXITING: u32 = 1 << 12;
    pub const CR3_LOAD_EXITING: u32 = 1 << 15;
    pub const CR3_STORE_EXITING: u32 = 1 << 16;
    pub const CR8_LOAD_EXITING: u32 = 1 << 19;
    pub const CR8_STORE_EXITING: u32 = 1 << 20;
    pub const USE_TPR_SHADOW: u32 = 1 << 21;
    pub const NMI_WINDOW_EXITING: u32 = 1 << 22;
    pub const MOV_DR_EXITING: u32 = 1 << 23;
    pub const UNCONDITIONAL_IO_EXITING: u32 = 1 << 24;
    pub const USE_IO_BITMAPS: u32 = 1 << 25;
    pub const MONITOR_TRAP_FLAG: u32 = 1 << 27;
    pub const USE_MSR_BITMAPS: u32 = 1 << 28;
    pub const MONITOR_EXITING: u32 = 1 << 29;
    pub const PAUSE_EXITING: u32 = 1 << 30;
    pub const ACTIVATE_SECONDARY_CONTROLS: u32 = 1 << 31;
}

/// Secondary processor-based VM-execution controls.
pub mod secondary {
    pub const VIRTUALIZE_APIC_ACCESSES: u32 = 1 << 0;
    pub const ENABLE_EPT: u32 = 1 << 1;
    pub const DESCRIPTOR_TABLE_EXITING: u32 = 1 << 2;
    pub const ENABLE_RDTSCP: u32 = 1 << 3;
    pub const VIRTUALIZE_X2APIC_MODE: u32 = 1 << 4;
    pub const ENABLE_VPID: u32 = 1 << 5;
    pub const WBINVD_EXITING: u32 = 1 << 6;
    pub const UNRESTRICTED_GUEST: u32 = 1 << 7;
    pub const APIC_REGISTER_VIRTUALIZATION: u32 = 1 << 8;
    pub const VIRTUAL_INTERRUPT_DELIVERY: u32 = 1 << 9;
    pub const PAUSE_LOOP_EXITING: u32 = 1 << 10;
    pub const RDRAND_EXITING: u32 = 1 << 11;
    pub const ENABLE_INVPCID: u32 = 1 << 12;
    pub const ENABLE_VM_FUNCTIONS: u32 = 1 << 13;
    pub const VMCS_SHADOWING: u32 = 1 << 14;
    pub const ENABLE_ENCLS_EXITING: u32 = 1 << 15;
    pub const RDSEED_EXITING: u32 = 1 << 16;
    pub const ENABLE_PML: u32 = 1 << 17;
    pub const EPT_VIOLATION_VE: u32 = 1 << 18;
    pub const ENABLE_XSAVES: u32 = 1 << 20;
    pub const MODE_BASED_EXECUTE: u32 = 1 << 22;
    pub const USE_TSC_SCALING: u32 = 1 << 25;
}

/// VM-exit controls.
pub mod exit {
    pub const SAVE_DEBUG_CONTROLS: u32 = 1 << 2;
    pub const HOST_ADDRESS_SPACE_SIZE: u32 = 1 << 9;
    pub const LOAD_PERF_GLOBAL_CTRL: u32 = 1 << 12;
    pub const ACKNOWLEDGE_INTERRUPT: u32 = 1 << 15;
    pub const SAVE_PAT: u32 = 1 << 18;
    pub const LOAD_PAT: u32 = 1 << 19;
    pub const SAVE_EFER: u32 = 1 << 20;
    pub const LOAD_EFER: u32 = 1 << 21;
    pub const SAVE_PREEMPTION_TIMER: u32 = 1 << 22;
    pub const LOAD_PKRS: u32 = 1 << 29;
}

/// VM-entry controls.
pub mod entry {
    pub const LOAD_DEBUG_CONTROLS: u32 = 1 << 2;
    pub const IA32E_MODE_GUEST: u32 = 1 << 9;
    pub const ENTRY_TO_SMM: u32 = 1 << 10;
    pub const DEACTIVATE_DUAL_MONITOR: u32 = 1 << 11;
    pub const LOAD_PERF_GLOBAL_CTRL: u32 = 1 << 13;
    pub const LOAD_PAT: u32 = 1 << 14;
    pub const LOAD_EFER: u32 = 1 << 15;
    pub const LOAD_PKRS: u32 = 1 << 22;
}

/// Interruption-information fields (VM-entry, VM-exit and IDT-vectoring).
pub mod interruption {
    pub const VECTOR: u32 = 0xff;
    pub const TYPE: u32 = 7 << 8;
    pub const TYPE_EXTERNAL: u32 = 0 << 8;
    pub const TYPE_NMI: u32 = 2 << 8;
    pub const TYPE_HARDWARE_EXCEPTION: u32 = 3 << 8;
    pub const TYPE_SOFTWARE_INTERRUPT: u32 = 4 << 8;
    pub const TYPE_PRIVILEGED_SOFTWARE_EXCEPTION: u32 = 5 << 8;
    pub const TYPE_SOFTWARE_EXCEPTION: u32 = 6 << 8;
    pub const TYPE_OTHER: u32 = 7 << 8;
    pub const DELIVER_ERROR_CODE: u32 = 1 << 11;
    /// VM-exit: NMI unblocking due to IRET.
    pub const NMI_UNBLOCKING: u32 = 1 << 12;
    pub const VALID: u32 = 1 << 31;
}

/// Guest interruptibility state.
pub mod interruptibility {
    pub const BLOCKING_BY_STI: u32 = 1 << 0;
    pub const BLOCKING_BY_MOV_SS: u32 = 1 << 1;
    pub const BLOCKING_BY_SMI: u32 = 1 << 2;
    pub const BLOCKING_BY_NMI: u32 = 1 << 3;
}

/// Guest activity state.
pub mod activity {
    pub const ACTIVE: u32 = 0;
    pub const HLT: u32 = 1;
    pub const SHUTDOWN: u32 = 2;
    pub const WAIT_FOR_SIPI: u32 = 3;
}
