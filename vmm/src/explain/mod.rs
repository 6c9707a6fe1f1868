//! Explanations of exit reasons, MSRs and CPUID leaves: a paragraph each, with the manual's section to read on.

mod cpuid_leaves;
mod exit_reasons;
mod msr_families;
mod msrs;

use std::fmt::Write;

/// One explained thing.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub number: u32,
    /// The manual's or the kernel's name.
    pub name: &'static str,
    pub text: &'static str,
    /// Manual and section name.
    pub source: &'static str,
}

/// The three kinds of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ExitReason,
    Msr,
    CpuidLeaf,
}

const KINDS: [Kind; 3] = [Kind::ExitReason, Kind::Msr, Kind::CpuidLeaf];

impl Kind {
    /// Entries of their own.
    fn singles(self) -> &'static [Entry] {
        match self {
            Kind::ExitReason => exit_reasons::EXIT_REASONS,
            Kind::Msr => msrs::MSRS,
            Kind::CpuidLeaf => cpuid_leaves::CPUID_LEAVES,
        }
    }

    /// All entries, those of rows last.
    fn entries(self) -> impl Iterator<Item = Entry> {
        let families = if self == Kind::Msr { msr_families::FAMILIES } else { &[] };
        let members = families.iter().flat_map(|family| {
            let entry = |(number, name)| Entry { number, name, text: family.text, source: family.source };
            family.members().map(entry)
        });
        self.singles().iter().copied().chain(members)
    }

    fn title(self) -> &'static str {
        match self {
            Kind::ExitReason => "VM-exit reason",
            Kind::Msr => "MSR",
            Kind::CpuidLeaf => "CPUID leaf",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Kind::ExitReason => "exit:",
            Kind::Msr => "msr:",
            Kind::CpuidLeaf => "leaf:",
        }
    }

    fn number(self, number: u32) -> String {
        match self {
            Kind::ExitReason => number.to_string(),
            Kind::Msr | Kind::CpuidLeaf => format!("{number:#x}"),
        }
    }
}

/// Nothing by that name or number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked} is no exit reason, MSR or CPUID leaf that is known here; {advice}")]
pub struct Unknown {
    asked: String,
    advice: String,
}

fn find(kind: Kind, number: u32) -> Option<&'static Entry> {
    kind.singles().iter().find(|entry| entry.number == number)
}

/// The name of an MSR.
pub fn msr_name(msr: u32) -> Option<&'static str> {
    let single = find(Kind::Msr, msr).map(|entry| entry.name);
    single.or_else(|| msr_families::FAMILIES.iter().find_map(|family| family.name(msr)))
}

/// The name of an exit reason, as [`explain`] takes it.
pub fn exit_name(reason: u16) -> Option<&'static str> {
    find(Kind::ExitReason, reason.into()).map(|entry| entry.name)
}

fn parse_number(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase().replace('_', "");
    match lower.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => lower.strip_suffix('h').map_or_else(|| lower.parse().ok(), |d| u32::from_str_radix(d, 16).ok()),
    }
}

/// Names are compared without case, and with the prefixes that manuals and kernels put before them taken away.
fn normal(name: &str) -> String {
    let mut name: String =
        name.to_ascii_uppercase().chars().map(|c| if matches!(c, ' ' | '-') { '_' } else { c }).collect();
    for prefix in ["EXIT_REASON_", "MSR_", "IA32_", "KVM_"] {
        if let Some(rest) = name.strip_prefix(prefix) {
            name = rest.to_owned();
        }
    }
    name
}

fn show(kind: Kind, entry: &Entry) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} {}: {}\n", kind.title(), kind.number(entry.number), entry.name);
    for line in wrapped(entry.text, 78) {
        let _ = writeln!(out, "  {line}");
    }
    if kind == Kind::Msr
        && let Some(row) = hypervisor::msr::row(entry.number)
    {
        let _ = writeln!(out, "\n  Here: {row}");
    }
    let _ = writeln!(out, "\n  Read on: {}\n", entry.source);
    out
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

