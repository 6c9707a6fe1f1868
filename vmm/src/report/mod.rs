//! What a run counted: plain data, a table, and JSON.

use std::time::Duration;

use serde::Serialize;

mod tables;
mod vectors;

pub use vectors::vector_use;

/// Exits with one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExitCount {
    pub reason: u16,
    pub name: String,
    pub count: u64,
}

/// Accesses to one MSR that reached the hypervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MsrCount {
    pub msr: u32,
    pub reads: u64,
    pub writes: u64,
}

/// Interrupts injected with one vector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterruptCount {
    pub vector: u8,
    pub count: u64,
}

/// Translation counters of all vCPUs together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TlbCounts {
    /// Look-ups that the first level did not hold.
    pub first_level_misses: u64,
    /// Look-ups that the second level did not hold either.
    pub second_level_misses: u64,
    /// Data accesses that the first level did not hold.
    pub data_first_level_misses: u64,
    /// Fetches that the first level did not hold.
    pub fetch_first_level_misses: u64,
    /// Page walks of all kinds.
    pub walks: u64,
    /// Walks because both levels missed a data access.
    pub data_walks: u64,
    /// Walks because both levels missed a fetch.
    pub fetch_walks: u64,
    /// Walks to set a dirty flag, or to confirm a fault.
    pub assist_walks: u64,
    /// Paging-structure entries read in walks, the guest's and those of EPT.
    pub walk_references: u64,
    /// References to the guest's paging structures: the first dimension.
    pub guest_references: u64,
    /// References to EPT paging structures: the second dimension.
    pub ept_references: u64,
    /// Guest-physical addresses found without a reference to EPT paging structures.
    pub nested_hits: u64,
    /// Contexts invalidated: CR writes, INVPCID, INVVPID, INVEPT, entries without VPID.
    pub flushes: u64,
    /// Single pages invalidated.
    pub page_invalidations: u64,
}

/// What one vCPU did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VcpuCounts {
    /// Instructions retired: exact.
    pub instructions: u64,
    /// Cycles by the cost table, not halted: modelled.
    pub modelled_cycles: u64,
    /// Cycles in HLT: modelled.
    pub halted_cycles: u64,
    /// Exits that the hypervisor handed on to the monitor.
    pub monitor_exits: u64,
}

/// Everything that the hypervisor counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub exits: Vec<ExitCount>,
    pub msrs: Vec<MsrCount>,
    pub interrupts: Vec<InterruptCount>,
    pub tlb: TlbCounts,
    pub vcpus: Vec<VcpuCounts>,
}

impl Counts {
    pub fn instructions(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.instructions).sum()
    }

    pub fn modelled_cycles(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.modelled_cycles).sum()
    }

    pub fn halted_cycles(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.halted_cycles).sum()
    }

    pub fn monitor_exits(&self) -> u64 {
        self.vcpus.iter().map(|vcpu| vcpu.monitor_exits).sum()
    }
}

/// Accesses to an address that no device answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unclaimed {
    pub address: u64,
    pub count: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub ending: String,
    pub exit_code: u8,
    #[serde(flatten)]
    pub counts: Counts,
    pub unclaimed_ports: Vec<Unclaimed>,
    pub unclaimed_memory: Vec<Unclaimed>,
    pub guest_time_ns: u64,
    /// Time of the host, not a property of the guest.
    pub wall_time_ns: u64,
    /// Sixteen hexadecimal digits. None when the run was cut short: where it was then is the host's doing, and to hash all
    /// of guest memory takes a while.
    pub state_hash: Option<String>,
}

impl Report {
    /// Million instructions a second of wall time; none for an empty run.
    pub fn mips(&self) -> Option<f64> {
        let seconds = Duration::from_nanos(self.wall_time_ns).as_secs_f64();
        (seconds > 0.0).then(|| self.counts.instructions() as f64 / seconds / 1e6)
    }

    /// JSON in one object, numbers unformatted.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has string keys only")
    }

    /// A table for people. Long sections are folded; [`Report::json`] holds everything.
    pub fn tables(&self) -> String {
        tables::tables(self)
    }
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Nanoseconds as seconds with three decimals.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            ending: "the guest powered off".into(),
            exit_code: 0,
            counts: Counts {
                exits: vec![
                    ExitCount { reason: 10, name: "CPUID".into(), count: 12 },
                    ExitCount { reason: 30, name: "IO_INSTRUCTION".into(), count: 1_234_567 },
                ],
                msrs: vec![MsrCount { msr: 0x6e0, reads: 1, writes: 77 }],
                interrupts: vec![InterruptCount { vector: 0xec, count: 42 }],
                tlb: TlbCounts { walks: 5, walk_references: 20, ..Default::default() },
                vcpus: vec![VcpuCounts { instructions: 3_000_000, modelled_cycles: 4_000_000, ..Default::default() }],
            },
            unclaimed_ports: vec![Unclaimed { address: 0xcf8, count: 3 }],
            unclaimed_memory: vec![],
            guest_time_ns: 1_500_000_000,
            wall_time_ns: 2_000_000_000,
            state_hash: Some("00ff00ff00ff00ff".into()),
        }
    }

    #[test]
    fn tables_name_what_is_counted_and_what_is_modelled() {
        let text = report().tables();
        for expected in [
            "1 234 567",
            "IA32_TSC_DEADLINE",
            "0xec",
            "cycles (modelled)",
            "instructions (counted)",
            "1.500 s",
            "00ff00ff00ff00ff",
            "0xcf8",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
        assert!(text.find("IO_INSTRUCTION") < text.find("CPUID"), "largest first");
        assert!(text.contains("1.5\n") || text.contains("1.5 "), "MIPS");
        assert!(text.contains("100.0 %") && text.contains("Linux: local APIC timer"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100 && !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn long_sections_are_folded_and_nothing_is_lost_in_sums() {
        let mut report = report();
        report.counts.msrs = (0..50).map(|n| MsrCount { msr: 0x200 + n, reads: 2, writes: 0 }).collect();
        report.unclaimed_ports = (0..50).map(|n| Unclaimed { address: 0x300 + n, count: n }).collect();
        let text = report.tables();
        let fold = text.lines().find(|line| line.contains("38 other MSRs")).expect("a folded row");
        assert!(fold.contains("76"), "{fold}");
        let unclaimed: Vec<_> = text.lines().filter(|line| line.contains("without a device")).collect();
        assert_eq!(unclaimed.len(), 1);
        assert!(unclaimed[0].contains("1 225") && unclaimed[0].contains("0x331: 49"), "{}", unclaimed[0]);
        assert!(text.lines().count() < 60, "{text}");
    }

    #[test]
    fn json_can_be_read_back() {
        let value: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
        assert_eq!(value["exits"][1]["count"], 1_234_567);
        assert_eq!(value["vcpus"][0]["modelled_cycles"], 4_000_000);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1 000", "1 000 000"]);
    }
}
