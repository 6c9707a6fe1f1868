//! The report for people: one table of four columns, section after section.

use comfy_table::{CellAlignment, Table, presets};

use super::vectors::vector_use;
use super::{ExitCount, InterruptCount, MsrCount, Report, Unclaimed, grouped, seconds};
use crate::explain;

/// Rows of a section before the rest is folded into one.
const ROWS: usize = 12;
/// Addresses named on the line of accesses without a device.
const ADDRESSES: usize = 5;

type Row = [String; 4];

fn row(name: &str, middle: &str, first: &str, second: &str) -> Row {
    [name, middle, first, second].map(str::to_owned)
}

/// `of` as a part of `all`, in percent.
fn share(of: u64, all: u64) -> String {
    if all == 0 { String::new() } else { format!("{:.1} %", of as f64 * 100.0 / all as f64) }
}

fn sorted<T>(items: &[T], key: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by_key(|item| std::cmp::Reverse(key(item)));
    sorted
}

/// Splits off what is folded; a rest of one row is shown as it is.
fn folded<T>(items: Vec<T>) -> (Vec<T>, Vec<T>) {
    let mut shown = items;
    let rest = if shown.len() > ROWS + 1 { shown.split_off(ROWS) } else { vec![] };
    (shown, rest)
}

fn exits(exits: &[ExitCount]) -> Vec<Row> {
    let all = exits.iter().map(|exit| exit.count).sum();
    let mut rows = vec![row("VM-exits (counted)", "reason", "count", "share")];
    let (shown, rest) = folded(sorted(exits, |exit| exit.count));
    for exit in shown {
        rows.push(row(&exit.name, &exit.reason.to_string(), &grouped(exit.count), &share(exit.count, all)));
    }
    if !rest.is_empty() {
        let count = rest.iter().map(|exit| exit.count).sum();
        rows.push(row(&format!("{} other reasons", rest.len()), "", &grouped(count), &share(count, all)));
    }
    rows.push(row("all", "", &grouped(all), ""));
    rows
}

fn msrs(msrs: &[MsrCount]) -> Vec<Row> {
    let mut rows = vec![row("MSR accesses that exited (counted)", "MSR", "reads", "writes")];
    let (shown, rest) = folded(sorted(msrs, |msr| msr.reads.saturating_add(msr.writes)));
    for msr in shown {
        let name = explain::msr_name(msr.msr).unwrap_or("(no name known)");
        rows.push(row(name, &format!("{:#x}", msr.msr), &grouped(msr.reads), &grouped(msr.writes)));
    }
    if !rest.is_empty() {
        let (reads, writes) = rest.iter().fold((0, 0), |(r, w), msr| (r + msr.reads, w + msr.writes));
        rows.push(row(&format!("{} other MSRs", rest.len()), "", &grouped(reads), &grouped(writes)));
    }
    rows
}

fn interrupts(interrupts: &[InterruptCount]) -> Vec<Row> {
    let all = interrupts.iter().map(|interrupt| interrupt.count).sum();
    let mut rows = vec![row("interrupts injected (counted)", "vector", "count", "share")];
    let (shown, rest) = folded(sorted(interrupts, |interrupt| interrupt.count));
    for InterruptCount { vector, count } in shown {
        rows.push(row(vector_use(*vector), &format!("{vector:#x}"), &grouped(*count), &share(*count, all)));
    }
    if !rest.is_empty() {
        let count = rest.iter().map(|interrupt| interrupt.count).sum();
        rows.push(row(&format!("{} other vectors", rest.len()), "", &grouped(count), &share(count, all)));
    }
    rows
}

