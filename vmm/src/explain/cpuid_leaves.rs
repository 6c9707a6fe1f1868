//! CPUID leaves.

use super::Entry;

/// In the order of numbers.
pub const CPUID_LEAVES: &[Entry] = &[
    Entry {
        number: 0x0,
        name: "VENDOR_AND_MAXIMUM_LEAF",
        text: "EAX is the highest basic leaf; EBX, EDX and ECX spell the vendor. Everything else is to be asked only up to that leaf.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 00H",
    },
    Entry {
        number: 0x1,
        name: "FAMILY_MODEL_AND_FEATURES",
        text: "Family, model and stepping; the initial APIC id; and the first feature bits. ECX bit 31 says that there is a hypervisor, ECX bit 24 that the APIC timer has TSC-deadline mode.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 01H",
    },
    Entry {
        number: 0x2,
        name: "CACHE_DESCRIPTORS",
        text: "Cache and TLB sizes as one-byte codes; on newer processors it points to leaf 4 instead.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 02H",
    },
    Entry {
        number: 0x4,
        name: "CACHE_PARAMETERS",
        text: "One cache per sub-leaf: type, level, ways, line size, sets, and how many processors share it.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 04H",
    },
    Entry {
        number: 0x5,
        name: "MONITOR_MWAIT",
        text: "Line sizes for MONITOR and the number of C-states that MWAIT can ask for.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 05H",
    },
    Entry {
        number: 0x6,
        name: "THERMAL_AND_POWER",
        text: "Thermal sensors, turbo, and ARAT (EAX bit 2): the APIC timer runs on in deep sleep. Without ARAT a kernel needs another timer for idle processors.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 06H",
    },
    Entry {
        number: 0x7,
        name: "EXTENDED_FEATURES",
        text: "Feature bits that came later: FSGSBASE, SMEP, SMAP, INVPCID, AVX2, AVX-512, and in EDX what firmware offers against speculation flaws. IA32_TSC_ADJUST is EBX bit 1.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 07H",
    },
    Entry {
        number: 0xa,
        name: "PERFORMANCE_MONITORING",
        text: "Version of the performance-monitoring unit, number and width of its counters. Version 0 means that a guest has no PMU.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 0AH",
    },
    Entry {
        number: 0xb,
        name: "EXTENDED_TOPOLOGY",
        text: "How many bits of the x2APIC id belong to threads and cores, one level per sub-leaf. It is also how a processor learns its x2APIC id.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 0BH",
    },
    Entry {
        number: 0xd,
        name: "XSAVE_STATE",
        text: "Which state components XSAVE can handle, where each lies, and how much memory they need.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 0DH",
    },
    Entry {
        number: 0xf,
        name: "RESOURCE_MONITORING",
        text: "Cache occupancy and bandwidth monitoring per group of programs.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 0FH",
    },
    Entry {
        number: 0x10,
        name: "RESOURCE_ALLOCATION",
        text: "Cache and bandwidth partitioning between groups of programs.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 10H",
    },
    Entry {
        number: 0x14,
        name: "PROCESSOR_TRACE",
        text: "What Intel Processor Trace can record and how it can be filtered.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 14H",
    },
    Entry {
        number: 0x15,
        name: "TSC_AND_CRYSTAL_CLOCK",
        text: "The ratio of the TSC to the crystal (EBX over EAX), and the crystal's frequency in hertz (ECX). A kernel that finds all three needs not calibrate the TSC, and knows the APIC timer's frequency.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 15H",
    },
    Entry {
        number: 0x16,
        name: "PROCESSOR_FREQUENCY",
        text: "Base, maximum and bus frequency in MHz, for information.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 16H",
    },
    Entry {
        number: 0x18,
        name: "TLB_PARAMETERS",
        text: "One TLB per sub-leaf: page sizes, ways, sets, level.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 18H",
    },
    Entry {
        number: 0x1f,
        name: "V2_EXTENDED_TOPOLOGY",
        text: "As leaf 0BH with more levels: modules, tiles and dies.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 1FH",
    },
    Entry {
        number: 0x40000000,
        name: "HYPERVISOR_VENDOR",
        text: "The highest hypervisor leaf, and a signature: KVMKVMKVM for KVM, Microsoft Hv for Hyper-V's interface. Only meaningful when leaf 1 says that there is a hypervisor.",
        source: "Linux kernel documentation, \"KVM CPUID bits\"",
    },
    Entry {
        number: 0x40000001,
        name: "KVM_FEATURES",
        text: "KVM's paravirtual features: kvm-clock with its old and new MSRs, steal time, PV end of interrupt, PV IPIs, PV TLB flush, and the bit that says that kvm-clock is stable across vCPUs.",
        source: "Linux kernel documentation, \"KVM CPUID bits\"",
    },
    Entry {
        number: 0x40000010,
        name: "HYPERVISOR_FREQUENCIES",
        text: "Frequencies of the TSC (EAX) and of the local APIC timer (EBX) in kHz, by a convention that several hypervisors follow.",
        source: "Linux kernel source, \"arch/x86/kernel/cpu/vmware.c\"",
    },
    Entry {
        number: 0x80000000,
        name: "MAXIMUM_EXTENDED_LEAF",
        text: "EAX is the highest extended leaf. To be asked before any other leaf from 80000000H on.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000000H",
    },
    Entry {
        number: 0x80000001,
        name: "EXTENDED_FEATURE_BITS",
        text: "SYSCALL, no-execute pages, 1 GiB pages, RDTSCP, long mode; on AMD also SVM.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000001H",
    },
    Entry {
        number: 0x80000002,
        name: "BRAND_STRING_1",
        text: "First 16 bytes of the processor's name, as /proc/cpuinfo shows it.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000002H",
    },
    Entry {
        number: 0x80000003,
        name: "BRAND_STRING_2",
        text: "Second 16 bytes of the processor's name, as /proc/cpuinfo shows it.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000003H",
    },
    Entry {
        number: 0x80000004,
        name: "BRAND_STRING_3",
        text: "Last 16 bytes of the processor's name, as /proc/cpuinfo shows it.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000004H",
    },
    Entry {
        number: 0x80000006,
        name: "L2_CACHE",
        text: "Size, associativity and line size of the second-level cache.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000006H",
    },
    Entry {
        number: 0x80000007,
        name: "ADVANCED_POWER_MANAGEMENT",
        text: "EDX bit 8 is Invariant TSC: the counter runs at one rate in every power state. Linux takes the TSC as its clock source on the strength of this bit, and kvm-clock without it.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000007H",
    },
    Entry {
        number: 0x80000008,
        name: "ADDRESS_SIZES",
        text: "EAX tells the number of physical and linear address bits: how much memory page-table entries can name.",
        source: "Intel SDM volume 2, \"CPUID: CPU Identification\", leaf 80000008H",
    },
    Entry {
        number: 0x8000000a,
        name: "SVM_FEATURES",
        text: "AMD's virtualisation: revision, number of address-space ids, nested paging, decode assists, virtual interrupts.",
        source: "AMD64 Architecture Programmer's Manual volume 3, \"Obtaining Processor Information Via the CPUID Instruction\"",
    },
];
