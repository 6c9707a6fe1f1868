//! memtest86+ of Debian: it finds its way by itself through modes, paging, APIC and processors, and checks every store.

use crate::firmware::image;
use crate::program::{glassvisor, new_file};

/// Which of its tests memtest86+ does.
#[derive(Clone, Copy)]
enum Tests {
    /// Its own choice: all but number 1. The last watches memory fade over 160 seconds of guest time: in real time, as
    /// it waits in a loop.
    All,
    /// Its own choice but for the last.
    AllButFade,
    /// Own address, and moving inversions with ones and zeroes.
    Two,
}

/// How many processors take part.
#[derive(Clone, Copy)]
enum Processors {
    One,
    Two,
}

/// One pass over as little memory as it takes: it moves itself out of the first 4 MiB, and must find room above.
///
/// Keys are typed when its console comes up; digits stand for function keys. 1, 1, 1 opens the menu, the choice of
/// tests, and clears it; 2 removes one, and 3 adds one; 0 leaves a menu.
fn one_pass(bits: &str, processors: Processors, tests: Tests) {
    let (cpus, online) = match processors {
        Processors::One => ("1", "CPU: 1 Cores 1 Threads    SMP: Disabled"),
        Processors::Two => ("2", "CPU: 2 Cores 2 Threads    SMP: 2T (PAR)"),
    };
    let (chosen, name, time) = match tests {
        Tests::All => ("", "all", "real"),
        Tests::AllButFade => ("11210\\r00", "all-but-fade", "virtual"),
        Tests::Two => ("11132\\r33\\r00", "two", "virtual"),
    };
    let screen = new_file(&format!("memtest-{bits}-{cpus}-{name}.txt"));
    let ended = glassvisor("boot --memory 5M --max-time 880")
        .arg("--kernel", &image("memtest86+", &format!("memtest86+{bits}.bin")))
        .arg("--append", "console=ttyS0,115200 nobench")
        .arg("--cpus", cpus)
        .arg("--time", time)
        .arg("--screen", &screen)
        .arg("--answer", &format!("[?25l={chosen}\\r"))
        .arg("--until-screen", "Pass:  1 ")
        .run();
    let screen = std::fs::read_to_string(&screen).unwrap_or_else(|error| panic!("{screen}: {error}: {ended}"));
    assert_eq!(ended.status, 0, "{screen}\n{ended}");
    for expected in ["Memtest86+ v6", "Pass:  1        Errors: 0", online] {
        assert!(screen.contains(expected), "'{expected}' is missing:\n{screen}\n{ended}");
    }
}

#[test]
fn two_tests_of_memtest86_pass_on_64_bit_and_two_processors() {
    one_pass("x64", Processors::Two, Tests::Two);
}

#[test]
fn two_tests_of_memtest86_pass_on_32_bit() {
    one_pass("ia32", Processors::One, Tests::Two);
}

#[test]
#[ignore = "15 seconds of processor time: tools/nightly.sh"]
fn memtest86_passes_on_64_bit_and_one_processor() {
    one_pass("x64", Processors::One, Tests::AllButFade);
}

#[test]
#[ignore = "15 seconds of processor time: tools/nightly.sh"]
fn memtest86_passes_on_64_bit_and_two_processors() {
    one_pass("x64", Processors::Two, Tests::AllButFade);
}

#[test]
#[ignore = "a minute of processor time: tools/nightly.sh"]
fn memtest86_passes_on_32_bit_and_one_processor() {
    one_pass("ia32", Processors::One, Tests::AllButFade);
}

#[test]
#[ignore = "a minute of processor time: tools/nightly.sh"]
fn memtest86_passes_on_32_bit_and_two_processors() {
    one_pass("ia32", Processors::Two, Tests::AllButFade);
}

#[test]
#[ignore = "five minutes, as memory fades in real time: tools/nightly.sh"]
fn memtest86_passes_with_every_test_that_it_does_by_itself() {
    one_pass("x64", Processors::One, Tests::All);
}
