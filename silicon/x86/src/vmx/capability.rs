//! What this implementation of VMX can do ("VMX Capability Reporting Facility").
//!
//! Each constant names exactly the controls that the processor honours; VM-entry refuses every other.

use x86_defs::control::{cr0, cr4};
use x86_defs::vmx::capability as msr;
use x86_defs::vmx::capability::{basic, default1, ept_vpid, misc};
use x86_defs::vmx::controls::{entry, exit, pin, primary, secondary};
use x86_defs::vmx::{Field, Group};

use super::preemption;
use super::vmcs::REVISION;
use crate::model::{Feature, Model};

/// Values that a 32-bit control field may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Bits that must be one.
    pub zero: u32,
    /// Bits that may be one.
    pub one: u32,
}

impl Allowed {
    const fn new(required: u32, optional: u32) -> Self {
        Self { zero: required, one: required | optional }
    }

    /// Whether a control field may have this value.
    #[must_use]
    pub const fn permits(self, value: u32) -> bool {
        self.zero & !value == 0 && value & !self.one == 0
    }

    const fn msr(self) -> u64 {
        self.zero as u64 | (self.one as u64) << 32
    }
}

/// Pin-based controls.
pub const PIN: Allowed = Allowed::new(
    default1::PIN,
    pin::EXTERNAL_INTERRUPT_EXITING
        | pin::NMI_EXITING
        | pin::VIRTUAL_NMIS
        | pin::PREEMPTION_TIMER
        | pin::POSTED_INTERRUPTS,
);

/// Primary controls; CR3 exits are optional, so the TRUE MSR differs from the old one.
pub const PRIMARY: Allowed = Allowed::new(
    default1::PRIMARY & !(primary::CR3_LOAD_EXITING | primary::CR3_STORE_EXITING),
    primary::INTERRUPT_WINDOW_EXITING
        | primary::USE_TSC_OFFSETTING
        | primary::HLT_EXITING
        | primary::INVLPG_EXITING
        | primary::MWAIT_EXITING
        | primary::RDPMC_EXITING
        | primary::RDTSC_EXITING
        | primary::CR3_LOAD_EXITING
        | primary::CR3_STORE_EXITING
        | primary::CR8_LOAD_EXITING
        | primary::CR8_STORE_EXITING
        | primary::USE_TPR_SHADOW
        | primary::NMI_WINDOW_EXITING
        | primary::MOV_DR_EXITING
        | primary::UNCONDITIONAL_IO_EXITING
        | primary::USE_IO_BITMAPS
        | primary::MONITOR_TRAP_FLAG
        | primary::USE_MSR_BITMAPS
        | primary::MONITOR_EXITING
        | primary::PAUSE_EXITING
        | primary::ACTIVATE_SECONDARY_CONTROLS,
);

/// Secondary controls, on a processor with every feature that they need; see [`secondary`].
const SECONDARY: u32 = secondary::VIRTUALIZE_APIC_ACCESSES
    | secondary::ENABLE_EPT
    | secondary::DESCRIPTOR_TABLE_EXITING
    | secondary::ENABLE_RDTSCP
    | secondary::VIRTUALIZE_X2APIC_MODE
    | secondary::ENABLE_VPID
    | secondary::WBINVD_EXITING
    | secondary::UNRESTRICTED_GUEST
    | secondary::APIC_REGISTER_VIRTUALIZATION
    | secondary::VIRTUAL_INTERRUPT_DELIVERY
    | secondary::PAUSE_LOOP_EXITING
    | secondary::RDRAND_EXITING
    | secondary::ENABLE_INVPCID
    | secondary::ENABLE_VM_FUNCTIONS
    | secondary::RDSEED_EXITING
    | secondary::ENABLE_XSAVES
    | secondary::ENABLE_PML
    | secondary::MODE_BASED_EXECUTE
    | secondary::EPT_VIOLATION_VE
    | secondary::USE_TSC_SCALING;

/// VM-exit controls; debug controls need not be saved.
pub const EXIT: Allowed = Allowed::new(
    default1::EXIT & !exit::SAVE_DEBUG_CONTROLS,
    exit::SAVE_DEBUG_CONTROLS
        | exit::HOST_ADDRESS_SPACE_SIZE
        | exit::ACKNOWLEDGE_INTERRUPT
        | exit::SAVE_PAT
        | exit::LOAD_PAT
        | exit::SAVE_EFER
        | exit::LOAD_EFER
        | exit::SAVE_PREEMPTION_TIMER,
);

/// VM-entry controls; debug controls need not be loaded.
pub const ENTRY: Allowed = Allowed::new(
    default1::ENTRY & !entry::LOAD_DEBUG_CONTROLS,
    entry::LOAD_DEBUG_CONTROLS | entry::IA32E_MODE_GUEST | entry::LOAD_PAT | entry::LOAD_EFER,
);

/// VM-exit controls of a processor: those whose feature it has.
#[must_use]
pub fn exit(model: &Model) -> Allowed {
    let keys = if model.has(Feature::Pks) { exit::LOAD_PKRS } else { 0 };
    Allowed { one: EXIT.one | keys, ..EXIT }
}

