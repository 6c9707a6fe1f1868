//! 32-bit programs on the 64-bit kernel: the same answers as on the processor that this test runs on.

use std::process::Command;

use crate::program::{debian_with, made};
use crate::selfcheck::assert_passed;

const WORKLOADS: &str = "intmix,sha256,indirect,fib,fpmix";

/// What must be equal: the checks that passed, and the checksums (not the times) of the workloads.
fn results(output: &str) -> Vec<String> {
    output
        .lines()
        .filter(|line| line.starts_with("CHECK ") || line.starts_with("SELFCHECK ") || line.starts_with("BENCH "))
        .map(|line| line.split_whitespace().filter(|word| !word.starts_with("ns=")).collect::<Vec<_>>().join(" "))
        .collect()
}

fn native(program: &str) -> String {
    let program = made(&format!("guest/build/{program}"), "make -C guest/workloads all");
    let output = Command::new(&program).args(["-s", "1", &format!("selfcheck,{WORKLOADS}")]).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; does this kernel run 32-bit programs?"));
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).expect("plain text")
}

#[test]
fn a_32_bit_user_space_on_the_64_bit_kernel_gives_the_results_of_this_processor() {
    let parameters = format!("gv.run=selfcheck,{WORKLOADS} gv.scale=1");
    let ended = debian_with("6.12", "6.12-i386", &parameters).args("--cpus 2").run();
    assert_passed(&ended);
    assert_eq!(results(&ended.stdout), results(&native("workload-i386")), "{ended}");
}

#[test]
fn the_32_bit_and_the_64_bit_build_of_a_workload_have_the_same_checksum() {
    let sums = |program| results(&native(program)).into_iter().filter(|line| line.starts_with("BENCH ")).collect();
    let (wide, narrow): (Vec<_>, Vec<_>) = (sums("workload"), sums("workload-i386"));
    assert_eq!(wide.len(), WORKLOADS.split(',').count());
    assert_eq!(wide, narrow);
}
