//! MSRs that come in rows: registers of one kind, numbered.

/// A row of MSRs.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Number of the first MSR.
    pub first: u32,
    /// Distance between two of the row.
    pub step: u32,
    /// The names, in order of numbers.
    pub names: &'static [&'static str],
    pub text: &'static str,
    /// Manual and section name.
    pub source: &'static str,
}

impl Family {
    /// The name of an MSR, if it is of this row.
    pub fn name(&self, msr: u32) -> Option<&'static str> {
        let distance = msr.checked_sub(self.first)?;
        if !distance.is_multiple_of(self.step) {
            return None;
        }
        self.names.get((distance / self.step) as usize).copied()
    }

    /// Numbers and names.
    pub fn members(&self) -> impl Iterator<Item = (u32, &'static str)> {
        (self.first..).step_by(self.step as usize).zip(self.names.iter().copied())
    }
}

const APIC_SECTION: &str = "Intel SDM volume 3, \"x2APIC Register Address Space\"";
const MTRR_SECTION: &str = "Intel SDM volume 3, \"Memory Type Range Registers (MTRRs)\"";

/// All rows; none overlaps another or a single entry.
pub const FAMILIES: &[Family] = &[
    Family {
        first: 0x11,
        step: 1,
        names: &["MSR_KVM_WALL_CLOCK", "MSR_KVM_SYSTEM_TIME"],
        text: "KVM's clock under its first numbers, which are those of other MSRs on real processors. Kernels of today use the numbers from 0x4b564d00 on.",
        source: "Linux, Documentation/virt/kvm/x86/msr.rst",
    },
    Family {
        first: 0x2a,
        step: 1,
        names: &["MSR_EBL_CR_POWERON"],
        text: "How the front-side bus was configured at power-on, on processors that had one. Zero here.",
        source: "Intel SDM volume 4, \"MSRs in the P6 Family Processors\"",
    },
    Family {
        first: 0x34,
        step: 1,
        names: &["MSR_SMI_COUNT"],
        text: "System-management interrupts since power-on. Kernels read it to tell lost time from SMIs apart from other lost time.",
        source: "Intel SDM volume 4, \"MSRs in Processors Based on Nehalem Microarchitecture\"",
    },
    Family {
        first: 0x4e,
        step: 1,
        names: &["MSR_PPIN_CTL", "MSR_PPIN"],
        text: "Protected processor inventory number: a serial number of the package, and the lock that hides it. A guest has none.",
        source: "Intel SDM volume 4, \"Architectural MSRs\"",
    },
    Family {
        first: 0xc5,
        step: 1,
        names: &["IA32_PMC4", "IA32_PMC5", "IA32_PMC6", "IA32_PMC7"],
        text: "A general performance counter: counts the event that the IA32_PERFEVTSEL of the same number selects.",
        source: "Intel SDM volume 3, \"Architectural Performance Monitoring\"",
    },
    Family {
        first: 0x188,
        step: 1,
        names: &["IA32_PERFEVTSEL2", "IA32_PERFEVTSEL3"],
        text: "Selects the event of the general performance counter of the same number.",
        source: "Intel SDM volume 3, \"Architectural Performance Monitoring\"",
    },
    Family {
        first: 0x1db,
        step: 1,
        names: &["MSR_LASTBRANCHFROMIP", "MSR_LASTBRANCHTOIP", "MSR_LASTINTFROMIP", "MSR_LASTINTTOIP"],
        text: "Where the last branch, and the last interrupt or exception, came from and went to, on processors with one record. Zero here: there are no last-branch records.",
        source: "Intel SDM volume 4, \"MSRs in the P6 Family Processors\"",
    },
    Family {
        first: 0x1fc,
        step: 1,
        names: &["MSR_POWER_CTL"],
        text: "Switches of power management, such as C1E. What is written is kept and has no effect.",
        source: "Intel SDM volume 4, \"MSRs in Processors Based on Nehalem Microarchitecture\"",
    },
    Family {
        first: 0x200,
        step: 2,
        names: &[
            "IA32_MTRR_PHYSBASE0",
            "IA32_MTRR_PHYSBASE1",
            "IA32_MTRR_PHYSBASE2",
            "IA32_MTRR_PHYSBASE3",
            "IA32_MTRR_PHYSBASE4",
            "IA32_MTRR_PHYSBASE5",
            "IA32_MTRR_PHYSBASE6",
            "IA32_MTRR_PHYSBASE7",
            "IA32_MTRR_PHYSBASE8",
            "IA32_MTRR_PHYSBASE9",
        ],
        text: "Start and memory type of a variable range. Kernels read them all at boot and mostly leave them alone.",
        source: MTRR_SECTION,
    },
    Family {
        first: 0x201,
        step: 2,
        names: &[
            "IA32_MTRR_PHYSMASK0",
            "IA32_MTRR_PHYSMASK1",
            "IA32_MTRR_PHYSMASK2",
            "IA32_MTRR_PHYSMASK3",
            "IA32_MTRR_PHYSMASK4",
            "IA32_MTRR_PHYSMASK5",
            "IA32_MTRR_PHYSMASK6",
            "IA32_MTRR_PHYSMASK7",
            "IA32_MTRR_PHYSMASK8",
            "IA32_MTRR_PHYSMASK9",
        ],
        text: "Size of a variable range, and whether it counts.",
        source: MTRR_SECTION,
    },
    Family {
        first: 0x250,
        step: 1,
        names: &["IA32_MTRR_FIX64K_00000"],
        text: "Memory types of the first 512 KiB, a byte for each 64 KiB.",
        source: MTRR_SECTION,
    },
    Family {
        first: 0x258,
        step: 1,
        names: &["IA32_MTRR_FIX16K_80000", "IA32_MTRR_FIX16K_A0000"],
        text: "Memory types of 128 KiB below 768 KiB, a byte for each 16 KiB.",
        source: MTRR_SECTION,
    },
    Family {
        first: 0x268,
        step: 1,
        names: &[
            "IA32_MTRR_FIX4K_C0000",
            "IA32_MTRR_FIX4K_C8000",
            "IA32_MTRR_FIX4K_D0000",
            "IA32_MTRR_FIX4K_D8000",
            "IA32_MTRR_FIX4K_E0000",
            "IA32_MTRR_FIX4K_E8000",
            "IA32_MTRR_FIX4K_F0000",
            "IA32_MTRR_FIX4K_F8000",
        ],
        text: "Memory types of 32 KiB in the last quarter of the first megabyte, a byte for each 4 KiB.",
        source: MTRR_SECTION,
    },
    Family {
        first: 0x400,
        step: 4,
        names: &[
            "IA32_MC0_CTL",
            "IA32_MC1_CTL",
            "IA32_MC2_CTL",
            "IA32_MC3_CTL",
            "IA32_MC4_CTL",
            "IA32_MC5_CTL",
            "IA32_MC6_CTL",
            "IA32_MC7_CTL",
            "IA32_MC8_CTL",
            "IA32_MC9_CTL",
        ],
        text: "A register of a machine-check bank: a unit of the processor that detects errors. Kernels enable all banks by their CTL, and clear what STATUS has from before.",
        source: "Intel SDM volume 3, \"Error-Reporting Register Banks\"",
    },
    Family {
        first: 0x401,
        step: 4,
        names: &[
            "IA32_MC0_STATUS",
            "IA32_MC1_STATUS",
            "IA32_MC2_STATUS",
            "IA32_MC3_STATUS",
            "IA32_MC4_STATUS",
            "IA32_MC5_STATUS",
            "IA32_MC6_STATUS",
            "IA32_MC7_STATUS",
            "IA32_MC8_STATUS",
            "IA32_MC9_STATUS",
        ],
        text: "A register of a machine-check bank: a unit of the processor that detects errors. Kernels enable all banks by their CTL, and clear what STATUS has from before.",
        source: "Intel SDM volume 3, \"Error-Reporting Register Banks\"",
    },
    Family {
        first: 0x402,
        step: 4,
        names: &[
            "IA32_MC0_ADDR",
            "IA32_MC1_ADDR",
            "IA32_MC2_ADDR",
            "IA32_MC3_ADDR",
            "IA32_MC4_ADDR",
            "IA32_MC5_ADDR",
            "IA32_MC6_ADDR",
            "IA32_MC7_ADDR",
            "IA32_MC8_ADDR",
            "IA32_MC9_ADDR",
        ],
        text: "A register of a machine-check bank: a unit of the processor that detects errors. Kernels enable all banks by their CTL, and clear what STATUS has from before.",
        source: "Intel SDM volume 3, \"Error-Reporting Register Banks\"",
    },
    Family {
        first: 0x403,
        step: 4,
        names: &[
            "IA32_MC0_MISC",
            "IA32_MC1_MISC",
            "IA32_MC2_MISC",
            "IA32_MC3_MISC",
            "IA32_MC4_MISC",
            "IA32_MC5_MISC",
            "IA32_MC6_MISC",
            "IA32_MC7_MISC",
            "IA32_MC8_MISC",
            "IA32_MC9_MISC",
        ],
        text: "A register of a machine-check bank: a unit of the processor that detects errors. Kernels enable all banks by their CTL, and clear what STATUS has from before.",
        source: "Intel SDM volume 3, \"Error-Reporting Register Banks\"",
    },
    Family {
        first: 0x606,
        step: 1,
        names: &["MSR_RAPL_POWER_UNIT"],
        text: "Energy that a part of the package has used, or the unit of that. Zero here: nothing is measured.",
        source: "Intel SDM volume 3, \"Package RAPL Domain\"",
    },
    Family {
        first: 0x611,
        step: 1,
        names: &["MSR_PKG_ENERGY_STATUS"],
        text: "Energy that a part of the package has used, or the unit of that. Zero here: nothing is measured.",
        source: "Intel SDM volume 3, \"Package RAPL Domain\"",
    },
    Family {
        first: 0x619,
        step: 1,
        names: &["MSR_DRAM_ENERGY_STATUS"],
        text: "Energy that a part of the package has used, or the unit of that. Zero here: nothing is measured.",
        source: "Intel SDM volume 3, \"Package RAPL Domain\"",
    },
    Family {
        first: 0x639,
        step: 1,
        names: &["MSR_PP0_ENERGY_STATUS"],
        text: "Energy that a part of the package has used, or the unit of that. Zero here: nothing is measured.",
        source: "Intel SDM volume 3, \"Package RAPL Domain\"",
    },
    Family {
        first: 0x641,
        step: 1,
        names: &["MSR_PP1_ENERGY_STATUS"],
        text: "Energy that a part of the package has used, or the unit of that. Zero here: nothing is measured.",
        source: "Intel SDM volume 3, \"Package RAPL Domain\"",
    },
    Family {
        first: 0x803,
        step: 1,
        names: &["IA32_X2APIC_VERSION"],
        text: "Version of the local APIC, and how many entries its local vector table has.",
        source: APIC_SECTION,
    },
    Family {
        first: 0x80a,
        step: 1,
        names: &["IA32_X2APIC_PPR"],
        text: "Processor priority: interrupts of this class and below wait.",
        source: APIC_SECTION,
    },
    Family {
        first: 0x80d,
        step: 1,
        names: &["IA32_X2APIC_LDR"],
        text: "Logical destination: cluster, and the processor's bit in it; read-only in x2APIC mode.",
        source: APIC_SECTION,
    },
    Family {
        first: 0x810,
        step: 1,
        names: &[
            "IA32_X2APIC_ISR0",
            "IA32_X2APIC_ISR1",
            "IA32_X2APIC_ISR2",
            "IA32_X2APIC_ISR3",
            "IA32_X2APIC_ISR4",
            "IA32_X2APIC_ISR5",
            "IA32_X2APIC_ISR6",
            "IA32_X2APIC_ISR7",
            "IA32_X2APIC_TMR0",
            "IA32_X2APIC_TMR1",
            "IA32_X2APIC_TMR2",
            "IA32_X2APIC_TMR3",
            "IA32_X2APIC_TMR4",
            "IA32_X2APIC_TMR5",
            "IA32_X2APIC_TMR6",
            "IA32_X2APIC_TMR7",
            "IA32_X2APIC_IRR0",
            "IA32_X2APIC_IRR1",
            "IA32_X2APIC_IRR2",
            "IA32_X2APIC_IRR3",
            "IA32_X2APIC_IRR4",
            "IA32_X2APIC_IRR5",
            "IA32_X2APIC_IRR6",
            "IA32_X2APIC_IRR7",
        ],
        text: "A bit for each of 32 vectors: in service (ISR), level-triggered (TMR), or requested (IRR).",
        source: APIC_SECTION,
    },
    Family {
        first: 0x828,
        step: 7,
        names: &["IA32_X2APIC_ESR", "IA32_X2APIC_LVT_CMCI"],
        text: "Errors that the local APIC has seen (ESR); the vector for corrected machine checks (LVT CMCI).",
        source: APIC_SECTION,
    },
    Family {
        first: 0x833,
        step: 1,
        names: &[
            "IA32_X2APIC_LVT_THERMAL",
            "IA32_X2APIC_LVT_PMI",
            "IA32_X2APIC_LVT_LINT0",
            "IA32_X2APIC_LVT_LINT1",
            "IA32_X2APIC_LVT_ERROR",
        ],
        text: "An entry of the local vector table: vector, delivery mode and mask of one of the APIC's own interrupts.",
        source: APIC_SECTION,
    },
    Family {
        first: 0xc001_1029,
        step: 1,
        names: &["MSR_AMD64_DE_CFG"],
        text: "AMD: configuration of decode and execution; a bit tells whether LFENCE serialises. Kernels probe it on any processor.",
        source: "AMD64 Architecture Programmer's Manual volume 2, \"Serializing Instructions\"",
    },
];
