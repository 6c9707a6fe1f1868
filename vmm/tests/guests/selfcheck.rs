//! A multi-threaded program in the guest checks the machine: futexes, signals, faults, floating point, clocks.

use crate::program::{Ended, debian};

fn passes(cpus: u8) {
    assert_passed(&debian("6.12", "gv.run=selfcheck").args(&format!("--cpus {cpus}")).run());
}

/// The guest ran all checks, and none failed.
#[track_caller]
pub fn assert_passed(ended: &Ended) {
    assert_eq!(ended.status, 0, "{ended}");
    let result = ended.stdout.lines().find_map(|line| line.trim_end().strip_prefix("SELFCHECK ok checks="));
    let checks: u32 = result.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no result: {ended}"));
    assert!(checks >= 20, "only {checks} checks ran: {ended}");
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
}

#[test]
fn the_self_check_passes_on_1_vcpu() {
    passes(1);
}

#[test]
fn the_self_check_passes_on_2_vcpus() {
    passes(2);
}
