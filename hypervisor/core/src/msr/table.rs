//! The table of MSRs, in the order of numbers.
//!
//! Values and checks are KVM's; where KVM leaves a value to its VMM, they are those that QEMU's firmware sees.

use silicon_x86::model::{Feature, Model};
use x86_defs::msr;

use super::check;

/// Value after RESET.
#[derive(Clone, Copy, Debug)]
pub enum Reset {
    Value(u64),
    /// What the model says; `None`: the model does not have the MSR.
    OfModel(fn(&Model) -> Option<u64>),
    /// Reads are #GP(0).
    WriteOnly,
}

/// What the guest may write. Anything else is #GP(0).
#[derive(Clone, Copy, Debug)]
pub enum Write {
    /// Nothing: read-only.
    Refused,
    /// Any value, which has no effect.
    Ignored,
    /// A command of these bits; nothing is kept.
    Command(u64),
    /// Bits that take any value, and bits that keep theirs whatever is written. All others must be written as they are.
    Bits { writable: u64, ignored: u64 },
    /// A value that passes a check, which gets the number too.
    Checked(fn(&Model, u32, u64) -> bool),
}

/// Who keeps an MSR.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    /// [`super::MsrStore`].
    Store { reset: Reset, write: Write },
    /// The modelled processor: instructions or VM-entry use it.
    Processor,
    /// The guest's clock.
    Clock,
    /// The local APIC.
    LocalApic,
    /// KVM's paravirtual interfaces.
    Paravirtual,
}

/// One MSR, or `count` of them, `step` apart.
#[derive(Clone, Copy, Debug)]
pub struct MsrRow {
    pub first: u32,
    pub count: u32,
    pub step: u32,
    /// As the manual has it; `n` stands for the index.
    pub name: &'static str,
    pub home: Home,
    /// Section of the manual, or where else the behaviour is from.
    pub source: &'static str,
}

impl MsrRow {
    /// The numbers of the row's MSRs.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, step) = (self.first, self.step);
        (0..self.count).map(move |i| first + i * step)
    }

    fn has(&self, number: u32) -> bool {
        number >= self.first && (number - self.first) % self.step == 0 && (number - self.first) / self.step < self.count
    }
}

/// The row of an MSR.
#[must_use]
pub fn row(number: u32) -> Option<&'static MsrRow> {
    TABLE.iter().find(|row| row.has(number))
}

/// Variable-range MTRRs.
const MTRR_VARIABLE: u32 = 8;
/// IA32_MTRRCAP: variable ranges, fixed ranges, write combining.
const MTRR_CAP: u64 = MTRR_VARIABLE as u64 | 1 << 8 | 1 << 10;
/// Banks of machine-check registers.
pub const MACHINE_CHECK_BANKS: u32 = 10;
/// IA32_MCG_CAP: the banks, IA32_MCG_CTL (bit 8), software error recovery (bit 24).
const MCG_CAP: u64 = MACHINE_CHECK_BANKS as u64 | 1 << 8 | 1 << 24;
/// IA32_MISC_ENABLE: fast strings on, BTS and PEBS unavailable.
const MISC_ENABLE: u64 = 1 | MISC_ENABLE_UNAVAILABLE;
const MISC_ENABLE_UNAVAILABLE: u64 = 1 << 11 | 1 << 12;
/// IA32_MISC_ENABLE: performance monitoring available, which is read-only and ignored.
const MISC_ENABLE_EMON: u64 = 1 << 7;

const ANY: Write = Write::Bits { writable: u64::MAX, ignored: 0 };

fn platform_info(model: &Model) -> Option<u64> {
    // Maximum non-turbo ratio in units of 100 MHz, and CPUID faulting (bit 31).
    Some(u64::from(model.tsc_khz / 100_000) << 8 | 1 << 31)
}

fn arch_capabilities(model: &Model) -> Option<u64> {
    model.has(Feature::ArchCapabilities).then_some(model.arch_capabilities)
}

fn spec_ctrl(model: &Model) -> Option<u64> {
    (model.has(Feature::Ibrs) || model.has(Feature::Stibp) || model.has(Feature::Ssbd)).then_some(0)
}

const fn row_of(first: u32, name: &'static str, home: Home, source: &'static str) -> MsrRow {
    MsrRow { first, count: 1, step: 1, name, home, source }
}

const fn store(first: u32, name: &'static str, reset: u64, write: Write, source: &'static str) -> MsrRow {
    row_of(first, name, Home::Store { reset: Reset::Value(reset), write }, source)
}

const fn many(count: u32, step: u32, row: MsrRow) -> MsrRow {
    MsrRow { count, step, ..row }
}

const ARCHITECTURAL: &str = "Intel SDM volume 4, \"Architectural MSRs\"";
const MTRR: &str = "Intel SDM volume 3, \"Memory Type Range Registers (MTRRs)\"";
const MACHINE_CHECK: &str = "Intel SDM volume 3, \"Machine-Check MSRs\"";
const SPECULATION: &str =
    "Intel SDM volume 4, \"Architectural MSRs\"; Intel, \"Speculative Execution Side Channel Mitigations\"";
