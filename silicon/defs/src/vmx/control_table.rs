//! Every VMX control by the manual's name ("VM-Execution Control Fields", "VM-Exit Control Fields", "VM-Entry Control
//! Fields", "VM-Function Controls").

use super::Field;

/// The control fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Pin,
    Primary,
    Secondary,
    Tertiary,
    Exit,
    SecondaryExit,
    Entry,
    VmFunction,
}

impl Group {
    pub const ALL: &[Self] = &[
        Self::Pin,
        Self::Primary,
        Self::Secondary,
        Self::Tertiary,
        Self::Exit,
        Self::SecondaryExit,
        Self::Entry,
        Self::VmFunction,
    ];

    /// The VMCS field that holds the controls.
    #[must_use]
    pub const fn field(self) -> Field {
        match self {
            Self::Pin => Field::PinBasedControls,
            Self::Primary => Field::PrimaryControls,
            Self::Secondary => Field::SecondaryControls,
            Self::Tertiary => Field::TertiaryControls,
            Self::Exit => Field::ExitControls,
            Self::SecondaryExit => Field::SecondaryExitControls,
            Self::Entry => Field::EntryControls,
            Self::VmFunction => Field::VmFunctionControls,
        }
    }
}

/// One control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Control {
    pub group: Group,
    pub bit: u8,
    pub name: &'static str,
}

impl Control {
    /// The control as a mask of its field.
    #[must_use]
    pub const fn mask(self) -> u64 {
        1 << self.bit
    }

    /// The control at a bit of a field.
    #[must_use]
    pub fn at(group: Group, bit: u8) -> Option<&'static Self> {
        CONTROLS.iter().find(|c| c.group == group && c.bit == bit)
    }
}

macro_rules! controls {
    ($($group:ident { $($bit:literal $name:literal;)* })*) => {
        /// Every control, in the order of fields and bits.
        pub const CONTROLS: &[Control] = &[$($(Control { group: Group::$group, bit: $bit, name: $name },)*)*];
    };
}

controls! {
    Pin {
        0 "external-interrupt exiting";
        3 "NMI exiting";
        5 "virtual NMIs";
        6 "activate VMX-preemption timer";
        7 "process posted interrupts";
    }
    Primary {
        2 "interrupt-window exiting";
        3 "use TSC offsetting";
        7 "HLT exiting";
        9 "INVLPG exiting";
        10 "MWAIT exiting";
        11 "RDPMC exiting";
        12 "RDTSC exiting";
        15 "CR3-load exiting";
        16 "CR3-store exiting";
        17 "activate tertiary controls";
        19 "CR8-load exiting";
        20 "CR8-store exiting";
        21 "use TPR shadow";
        22 "NMI-window exiting";
        23 "MOV-DR exiting";
        24 "unconditional I/O exiting";
        25 "use I/O bitmaps";
        27 "monitor trap flag";
        28 "use MSR bitmaps";
        29 "MONITOR exiting";
        30 "PAUSE exiting";
        31 "activate secondary controls";
    }
    Secondary {
        0 "virtualize APIC accesses";
        1 "enable EPT";
        2 "descriptor-table exiting";
        3 "enable RDTSCP";
        4 "virtualize x2APIC mode";
        5 "enable VPID";
        6 "WBINVD exiting";
        7 "unrestricted guest";
        8 "APIC-register virtualization";
        9 "virtual-interrupt delivery";
        10 "PAUSE-loop exiting";
        11 "RDRAND exiting";
        12 "enable INVPCID";
        13 "enable VM functions";
        14 "VMCS shadowing";
        15 "enable ENCLS exiting";
        16 "RDSEED exiting";
        17 "enable PML";
        18 "EPT-violation #VE";
        19 "conceal VMX from PT";
        20 "enable XSAVES/XRSTORS";
        21 "PASID translation";
        22 "mode-based execute control for EPT";
        23 "sub-page write permissions for EPT";
        24 "Intel PT uses guest physical addresses";
        25 "use TSC scaling";
        26 "enable user wait and pause";
        27 "enable PCONFIG";
        28 "enable ENCLV exiting";
        30 "VMM bus-lock detection";
        31 "instruction timeout";
    }
    Tertiary {
        0 "LOADIWKEY exiting";
        1 "enable HLAT";
        2 "EPT paging-write control";
        3 "guest-paging verification";
        4 "IPI virtualization";
        7 "virtualize IA32_SPEC_CTRL";
    }
    Exit {
        2 "save debug controls";
        9 "host address-space size";
        12 "load IA32_PERF_GLOBAL_CTRL";
        15 "acknowledge interrupt on exit";
        18 "save IA32_PAT";
        19 "load IA32_PAT";
        20 "save IA32_EFER";
        21 "load IA32_EFER";
        22 "save VMX-preemption timer value";
        23 "clear IA32_BNDCFGS";
        24 "conceal VMX from PT";
        25 "clear IA32_RTIT_CTL";
        26 "clear IA32_LBR_CTL";
        27 "clear UINV";
        28 "load CET state";
        29 "load PKRS";
        30 "save IA32_PERF_GLOBAL_CTL";
        31 "activate secondary controls";
    }
    SecondaryExit {
        0 "save FRED";
        1 "load FRED";
        3 "prematurely busy shadow stack";
    }
    Entry {
        2 "load debug controls";
        9 "IA-32e mode guest";
        10 "entry to SMM";
        11 "deactivate dual-monitor treatment";
        13 "load IA32_PERF_GLOBAL_CTRL";
        14 "load IA32_PAT";
        15 "load IA32_EFER";
        16 "load IA32_BNDCFGS";
        17 "conceal VMX from PT";
        18 "load IA32_RTIT_CTL";
        19 "load UINV";
        20 "load CET state";
        21 "load guest IA32_LBR_CTL";
        22 "load PKRS";
        23 "load FRED";
    }
    VmFunction {
        0 "EPTP switching";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::Width;
    use crate::vmx::controls::{entry, exit, pin, primary, secondary};

    #[test]
    fn controls_are_in_order_and_inside_of_their_field() {
        assert!(CONTROLS.windows(2).all(|w| (w[0].group, w[0].bit) < (w[1].group, w[1].bit)));
        for c in CONTROLS {
            let bits = if c.group.field().width() == Width::Bits64 { 64 } else { 32 };
            assert!(c.bit < bits, "{}", c.name);
        }
    }

    #[test]
    fn names_and_masks_agree() {
        for (group, mask, name) in [
            (Group::Pin, pin::POSTED_INTERRUPTS, "process posted interrupts"),
            (Group::Primary, primary::USE_TPR_SHADOW, "use TPR shadow"),
            (Group::Primary, primary::MONITOR_TRAP_FLAG, "monitor trap flag"),
            (Group::Secondary, secondary::PAUSE_LOOP_EXITING, "PAUSE-loop exiting"),
            (Group::Secondary, secondary::EPT_VIOLATION_VE, "EPT-violation #VE"),
            (Group::Secondary, secondary::USE_TSC_SCALING, "use TSC scaling"),
            (Group::Exit, exit::SAVE_PREEMPTION_TIMER, "save VMX-preemption timer value"),
            (Group::Entry, entry::LOAD_EFER, "load IA32_EFER"),
        ] {
            let control = Control::at(group, mask.trailing_zeros() as u8).unwrap();
            assert_eq!((control.name, control.mask()), (name, u64::from(mask)));
        }
    }
}