/// Explains everything that `what` can mean.
pub fn explain(what: &str) -> Result<String, Unknown> {
    let what = what.trim();
    let lower = what.to_ascii_lowercase();
    let asked_kind = KINDS.into_iter().find(|kind| lower.starts_with(kind.prefix()));
    let rest = asked_kind.map_or(what, |kind| &what[kind.prefix().len()..]).trim();
    let kinds: Vec<Kind> = asked_kind.map_or(KINDS.to_vec(), |kind| vec![kind]);
    let number = parse_number(rest);
    let name = normal(rest);
    let mut out = String::new();
    for &kind in &kinds {
        for entry in kind.entries() {
            if number == Some(entry.number) || normal(entry.name) == name {
                out.push_str(&show(kind, &entry));
            }
        }
    }
    if !out.is_empty() {
        return Ok(out);
    }
    Err(Unknown { asked: what.chars().take(80).collect(), advice: advice(&kinds, number, &name) })
}

/// The nearest names, or numbers.
fn advice(kinds: &[Kind], number: Option<u32>, name: &str) -> String {
    let mut near: Vec<(f64, String)> = Vec::new();
    for &kind in kinds {
        for entry in kind.entries() {
            let (distance, shown) = match number {
                Some(number) => (
                    f64::from(number.abs_diff(entry.number)),
                    format!("{}{} ({})", kind.prefix(), kind.number(entry.number), entry.name),
                ),
                None => {
                    let candidate = normal(entry.name);
                    let contained = candidate.contains(name) && name.len() >= 3;
                    let likeness = if contained { 1.0 } else { strsim::jaro_winkler(name, &candidate) };
                    (1.0 - likeness, entry.name.to_owned())
                }
            };
            near.push((distance, shown));
        }
    }
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    near.dedup_by(|a, b| a.1 == b.1);
    let names: Vec<String> = near.into_iter().take(3).map(|(_, shown)| shown).collect();
    format!("nearest: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_msr_of_the_table_is_explained() {
        let numbers = hypervisor::msr::TABLE.iter().flat_map(|row| row.numbers());
        let unknown: Vec<_> = numbers
            .filter(|&number| !(0x800..0x900).contains(&number) && msr_name(number).is_none())
            .map(|number| format!("{number:#x}"))
            .collect();
        assert_eq!(unknown, [""; 0]);
        assert!(explain("msr:0xfe").unwrap().contains("Here: 0x508 after RESET; read-only."));
    }

    #[test]
    fn names_and_numbers_find_the_same_thing() {
        let by_name = explain("ept violation").unwrap();
        assert_eq!(by_name, explain("exit:48").unwrap());
        assert_eq!(by_name, explain("EXIT_REASON_EPT_VIOLATION").unwrap());
        assert!(explain("tsc-deadline").unwrap().contains("0x6e0"));
        assert!(explain("0x6E0").unwrap().contains("TSC_DEADLINE"));
        assert!(explain("leaf:15h").unwrap().contains("TSC"));
    }

    #[test]
    fn a_number_that_means_several_things_tells_all() {
        let text = explain("0x10").unwrap();
        assert!(text.contains("IA32_TIME_STAMP_COUNTER") && text.contains("VM-exit reason 16"), "{text}");
        assert!(!explain("msr:0x10").unwrap().contains("VM-exit reason"));
    }

    #[test]
    fn unknown_names_and_numbers_get_the_nearest() {
        assert!(explain("EPT_VIOLATOIN").unwrap_err().to_string().contains("EPT_VIOLATION"));
        assert!(explain("DEADLINE").unwrap_err().to_string().contains("IA32_TSC_DEADLINE"));
        assert!(explain("msr:0x6e1").unwrap_err().to_string().contains("0x6e0"));
        for odd in ["", "exit:", "0x", "ü", "msr:ü", "99999999999999"] {
            let _ = explain(odd);
        }
    }

    #[test]
    fn no_number_or_name_is_explained_twice_and_none_is_empty() {
        for kind in KINDS {
            let entries: Vec<Entry> = kind.entries().collect();
            for (index, entry) in entries.iter().enumerate() {
                assert!(entry.text.len() > 40 && !entry.source.is_empty(), "{}", entry.name);
                for other in &entries[index + 1..] {
                    assert_ne!(other.number, entry.number, "{} and {}", other.name, entry.name);
                    assert_ne!(other.name, entry.name);
                }
            }
            assert!(kind.singles().is_sorted_by_key(|entry| entry.number));
        }
    }
}