const KVM_ZERO: &str = "KVM: reads as zero, so that kernels for bare metal go on";
const KVM: &str = "Linux, Documentation/virt/kvm/x86/msr.rst";

/// Every MSR that there is.
pub const TABLE: &[MsrRow] = &[
    many(2, 1, store(0x0, "IA32_P5_MC_ADDR, IA32_P5_MC_TYPE", 0, Write::Refused, KVM_ZERO)),
    row_of(msr::IA32_TSC, "IA32_TIME_STAMP_COUNTER", Home::Clock, ARCHITECTURAL),
    many(2, 1, row_of(0x11, "MSR_KVM_WALL_CLOCK, MSR_KVM_SYSTEM_TIME", Home::Paravirtual, KVM)),
    store(0x17, "IA32_PLATFORM_ID", 0, Write::Refused, KVM_ZERO),
    row_of(
        msr::IA32_APIC_BASE,
        "IA32_APIC_BASE",
        Home::LocalApic,
        "Intel SDM volume 3, \"Local APIC Status and Location\"",
    ),
    store(0x2a, "MSR_EBL_CR_POWERON", 0, Write::Refused, KVM_ZERO),
    store(
        msr::MSR_SMI_COUNT,
        "MSR_SMI_COUNT",
        0,
        Write::Refused,
        "Intel SDM volume 4: there is no SMM, so no SMI is counted",
    ),
    // Locked, VMX off: nested virtualisation is not offered yet.
    store(msr::IA32_FEATURE_CONTROL, "IA32_FEATURE_CONTROL", 1, Write::Refused, ARCHITECTURAL),
    row_of(msr::IA32_TSC_ADJUST, "IA32_TSC_ADJUST", Home::Clock, "Intel SDM volume 3, \"IA32_TSC_ADJUST MSR\""),
    row_of(
        msr::IA32_SPEC_CTRL,
        "IA32_SPEC_CTRL",
        Home::Store { reset: Reset::OfModel(spec_ctrl), write: Write::Checked(check::spec_ctrl) },
        SPECULATION,
    ),
    row_of(
        msr::IA32_PRED_CMD,
        "IA32_PRED_CMD",
        Home::Store { reset: Reset::WriteOnly, write: Write::Command(1) },
        SPECULATION,
    ),
    row_of(
        msr::IA32_BIOS_UPDT_TRIG,
        "IA32_BIOS_UPDT_TRIG",
        Home::Store { reset: Reset::WriteOnly, write: Write::Ignored },
        "Intel SDM volume 3, \"Microcode Update Facilities\"; KVM ignores updates",
    ),
    store(
        msr::IA32_BIOS_SIGN_ID,
        "IA32_BIOS_SIGN_ID",
        1 << 32,
        Write::Ignored,
        "Intel SDM volume 3, \"Microcode Update Facilities\"",
    ),
    row_of(
        msr::MSR_PLATFORM_INFO,
        "MSR_PLATFORM_INFO",
        Home::Store { reset: Reset::OfModel(platform_info), write: Write::Refused },
        "Intel SDM volume 4, \"MSRs in Processors Based on Intel Core Microarchitecture (Nehalem)\"",
    ),
    store(msr::IA32_MTRRCAP, "IA32_MTRRCAP", MTRR_CAP, Write::Refused, MTRR),
    row_of(
        msr::IA32_ARCH_CAPABILITIES,
        "IA32_ARCH_CAPABILITIES",
        Home::Store { reset: Reset::OfModel(arch_capabilities), write: Write::Refused },
        SPECULATION,
    ),
    row_of(
        msr::IA32_FLUSH_CMD,
        "IA32_FLUSH_CMD",
        Home::Store { reset: Reset::WriteOnly, write: Write::Command(1) },
        SPECULATION,
    ),
    store(
        msr::MSR_MISC_FEATURES_ENABLES,
        "MSR_MISC_FEATURES_ENABLES",
        0,
        Write::Bits { writable: 1, ignored: 0 },
        "Intel, \"Intel Virtualization Technology FlexMigration Application Note\"",
    ),
    many(3, 1, row_of(msr::IA32_SYSENTER_CS, "IA32_SYSENTER_CS, _ESP, _EIP", Home::Processor, ARCHITECTURAL)),
    store(msr::IA32_MCG_CAP, "IA32_MCG_CAP", MCG_CAP, Write::Refused, MACHINE_CHECK),
    store(msr::IA32_MCG_STATUS, "IA32_MCG_STATUS", 0, ANY, MACHINE_CHECK),
    store(msr::IA32_MCG_CTL, "IA32_MCG_CTL", u64::MAX, Write::Checked(check::all_or_nothing), MACHINE_CHECK),
    // Ratio and voltage of a processor that does not change them, as KVM has them.
    store(0x198, "IA32_PERF_STATUS", 1000 | 4 << 40, Write::Refused, ARCHITECTURAL),
    store(0x199, "IA32_PERF_CTL", 0, Write::Refused, KVM_ZERO),
    store(
        msr::IA32_MISC_ENABLE,
        "IA32_MISC_ENABLE",
        MISC_ENABLE,
        Write::Bits { writable: !(MISC_ENABLE_UNAVAILABLE | MISC_ENABLE_EMON), ignored: MISC_ENABLE_EMON },
        ARCHITECTURAL,
    ),
    row_of(msr::IA32_DEBUGCTL, "IA32_DEBUGCTL", Home::Processor, "Intel SDM volume 3, \"IA32_DEBUGCTL MSR\""),
    many(
        4,
        1,
        store(
            0x1db,
            "MSR_LASTBRANCHFROMIP, MSR_LASTBRANCHTOIP, MSR_LASTINTFROMIP, MSR_LASTINTTOIP",
            0,
            Write::Refused,
            KVM_ZERO,
        ),
    ),
    store(msr::MSR_POWER_CTL, "MSR_POWER_CTL", 0, ANY, "KVM: kept and without effect"),
    many(
        2 * MTRR_VARIABLE,
        1,
        store(
            msr::IA32_MTRR_PHYSBASE0,
            "IA32_MTRR_PHYSBASEn, IA32_MTRR_PHYSMASKn",
            0,
            Write::Checked(check::mtrr_variable),
            MTRR,
        ),
    ),
    store(msr::IA32_MTRR_FIX64K_00000, "IA32_MTRR_FIX64K_00000", 0, Write::Checked(check::mtrr_fixed), MTRR),
    many(2, 1, store(msr::IA32_MTRR_FIX16K_80000, "IA32_MTRR_FIX16K_n", 0, Write::Checked(check::mtrr_fixed), MTRR)),
    many(8, 1, store(msr::IA32_MTRR_FIX4K_C0000, "IA32_MTRR_FIX4K_n", 0, Write::Checked(check::mtrr_fixed), MTRR)),
    row_of(msr::IA32_PAT, "IA32_PAT", Home::Processor, "Intel SDM volume 3, \"Page Attribute Table (PAT)\""),
    store(msr::IA32_MTRR_DEF_TYPE, "IA32_MTRR_DEF_TYPE", 0, Write::Checked(check::mtrr_default), MTRR),
    many(
        MACHINE_CHECK_BANKS,
        4,
        store(msr::IA32_MC0_CTL, "IA32_MCn_CTL", u64::MAX, Write::Checked(check::bank_control), MACHINE_CHECK),
    ),
    many(
        MACHINE_CHECK_BANKS,
        4,
        store(msr::IA32_MC0_CTL + 1, "IA32_MCn_STATUS", 0, Write::Checked(check::zero), MACHINE_CHECK),
    ),
    many(MACHINE_CHECK_BANKS, 4, store(msr::IA32_MC0_CTL + 2, "IA32_MCn_ADDR", 0, ANY, MACHINE_CHECK)),
    many(MACHINE_CHECK_BANKS, 4, store(msr::IA32_MC0_CTL + 3, "IA32_MCn_MISC", 0, ANY, MACHINE_CHECK)),
    store(0x606, "MSR_RAPL_POWER_UNIT", 0, Write::Refused, KVM_ZERO),
    store(0x611, "MSR_PKG_ENERGY_STATUS", 0, Write::Refused, KVM_ZERO),
    store(0x619, "MSR_DRAM_ENERGY_STATUS", 0, Write::Refused, KVM_ZERO),
    store(0x639, "MSR_PP0_ENERGY_STATUS", 0, Write::Refused, KVM_ZERO),
    store(0x641, "MSR_PP1_ENERGY_STATUS", 0, Write::Refused, KVM_ZERO),
    row_of(msr::IA32_TSC_DEADLINE, "IA32_TSC_DEADLINE", Home::LocalApic, "Intel SDM volume 3, \"TSC-Deadline Mode\""),
    many(
        0x100,
        1,
        row_of(msr::X2APIC_BASE, "IA32_X2APIC_n", Home::LocalApic, "Intel SDM volume 3, \"Extended XAPIC (x2APIC)\""),
    ),
    many(6, 1, row_of(0x4b56_4d00, "MSR_KVM_n", Home::Paravirtual, KVM)),
    row_of(msr::IA32_EFER, "IA32_EFER", Home::Processor, "Intel SDM volume 3, \"Extended Feature Enable Register\""),
    many(4, 1, row_of(msr::IA32_STAR, "IA32_STAR, IA32_LSTAR, IA32_CSTAR, IA32_FMASK", Home::Processor, ARCHITECTURAL)),
    many(
        3,
        1,
        row_of(msr::IA32_FS_BASE, "IA32_FS_BASE, IA32_GS_BASE, IA32_KERNEL_GS_BASE", Home::Processor, ARCHITECTURAL),
    ),
    row_of(msr::IA32_TSC_AUX, "IA32_TSC_AUX", Home::Processor, ARCHITECTURAL),
];
