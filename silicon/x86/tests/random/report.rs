//! What was compared, what differed, and what was never compared.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::Code;
use silicon_x86::lower::gate::{Needs, needs};
use silicon_x86::model::Model;

use super::case::Slot;
use super::catalogue::Skeleton;
use super::compare::NAMES;
use super::exceptions::{is_undefined, missing, reason};
use super::mode::Mode;

/// Makes the report name every instruction code, with how often it was compared.
const LIST: &str = "GLASSVISOR_LIST";

pub struct Report {
    /// Instructions that must be compared.
    wanted: BTreeSet<Code>,
    compared: BTreeMap<Code, u32>,
    excepted: BTreeMap<&'static str, Vec<Code>>,
    lacking: BTreeMap<&'static str, u32>,
    /// Instructions that the features of the model promise, and the model does not execute.
    promised: Vec<Code>,
    failures: BTreeMap<String, (u32, String)>,
    cases: u64,
}

impl Report {
    pub fn new(all: &BTreeMap<Code, Vec<Skeleton>>, model: &Model, mode: Mode) -> Self {
        let mut report = Self {
            wanted: BTreeSet::new(),
            compared: BTreeMap::new(),
            excepted: BTreeMap::new(),
            lacking: BTreeMap::new(),
            promised: Vec::new(),
            failures: BTreeMap::new(),
            cases: 0,
        };
        for &code in all.keys() {
            if let Some(reason) = reason(code) {
                report.excepted.entry(reason).or_default().push(code);
            } else if let Some(feature) = missing(code) {
                *report.lacking.entry(feature).or_default() += 1;
            } else {
                report.wanted.insert(code);
            }
        }
        if !all.is_empty() {
            let promised = |code: &Code| {
                let info = code.op_code();
                info.is_instruction()
                    && match mode {
                        // Near branches of 16 bits are AMD's.
                        Mode::Long64 => info.mode64() && info.intel_decoder64(),
                        Mode::Protected32 => info.mode32() && info.intel_decoder32(),
                        Mode::Protected16 => info.mode16() && info.intel_decoder16(),
                    }
                    // These are two instructions.
                    && !info.fwait()
                    && !is_undefined(*code)
                    && code.cpuid_features().iter().all(|&f| match needs(f) {
                        Needs::Nothing => true,
                        Needs::Feature(feature) => model.has(feature),
                        Needs::Impossible => false,
                    })
            };
            report.promised = Code::values().filter(promised).filter(|code| !all.contains_key(code)).collect();
        }
        report
    }

    pub fn is_wanted(&self, code: Code) -> bool {
        self.wanted.contains(&code)
    }

    pub fn compared(&mut self, slot: &Slot, differences: Vec<String>) {
        self.cases += 1;
        if differences.is_empty() {
            for insn in slot.instructions() {
                *self.compared.entry(insn.code()).or_default() += 1;
            }
        } else {
            self.failed(slot, differences);
        }
    }

    pub fn failed(&mut self, slot: &Slot, differences: Vec<String>) {
        let insns = slot.instructions();
        let last = insns.last().map_or(Code::INVALID, |insn| insn.code());
        self.compared.entry(last).or_default();
        let vector: String = slot.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let registers: Vec<String> =
            NAMES.iter().zip(slot.before.gpr).map(|(name, value)| format!("{name}={value:x}")).collect();
        let text = format!(
            "{:?}: {}\n    {vector} {} flags={:x}\n    mxcsr={:x} fsw={:x} ftw={:x}",
            insns.iter().map(|insn| insn.code()).collect::<Vec<_>>(),
            differences.join("; "),
            registers.join(" "),
            slot.before.rflags,
            slot.before.mxcsr(),
            slot.before.fsw(),
            slot.before.ftw(),
        );
        if !self.failures.contains_key(&format!("{last:?}")) {
            eprintln!("{text}");
        }
        let entry = self.failures.entry(format!("{last:?}")).or_insert((0, text.clone()));
        entry.0 += 1;
        // The shortest is the easiest to look at.
        if insns.len() == 1 && text.len() < entry.1.len() {
            entry.1 = text;
        }
    }

    /// Prints the report; fails where something differs or was not compared.
    pub fn finish(self) {
        let never: Vec<Code> = self.wanted.iter().copied().filter(|code| !self.compared.contains_key(code)).collect();
        println!(
            "{} cases; {} of {} instruction codes compared; {} excepted:",
            self.cases,
            self.wanted.len() - never.len(),
            self.wanted.len(),
            self.excepted.values().map(Vec::len).sum::<usize>()
        );
        let list = std::env::var_os(LIST).is_some();
        for (reason, codes) in &self.excepted {
            println!("  {:4} {reason}", codes.len());
            if list {
                println!("       {codes:?}");
            }
        }
        for (feature, count) in &self.lacking {
            println!("  {count:4} skipped: this processor lacks {feature}");
        }
        println!("compared, of what can be, by feature:");
        for (features, codes) in by_features(&self.wanted) {
            let done = codes.iter().filter(|code| self.compared.contains_key(code)).count();
            println!("  {done:4} of {:4} {features}", codes.len());
        }
        if list {
            for (code, count) in &self.compared {
                println!("{count:8} {code:?}");
            }
        }
        for (code, (count, text)) in &self.failures {
            println!("{code}: {count} differ: {text}");
        }
        assert!(never.is_empty(), "never compared, and not in the table of exceptions: {never:?}");
        assert!(self.failures.is_empty(), "{} instruction codes differ from this processor", self.failures.len());
        assert!(self.promised.is_empty(), "the model's features promise, but it lacks {:?}", self.promised);
    }
}

/// Sorted by the features that they need.
fn by_features(codes: &BTreeSet<Code>) -> BTreeMap<String, Vec<Code>> {
    let mut sorted: BTreeMap<String, Vec<Code>> = BTreeMap::new();
    for &code in codes {
        let names: Vec<String> = code.cpuid_features().iter().map(|feature| format!("{feature:?}")).collect();
        sorted.entry(names.join(" and ")).or_default().push(code);
    }
    sorted
}
