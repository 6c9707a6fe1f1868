//! What a run counted: plain data, a table, and JSON.

use std::time::Duration;

use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::explain;

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
    /// Page walks.
    pub walks: u64,
    /// Paging-structure entries read in walks, guest's and nested.
    pub walk_references: u64,
    /// Invalidations: instructions, CR writes, exits.
    pub flushes: u64,
}

/// What one vCPU did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VcpuCounts {
    /// Instructions retired: exact.
    pub instructions: u64,
    /// Cycles by the cost table: modelled.
    pub modelled_cycles: u64,
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
    /// Sixteen hexadecimal digits.
    pub state_hash: String,
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

    /// Tables for people.
    pub fn tables(&self) -> String {
        let mut out = String::new();
        let mut push = |table: Table| {
            if table.row_count() > 0 {
                out.push_str(&table.to_string());
                out.push_str("\n\n");
            }
        };

        let mut exits = table(&["VM-exits (counted)", "reason", "count"], &[1, 2]);
        for exit in sorted(&self.counts.exits, |exit| exit.count) {
            exits.add_row([exit.name.clone(), exit.reason.to_string(), grouped(exit.count)]);
        }
        if !self.counts.exits.is_empty() {
            exits.add_row([
                "all".into(),
                String::new(),
                grouped(self.counts.exits.iter().map(|exit| exit.count).sum()),
            ]);
        }
        push(exits);

        let mut msrs = table(&["MSR accesses (counted)", "MSR", "reads", "writes"], &[1, 2, 3]);
        for msr in sorted(&self.counts.msrs, |msr| msr.reads.saturating_add(msr.writes)) {
            let name = explain::msr_name(msr.msr).unwrap_or("(unknown)");
            msrs.add_row([name.into(), format!("{:#x}", msr.msr), grouped(msr.reads), grouped(msr.writes)]);
        }
        push(msrs);

        let mut interrupts = table(&["interrupts (counted)", "vector", "count"], &[1, 2]);
        for interrupt in sorted(&self.counts.interrupts, |interrupt| interrupt.count) {
            interrupts.add_row([
                vector_class(interrupt.vector).into(),
                format!("{:#x}", interrupt.vector),
                grouped(interrupt.count),
            ]);
        }
        push(interrupts);

        let mut unclaimed = table(&["accesses without a device", "address", "count"], &[1, 2]);
        for (what, list) in [("port", &self.unclaimed_ports), ("memory", &self.unclaimed_memory)] {
            for entry in sorted(list, |entry| entry.count) {
                unclaimed.add_row([what.into(), format!("{:#x}", entry.address), grouped(entry.count)]);
            }
        }
        push(unclaimed);

        let tlb = &self.counts.tlb;
        let mut summary = table(&["run", "value"], &[1]);
        for (name, value) in [
            ("TLB misses, first level (counted)", grouped(tlb.first_level_misses)),
            ("TLB misses, second level (counted)", grouped(tlb.second_level_misses)),
            ("page walks (counted)", grouped(tlb.walks)),
            ("page walk references (counted)", grouped(tlb.walk_references)),
            ("TLB flushes (counted)", grouped(tlb.flushes)),
            ("instructions (counted)", grouped(self.counts.instructions())),
            ("cycles (modelled)", grouped(self.counts.modelled_cycles())),
            ("guest time", seconds(self.guest_time_ns)),
            ("wall time (host)", seconds(self.wall_time_ns)),
            ("MIPS (host)", self.mips().map_or("-".into(), |mips| format!("{mips:.1}"))),
            ("state hash", self.state_hash.clone()),
            ("exit status", self.exit_code.to_string()),
        ] {
            summary.add_row([name.to_owned(), value]);
        }
        if self.counts.vcpus.len() > 1 {
            for (index, vcpu) in self.counts.vcpus.iter().enumerate() {
                summary.add_row([format!("instructions of vCPU {index} (counted)"), grouped(vcpu.instructions)]);
            }
        }
        push(summary);
        out
    }
}

fn vector_class(vector: u8) -> &'static str {
    match vector {
        0..=31 => "exception range",
        0x20..=0x2f => "ISA or low external",
        0xec => "Linux: local APIC timer",
        0xf0..=0xff => "Linux: system (IPIs, hypervisor callback)",
        _ => "external",
    }
}

fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY).set_header(header.to_vec());
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn sorted<T>(items: &[T], key: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by_key(|item| std::cmp::Reverse(key(item)));
    sorted
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
                vcpus: vec![VcpuCounts { instructions: 3_000_000, modelled_cycles: 4_000_000 }],
            },
            unclaimed_ports: vec![Unclaimed { address: 0xcf8, count: 3 }],
            unclaimed_memory: vec![],
            guest_time_ns: 1_500_000_000,
            wall_time_ns: 2_000_000_000,
            state_hash: "00ff00ff00ff00ff".into(),
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
