/// VM-instruction error numbers ("VM-Instruction Error Numbers").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InstructionError {
    VmcallInRoot = 1,
    VmclearInvalidAddress = 2,
    VmclearVmxonPointer = 3,
    VmlaunchNonClear = 4,
    VmresumeNonLaunched = 5,
    VmresumeAfterVmxoff = 6,
    EntryInvalidControls = 7,
    EntryInvalidHostState = 8,
    VmptrldInvalidAddress = 9,
    VmptrldVmxonPointer = 10,
    VmptrldIncorrectRevision = 11,
    UnsupportedComponent = 12,
    VmwriteReadOnly = 13,
    VmxonInRoot = 15,
    EntryInvalidExecutiveVmcs = 16,
    EntryNonLaunchedExecutiveVmcs = 17,
    EntryExecutiveVmcsNotVmxon = 18,
    VmcallNonClear = 19,
    VmcallInvalidExitControls = 20,
    VmcallIncorrectMseg = 22,
    VmxoffUnderDualMonitor = 23,
    VmcallInvalidSmmFeatures = 24,
    EntryInvalidExecutiveControls = 25,
    EntryEventsBlockedByMovSs = 26,
    InvalidOperandToInveptInvvpid = 28,
}

impl InstructionError {
    /// Every error number, in order.
    pub const ALL: &[Self] = &[
        Self::VmcallInRoot,
        Self::VmclearInvalidAddress,
        Self::VmclearVmxonPointer,
        Self::VmlaunchNonClear,
        Self::VmresumeNonLaunched,
        Self::VmresumeAfterVmxoff,
        Self::EntryInvalidControls,
        Self::EntryInvalidHostState,
        Self::VmptrldInvalidAddress,
        Self::VmptrldVmxonPointer,
        Self::VmptrldIncorrectRevision,
        Self::UnsupportedComponent,
        Self::VmwriteReadOnly,
        Self::VmxonInRoot,
        Self::EntryInvalidExecutiveVmcs,
        Self::EntryNonLaunchedExecutiveVmcs,
        Self::EntryExecutiveVmcsNotVmxon,
        Self::VmcallNonClear,
        Self::VmcallInvalidExitControls,
        Self::VmcallIncorrectMseg,
        Self::VmxoffUnderDualMonitor,
        Self::VmcallInvalidSmmFeatures,
        Self::EntryInvalidExecutiveControls,
        Self::EntryEventsBlockedByMovSs,
        Self::InvalidOperandToInveptInvvpid,
    ];

    /// The number in the VM-instruction error field.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The error with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|e| e.number() == number)
    }

    /// What it means.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::VmcallInRoot => "VMCALL executed in VMX root operation",
            Self::VmclearInvalidAddress => "VMCLEAR with invalid physical address",
            Self::VmclearVmxonPointer => "VMCLEAR with VMXON pointer",
            Self::VmlaunchNonClear => "VMLAUNCH with non-clear VMCS",
            Self::VmresumeNonLaunched => "VMRESUME with non-launched VMCS",
            Self::VmresumeAfterVmxoff => "VMRESUME after VMXOFF",
            Self::EntryInvalidControls => "VM entry with invalid control field(s)",
            Self::EntryInvalidHostState => "VM entry with invalid host-state field(s)",
            Self::VmptrldInvalidAddress => "VMPTRLD with invalid physical address",
            Self::VmptrldVmxonPointer => "VMPTRLD with VMXON pointer",
            Self::VmptrldIncorrectRevision => "VMPTRLD with incorrect VMCS revision identifier",
            Self::UnsupportedComponent => "VMREAD/VMWRITE from/to unsupported VMCS component",
            Self::VmwriteReadOnly => "VMWRITE to read-only VMCS component",
            Self::VmxonInRoot => "VMXON executed in VMX root operation",
            Self::EntryInvalidExecutiveVmcs => "VM entry with invalid executive-VMCS pointer",
            Self::EntryNonLaunchedExecutiveVmcs => "VM entry with non-launched executive VMCS",
            Self::EntryExecutiveVmcsNotVmxon => "VM entry with executive-VMCS pointer not VMXON pointer",
            Self::VmcallNonClear => "VMCALL with non-clear VMCS",
            Self::VmcallInvalidExitControls => "VMCALL with invalid VM-exit control fields",
            Self::VmcallIncorrectMseg => "VMCALL with incorrect MSEG revision identifier",
            Self::VmxoffUnderDualMonitor => "VMXOFF under dual-monitor treatment of SMIs and SMM",
            Self::VmcallInvalidSmmFeatures => "VMCALL with invalid SMM-monitor features",
            Self::EntryInvalidExecutiveControls => {
                "VM entry with invalid VM-execution control fields in executive VMCS"
            }
            Self::EntryEventsBlockedByMovSs => "VM entry with events blocked by MOV SS",
            Self::InvalidOperandToInveptInvvpid => "invalid operand to INVEPT/INVVPID",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_the_manuals_gaps_stay_gaps() {
        for &e in InstructionError::ALL {
            assert_eq!(InstructionError::from_number(e.number()), Some(e));
        }
        for gap in [0, 14, 21, 27, 29] {
            assert_eq!(InstructionError::from_number(gap), None);
        }
    }
}