/// VM-entry controls of a processor: those whose feature it has.
#[must_use]
pub fn entry(model: &Model) -> Allowed {
    let keys = if model.has(Feature::Pks) { entry::LOAD_PKRS } else { 0 };
    Allowed { one: ENTRY.one | keys, ..ENTRY }
}
/// VM functions: EPTP switching.
pub const VM_FUNCTIONS: u64 = 1;

/// Number of CR3-target values.
pub const CR3_TARGETS: u64 = 4;

/// IA32_VMX_MISC.
pub const MISC: u64 = preemption::RATE as u64
    | misc::STORE_LMA
    | misc::ACTIVITY_HLT
    | misc::ACTIVITY_SHUTDOWN
    | misc::ACTIVITY_WAIT_FOR_SIPI
    | CR3_TARGETS << misc::CR3_TARGETS_SHIFT
    | misc::VMWRITE_READ_ONLY
    | misc::ZERO_LENGTH_INJECTION;

/// IA32_VMX_EPT_VPID_CAP.
pub const EPT_VPID: u64 = ept_vpid::EXECUTE_ONLY
    | ept_vpid::WALK_LENGTH_4
    | ept_vpid::MEMORY_TYPE_UC
    | ept_vpid::MEMORY_TYPE_WB
    | ept_vpid::PAGES_2M
    | ept_vpid::PAGES_1G
    | ept_vpid::INVEPT
    | ept_vpid::ACCESSED_DIRTY
    | ept_vpid::ADVANCED_EXIT_INFORMATION
    | ept_vpid::INVEPT_SINGLE_CONTEXT
    | ept_vpid::INVEPT_ALL_CONTEXT
    | ept_vpid::INVVPID
    | ept_vpid::INVVPID_INDIVIDUAL_ADDRESS
    | ept_vpid::INVVPID_SINGLE_CONTEXT
    | ept_vpid::INVVPID_ALL_CONTEXT
    | ept_vpid::INVVPID_SINGLE_CONTEXT_RETAINING_GLOBALS;

/// Bits of CR0 that are one in VMX operation (an unrestricted guest may clear PE and PG).
pub const CR0_FIXED0: u64 = cr0::PE | cr0::NE | cr0::PG;
/// Bits of CR0 that may be one.
pub const CR0_FIXED1: u64 = 0xffff_ffff;
/// Bits of CR4 that are one in VMX operation.
pub const CR4_FIXED0: u64 = cr4::VMXE;

/// Secondary controls of a processor: those whose feature it has.
#[must_use]
pub fn secondary(model: &Model) -> Allowed {
    let mut one = SECONDARY;
    for (control, feature) in [
        (secondary::ENABLE_RDTSCP, Feature::Rdtscp),
        (secondary::RDRAND_EXITING, Feature::Rdrand),
        (secondary::RDSEED_EXITING, Feature::Rdseed),
        (secondary::ENABLE_INVPCID, Feature::Invpcid),
        (secondary::ENABLE_XSAVES, Feature::Xsaves),
    ] {
        // RDTSCP's control also governs RDPID.
        let rdpid = feature == Feature::Rdtscp && model.has(Feature::Rdpid);
        if !model.has(feature) && !rdpid {
            one &= !control;
        }
    }
    Allowed::new(0, one)
}

/// Bits of CR4 that may be one: those whose feature the processor has.
#[must_use]
pub fn cr4_fixed1(model: &Model) -> u64 {
    let mut bits = cr4::TSD | cr4::PCE | cr4::VMXE;
    for (bit, feature) in [
        (cr4::VME | cr4::PVI, Feature::Vme),
        (cr4::DE, Feature::De),
        (cr4::PSE, Feature::Pse),
        (cr4::PAE, Feature::Pae),
        (cr4::MCE, Feature::Mce),
        (cr4::PGE, Feature::Pge),
        (cr4::OSFXSR, Feature::Fxsr),
        (cr4::OSXMMEXCPT, Feature::Sse),
        (cr4::UMIP, Feature::Umip),
        (cr4::FSGSBASE, Feature::Fsgsbase),
        (cr4::PCIDE, Feature::Pcid),
        (cr4::SMEP, Feature::Smep),
        (cr4::SMAP, Feature::Smap),
        (cr4::OSXSAVE, Feature::Xsave),
        (cr4::LA57, Feature::La57),
        (cr4::PKE, Feature::Pku),
        (cr4::PKS, Feature::Pks),
        (cr4::LAM_SUP, Feature::Lam),
    ] {
        if model.has(feature) {
            bits |= bit;
        }
    }
    bits
}

/// The controls of a field that may be one.
#[must_use]
pub fn allowed_one(model: &Model, group: Group) -> u64 {
    match group {
        Group::Pin => PIN.one.into(),
        Group::Primary => PRIMARY.one.into(),
        Group::Secondary => secondary(model).one.into(),
        Group::Exit => exit(model).one.into(),
        Group::Entry => entry(model).one.into(),
        Group::VmFunction => VM_FUNCTIONS,
        Group::Tertiary | Group::SecondaryExit => 0,
    }
}

