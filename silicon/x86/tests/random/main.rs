//! Random instructions of user mode, on the model and on the processor at hand.
//!
//! Every [`iced_x86::Code`] that the model executes with all features there are gets its share of cases, in 64-bit mode and,
//! in compatibility mode, as 32-bit and as 16-bit code; one that gets none must be in the table of [`exceptions`]. A child
//! process executes them natively, so faults are compared as well. The number of cases is that of the environment variable
//! `GLASSVISOR_CASES`, the first random number `GLASSVISOR_SEED`; with `GLASSVISOR_LIST`, the report names every code.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "executes instructions natively, in a child process")]

mod case;
mod catalogue;
mod child;
mod compare;
mod exceptions;
mod executor;
mod generate;
#[path = "../machine/mod.rs"]
mod machine;
mod mode;
mod modelled;
#[path = "../native/mod.rs"]
mod native;
mod place;
mod report;
mod shared;

use std::collections::BTreeMap;

use case::Slot;
use catalogue::{Map, Skeleton, catalogue};
use child::Executor;
use generate::{Generator, decode};
use iced_x86::{Code, FlowControl, Instruction};
use machine::Random;
use mode::Mode;
use modelled::Modelled;
use report::Report;
use silicon_x86::model::{FEATURES, Model};

/// Cases where the environment does not say.
const CASES: usize = 100_000;

/// A model of everything that there is: what another model lacks is #UD there, and has nothing to compare.
fn all_features() -> Model {
    let mut model = Model::default();
    FEATURES.iter().filter(|row| row.implemented).for_each(|row| model.features.insert(row.feature));
    model
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| {
        text.replace('_', "").parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"))
    })
}

#[test]
fn child_process_executes_cases() {
    if let Ok(descriptor) = std::env::var(child::VARIABLE) {
        executor::serve(&shared::Shared::open(descriptor.parse().expect("a descriptor")));
        // The parent is gone, and nobody reads what the harness would print.
        std::process::exit(0);
    }
}

#[test]
fn every_instruction_does_what_this_processor_does() {
    compare_all(Mode::Long64, CASES);
}

#[test]
fn every_instruction_of_32_bit_code_does_what_this_processor_does() {
    compare_all(Mode::Protected32, CASES / 2);
}

#[test]
fn every_instruction_of_16_bit_code_does_what_this_processor_does() {
    compare_all(Mode::Protected16, CASES / 2);
}

/// Compares every instruction of a mode, in that many cases unless the environment says how many.
fn compare_all(mode: Mode, cases: usize) {
    let model = all_features();
    let all = catalogue(&model, mode);
    let mut report = Report::new(&all, &model, mode);
    let codes: Vec<(Code, &[Skeleton])> =
        all.iter().filter(|(code, _)| report.is_wanted(**code)).map(|(code, list)| (*code, &list[..])).collect();
    let plain: Vec<Skeleton> =
        codes.iter().filter(|(code, _)| leads(*code)).flat_map(|(_, list)| list.to_vec()).collect();
    let mut generator = Generator { random: Random(number("GLASSVISOR_SEED", 0x5eed) as u64), model: &model, mode };
    let mut pair = Pair::new(&model);
    let cases = number("GLASSVISOR_CASES", cases);
    let mut batch = Vec::new();
    for i in 0..cases {
        let (_, list) = codes[i % codes.len()];
        if let Some(slot) = case(&mut generator, list, &plain) {
            batch.push(slot);
        }
        if batch.len() == shared::SLOTS || i + 1 == cases {
            pair.compare(&mut batch, &mut report);
            batch.clear();
        }
    }
    report.finish();
}

#[test]
fn vex_encodings_that_are_none_are_undefined() {
    let model = all_features();
    let all = catalogue(&model, Mode::Long64);
    let mut report = Report::new(&BTreeMap::new(), &model, Mode::Long64);
    let mut generator = Generator { random: Random(2), model: &model, mode: Mode::Long64 };
    let mut pair = Pair::new(&model);
    let skeletons: Vec<&Skeleton> =
        all.values().flatten().filter(|skeleton| matches!(skeleton.map, Map::Vex(_))).collect();
    let mut batch = Vec::new();
    let mut found = 0;
    while found < 5_000 {
        let skeleton = skeletons[generator.below(skeletons.len() as u64) as usize];
        let code = generator.spoilt(skeleton);
        if decode(&code, 0, Mode::Long64).0.code() == Code::INVALID {
            batch.push(generator.prepare(&code));
            found += 1;
        }
        if batch.len() == shared::SLOTS || found == 5_000 {
            pair.compare(&mut batch, &mut report);
            batch.clear();
        }
    }
    report.finish();
}

