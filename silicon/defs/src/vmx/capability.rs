//! Numbers and bits of the VMX capability MSRs ("VMX Capability Reporting Facility").

pub const IA32_VMX_BASIC: u32 = 0x480;
pub const IA32_VMX_PINBASED_CTLS: u32 = 0x481;
pub const IA32_VMX_PROCBASED_CTLS: u32 = 0x482;
pub const IA32_VMX_EXIT_CTLS: u32 = 0x483;
pub const IA32_VMX_ENTRY_CTLS: u32 = 0x484;
pub const IA32_VMX_MISC: u32 = 0x485;
pub const IA32_VMX_CR0_FIXED0: u32 = 0x486;
pub const IA32_VMX_CR0_FIXED1: u32 = 0x487;
pub const IA32_VMX_CR4_FIXED0: u32 = 0x488;
pub const IA32_VMX_CR4_FIXED1: u32 = 0x489;
pub const IA32_VMX_VMCS_ENUM: u32 = 0x48a;
pub const IA32_VMX_PROCBASED_CTLS2: u32 = 0x48b;
pub const IA32_VMX_EPT_VPID_CAP: u32 = 0x48c;
pub const IA32_VMX_TRUE_PINBASED_CTLS: u32 = 0x48d;
pub const IA32_VMX_TRUE_PROCBASED_CTLS: u32 = 0x48e;
pub const IA32_VMX_TRUE_EXIT_CTLS: u32 = 0x48f;
pub const IA32_VMX_TRUE_ENTRY_CTLS: u32 = 0x490;
pub const IA32_VMX_VMFUNC: u32 = 0x491;

/// IA32_VMX_BASIC ("Basic VMX Information").
pub mod basic {
    /// Bits 44:32, bytes of a VMXON or VMCS region.
    pub const REGION_SIZE_SHIFT: u32 = 32;
    /// Bits 53:50, memory type of structures.
    pub const MEMORY_TYPE_SHIFT: u32 = 50;
    pub const WRITE_BACK: u64 = 6;
    /// INS and OUTS exits report the instruction information.
    pub const INS_OUTS_INFORMATION: u64 = 1 << 54;
    /// Some default1 controls may be zero: the TRUE MSRs exist.
    pub const TRUE_CONTROLS: u64 = 1 << 55;
    /// A hardware exception may be injected with or without error code, whatever its vector.
    pub const ANY_ERROR_CODE: u64 = 1 << 56;
}

/// IA32_VMX_MISC ("Miscellaneous Data").
pub mod misc {
    /// Bits 4:0: the preemption timer counts down when this bit of the TSC changes.
    pub const PREEMPTION_TIMER_RATE: u64 = 0x1f;
    /// VM-exits store EFER.LMA in the "IA-32e mode guest" control.
    pub const STORE_LMA: u64 = 1 << 5;
    pub const ACTIVITY_HLT: u64 = 1 << 6;
    pub const ACTIVITY_SHUTDOWN: u64 = 1 << 7;
    pub const ACTIVITY_WAIT_FOR_SIPI: u64 = 1 << 8;
    /// Bits 24:16: number of CR3-target values.
    pub const CR3_TARGETS_SHIFT: u32 = 16;
    /// Bits 27:25: MSR lists should hold at most 512 * (N + 1) entries.
    pub const MSR_LIST_SHIFT: u32 = 25;
    /// VMWRITE may write read-only fields.
    pub const VMWRITE_READ_ONLY: u64 = 1 << 29;
    /// Software interrupts may be injected with an instruction length of zero.
    pub const ZERO_LENGTH_INJECTION: u64 = 1 << 30;
}

/// IA32_VMX_EPT_VPID_CAP ("VPID and EPT Capabilities").
pub mod ept_vpid {
    pub const EXECUTE_ONLY: u64 = 1 << 0;
    pub const WALK_LENGTH_4: u64 = 1 << 6;
    pub const WALK_LENGTH_5: u64 = 1 << 7;
    pub const MEMORY_TYPE_UC: u64 = 1 << 8;
    pub const MEMORY_TYPE_WB: u64 = 1 << 14;
    pub const PAGES_2M: u64 = 1 << 16;
    pub const PAGES_1G: u64 = 1 << 17;
    pub const INVEPT: u64 = 1 << 20;
    pub const ACCESSED_DIRTY: u64 = 1 << 21;
    pub const ADVANCED_EXIT_INFORMATION: u64 = 1 << 22;
    pub const INVEPT_SINGLE_CONTEXT: u64 = 1 << 25;
    pub const INVEPT_ALL_CONTEXT: u64 = 1 << 26;
    pub const INVVPID: u64 = 1 << 32;
    pub const INVVPID_INDIVIDUAL_ADDRESS: u64 = 1 << 40;
    pub const INVVPID_SINGLE_CONTEXT: u64 = 1 << 41;
    pub const INVVPID_ALL_CONTEXT: u64 = 1 << 42;
    pub const INVVPID_SINGLE_CONTEXT_RETAINING_GLOBALS: u64 = 1 << 43;
}

/// Control bits that are reported as one unless the TRUE MSRs say otherwise ("Reserved Controls and Default Settings").
pub mod default1 {
    pub const PIN: u32 = 0x16;
    pub const PRIMARY: u32 = 0x0401_e172;
    pub const EXIT: u32 = 0x0003_6dff;
    pub const ENTRY: u32 = 0x11ff;
}