fn translation(report: &Report) -> Vec<Row> {
    let tlb = &report.counts.tlb;
    let pair = |name, data, fetch| row(name, "", &grouped(data), &grouped(fetch));
    let one = |name, value| row(name, "", &grouped(value), "");
    vec![
        row("TLB (counted)", "", "data", "fetch"),
        pair("misses of the first level", tlb.data_first_level_misses, tlb.fetch_first_level_misses),
        pair("misses of both levels: page walks", tlb.data_walks, tlb.fetch_walks),
        one("walks for dirty flags and faults", tlb.assist_walks),
        row("walk references (counted)", "", "guest", "EPT"),
        pair("one dimension, and the second", tlb.guest_references, tlb.ept_references),
        one("look-ups in the second without references", tlb.nested_hits),
        row("TLB invalidations (counted)", "", "contexts", "pages"),
        pair("by CR3 writes, INVPCID, INVLPG and the like", tlb.flushes, tlb.page_invalidations),
    ]
}

fn run(report: &Report) -> Vec<Row> {
    let value = |name: &str, value: String| row(name, "", &value, "");
    let counts = &report.counts;
    let instructions = counts.instructions();
    let mut rows = vec![
        row("run", "", "value", ""),
        row("instructions (counted)", "", &grouped(instructions), if counts.vcpus.len() > 1 { "100.0 %" } else { "" }),
    ];
    if counts.vcpus.len() > 1 {
        for (index, vcpu) in counts.vcpus.iter().enumerate() {
            let part = share(vcpu.instructions, instructions);
            rows.push(row(&format!("  of vCPU {index}"), "", &grouped(vcpu.instructions), &part));
        }
    }
    rows.extend([
        value("cycles (modelled)", grouped(counts.modelled_cycles())),
        value("cycles halted (modelled)", grouped(counts.halted_cycles())),
        value("exits that went on to the monitor (counted)", grouped(counts.monitor_exits())),
        value("guest time", seconds(report.guest_time_ns)),
        value("wall time (host)", seconds(report.wall_time_ns)),
        value("MIPS (host)", report.mips().map_or("-".into(), |mips| format!("{mips:.1}"))),
    ]);
    rows.extend(report.state_hash.clone().map(|hash| value("state hash", hash)));
    rows.push(value("exit status", report.exit_code.to_string()));
    rows
}

/// One line: how many accesses nobody answered, and where most of them went.
fn unclaimed(report: &Report) -> Option<String> {
    let mut all: Vec<(&str, &Unclaimed)> = Vec::new();
    all.extend(report.unclaimed_ports.iter().map(|entry| ("port", entry)));
    all.extend(report.unclaimed_memory.iter().map(|entry| ("memory", entry)));
    all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.count));
    let count: u64 = all.iter().map(|(_, entry)| entry.count).sum();
    if count == 0 {
        return None;
    }
    let most: Vec<String> = all
        .iter()
        .take(ADDRESSES)
        .map(|(what, entry)| format!("{what} {:#x}: {}", entry.address, grouped(entry.count)))
        .collect();
    let more = if all.len() > ADDRESSES { ", ..." } else { "" };
    Some(format!("accesses without a device (counted): {} ({}{more})", grouped(count), most.join(", ")))
}

/// All of it.
pub fn tables(report: &Report) -> String {
    let counts = &report.counts;
    let mut sections = vec![exits(&counts.exits)];
    if !counts.msrs.is_empty() {
        sections.push(msrs(&counts.msrs));
    }
    if !counts.interrupts.is_empty() {
        sections.push(interrupts(&counts.interrupts));
    }
    sections.push(translation(report));
    sections.push(run(report));

    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (index, section) in sections.into_iter().enumerate() {
        if index > 0 {
            table.add_row([""; 4]);
        }
        for (line, mut row) in section.into_iter().enumerate() {
            if line > 0 && !row[0].ends_with("(counted)") || row[0].starts_with("instructions") {
                row[0].insert_str(0, "  ");
            }
            table.add_row(row);
        }
    }
    for index in 1..4 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = String::new();
    for line in table.to_string().lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if let Some(line) = unclaimed(report) {
        out.push_str(&format!("\n {line}\n"));
    }
    out
}