#[test]
fn instructions_that_once_differed_do_not_any_more() {
    let model = all_features();
    let mut report = Report::new(&BTreeMap::new(), &model, Mode::Long64);
    let mut generator = Generator { random: Random(1), model: &model, mode: Mode::Long64 };
    let mut pair = Pair::new(&model);
    for line in include_str!("vectors.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split_whitespace();
        let first = words.next().expect("a line has code");
        let (mode, code) = match first.split_once(':') {
            Some(("32", code)) => (Mode::Protected32, code),
            Some(("16", code)) => (Mode::Protected16, code),
            Some((other, _)) => panic!("{other} is 32 or 16"),
            None => (Mode::Long64, first),
        };
        generator.mode = mode;
        let code = hex(code);
        if code.len() > case::CODE_BYTES || exceptions::missing(decode(&code, 0, generator.mode).0.code()).is_some() {
            continue;
        }
        let mut batch: Vec<Slot> = (0..32).map(|_| generator.prepare(&code)).collect();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("{word} is name=value"));
            let value = u64::from_str_radix(value, 16).unwrap_or_else(|_| panic!("{word} is hexadecimal"));
            for slot in &mut batch {
                match compare::NAMES.iter().position(|n| *n == name) {
                    Some(register) => slot.before.gpr[register] = value,
                    None if name == "flags" => slot.before.rflags = value,
                    None => panic!("{name} is a register or flags"),
                }
            }
        }
        pair.compare(&mut batch, &mut report);
    }
    report.finish();
}

/// Bytes of a string of hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hexadecimal")).collect()
}

/// The two processors.
struct Pair {
    executor: Executor,
    modelled: Modelled,
}

impl Pair {
    fn new(model: &Model) -> Self {
        Self { executor: Executor::new(), modelled: Modelled::new(model) }
    }

    fn compare(&mut self, batch: &mut [Slot], report: &mut Report) {
        self.executor.begin(batch);
        let died = self.executor.finish(batch);
        for (i, slot) in batch.iter().enumerate() {
            if died.contains(&i) {
                report.failed(slot, vec!["the child process died".to_owned()]);
                continue;
            }
            let end = self.modelled.run(slot);
            report.compared(slot, compare::differences(slot, &self.modelled, end));
        }
    }
}

/// One case: an instruction of `list`, often after one of `plain`.
fn case(generator: &mut Generator<'_>, list: &[Skeleton], plain: &[Skeleton]) -> Option<Slot> {
    for _ in 0..20 {
        let mut code = Vec::new();
        if generator.below(10) < 3 {
            let skeleton = plain[generator.below(plain.len() as u64) as usize];
            code = generator
                .instruction(&skeleton, 0)
                .filter(|bytes| leads(decode(bytes, 0, generator.mode).0.code()))
                .unwrap_or_default();
        }
        let skeleton = list[generator.below(list.len() as u64) as usize];
        let Some(last) = generator.instruction(&skeleton, code.len()) else { continue };
        let (insn, _) = decode(&last, code.len(), generator.mode);
        if !code.is_empty() && !compare::may_lead(&decode(&code, 0, generator.mode).0, &insn) {
            continue;
        }
        code.extend(last);
        let slot = generator.prepare(&code);
        let first: Instruction = decode(&code, 0, generator.mode).0;
        if compare::is_undefined(&insn, &slot) || compare::is_undefined(&first, &slot) {
            continue;
        }
        return Some(slot);
    }
    None
}

/// Whether instructions of this code may stand before another: plain integer ones.
fn leads(code: Code) -> bool {
    let features = code.cpuid_features();
    let mut insn = Instruction::default();
    insn.set_code(code);
    insn.flow_control() == FlowControl::Next
        && !insn.is_stack_instruction()
        && !insn.is_string_instruction()
        && !insn.is_privileged()
        && features.iter().all(|f| format!("{f:?}").starts_with("INTEL") || format!("{f:?}") == "X64")
}