/// Whether the processor supports the 1-setting of a control.
#[must_use]
pub fn has_control(model: &Model, group: Group, bit: u8) -> bool {
    allowed_one(model, group) >> bit & 1 != 0
}

/// Whether the processor has a VMCS field.
#[must_use]
pub fn has_field(model: &Model, field: Field) -> bool {
    field.needs().is_empty() || field.needs().iter().any(|&(group, bit)| has_control(model, group, bit))
}

/// The value of a VMX capability MSR; `None` where the processor has no such MSR.
#[must_use]
pub fn read(model: &Model, number: u32) -> Option<u64> {
    Some(match number {
        msr::IA32_VMX_BASIC => {
            u64::from(REVISION)
                | 4096 << basic::REGION_SIZE_SHIFT
                | basic::WRITE_BACK << basic::MEMORY_TYPE_SHIFT
                | basic::INS_OUTS_INFORMATION
                | basic::TRUE_CONTROLS
        }
        msr::IA32_VMX_PINBASED_CTLS => Allowed::new(default1::PIN, PIN.one).msr(),
        msr::IA32_VMX_PROCBASED_CTLS => Allowed::new(default1::PRIMARY, PRIMARY.one).msr(),
        msr::IA32_VMX_EXIT_CTLS => Allowed::new(default1::EXIT, exit(model).one).msr(),
        msr::IA32_VMX_ENTRY_CTLS => Allowed::new(default1::ENTRY, entry(model).one).msr(),
        msr::IA32_VMX_TRUE_PINBASED_CTLS => PIN.msr(),
        msr::IA32_VMX_TRUE_PROCBASED_CTLS => PRIMARY.msr(),
        msr::IA32_VMX_TRUE_EXIT_CTLS => exit(model).msr(),
        msr::IA32_VMX_TRUE_ENTRY_CTLS => entry(model).msr(),
        msr::IA32_VMX_PROCBASED_CTLS2 => secondary(model).msr(),
        msr::IA32_VMX_MISC => MISC,
        msr::IA32_VMX_CR0_FIXED0 => CR0_FIXED0,
        msr::IA32_VMX_CR0_FIXED1 => CR0_FIXED1,
        msr::IA32_VMX_CR4_FIXED0 => CR4_FIXED0,
        msr::IA32_VMX_CR4_FIXED1 => cr4_fixed1(model),
        // Bits 9:1, the highest index of any field.
        msr::IA32_VMX_VMCS_ENUM => {
            let fields = Field::ALL.iter().filter(|&&f| has_field(model, f));
            fields.map(|f| u64::from(f.encoding() & 0x3fe)).max().unwrap_or(0)
        }
        msr::IA32_VMX_EPT_VPID_CAP => EPT_VPID,
        msr::IA32_VMX_VMFUNC => VM_FUNCTIONS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn allowed_zero_settings_are_a_subset_of_the_allowed_one_settings() {
        for number in (0x481..=0x484).chain([0x48b]).chain(0x48d..=0x490) {
            let value = read(&Model::default(), number).unwrap();
            let (zero, one) = (value as u32, (value >> 32) as u32);
            assert_eq!(zero & !one, 0, "MSR {number:#x}");
        }
    }

    #[test]
    fn true_msrs_relax_the_old_ones_only_in_default1_bits() {
        for (old, new, default1) in [
            (0x481, 0x48d, default1::PIN),
            (0x482, 0x48e, default1::PRIMARY),
            (0x483, 0x48f, default1::EXIT),
            (0x484, 0x490, default1::ENTRY),
        ] {
            let (old, new) = (read(&Model::default(), old).unwrap(), read(&Model::default(), new).unwrap());
            assert_eq!(old >> 32, new >> 32, "allowed-1 settings agree");
            assert_eq!(old as u32, default1, "the old MSR requires every default1 control");
            assert_eq!(new as u32 & !(old as u32), 0, "the TRUE MSR requires no more than the old one");
        }
    }

    #[test]
    fn fixed_bits_that_must_be_one_may_be_one() {
        let model = Model::default();
        assert_eq!(CR0_FIXED0 & !CR0_FIXED1, 0);
        assert_eq!(CR4_FIXED0 & !cr4_fixed1(&model), 0);
    }

    #[test]
    fn a_control_follows_the_feature_that_it_governs() {
        let model = Model::parse("glassvisor-v2,-invpcid,-smap").unwrap();
        assert_eq!(secondary(&model).one & secondary::ENABLE_INVPCID, 0);
        assert_ne!(secondary(&Model::default()).one & secondary::ENABLE_INVPCID, 0);
        assert_eq!(cr4_fixed1(&model) & cr4::SMAP, 0);
    }

    #[test]
    fn misc_reports_the_rate_of_the_preemption_timer_and_four_cr3_targets() {
        assert_eq!(MISC & misc::PREEMPTION_TIMER_RATE, 5);
        assert_eq!((MISC >> 16) & 0x1ff, 4);
        assert!(read(&Model::default(), 0x492).is_none());
    }
}
