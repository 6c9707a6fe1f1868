//! Fuzz targets on a stable compiler: the committed corpus, and inputs made from it by a fixed sequence of mutations.
//!
//! `GLASSVISOR_CASES` and `GLASSVISOR_SEED` choose how many mutations and which. The same targets run under libFuzzer,
//! guided by coverage: `make fuzz`, `silicon/x86/fuzz`.

mod input;
mod machine;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use targets::{TARGETS, Target};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

/// Some input with some bytes changed, inserted, or replaced by a part of another.
fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut data = match random.below(4) {
        0 => (0..random.below(600)).map(|_| random.next() as u8).collect(),
        _ => corpus[random.below(corpus.len())].clone(),
    };
    for _ in 0..1 + random.below(8) {
        let at = random.below(data.len() + 1);
        match random.below(4) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => data[at] = random.next() as u8,
            2 => data.insert(at, random.next() as u8),
            _ => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let len = random.below(16).min(other.len() - from).min(data.len() - at);
                data[at..at + len].copy_from_slice(&other[from..from + len]);
            }
        }
    }
    data
}

fn run((name, target): Target) {
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "target {name} has no corpus");
    let mut random = Random(number("GLASSVISOR_SEED", 1));
    let mutated = (0..number("GLASSVISOR_CASES", 3000)).map(|_| mutate(&mut random, &corpus));
    for data in corpus.iter().cloned().chain(mutated) {
        if catch_unwind(AssertUnwindSafe(|| target(&data))).is_err() {
            let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("target {name} failed (see above) on the bytes {hex}");
        }
    }
}

#[test]
fn any_bytes_can_be_decoded() {
    run(TARGETS[0]);
}

#[test]
fn any_code_can_be_executed() {
    run(TARGETS[1]);
}

#[test]
fn any_vmcs_is_entered_or_refused() {
    run(TARGETS[2]);
}

#[test]
fn any_page_tables_can_be_walked() {
    run(TARGETS[3]);
}
