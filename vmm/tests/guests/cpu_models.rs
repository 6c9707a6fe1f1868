//! Debian's kernels on the processor with x86-64-v3.

use crate::program::debian;

fn boots_with_avx_state(kernel: &str) {
    let ended = debian(kernel, "ignore_loglevel").args("--cpu glassvisor-v3").run();
    assert_eq!(ended.status, 0, "{ended}");
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    assert!(!ended.stdout.contains("GLASSVISOR-ERROR"), "{ended}");
    // The kernel uses XSAVES, or else the format would be the standard one.
    for text in [
        "x86/fpu: xstate_offset[2]:  576, xstate_sizes[2]:  256",
        "x86/fpu: Enabled xstate features 0x7, context size is 832 bytes, using 'compacted' format.",
    ] {
        assert!(ended.stdout.contains(text), "{text}: {ended}");
    }
    for trouble in ["WARNING:", "BUG:", "Oops"] {
        assert!(!ended.stdout.contains(trouble), "{trouble}: {ended}");
    }
}

#[test]
fn linux_6_12_keeps_avx_state_by_xsaves() {
    boots_with_avx_state("6.12");
}

#[test]
#[ignore = "the other kernel: tools/nightly.sh"]
fn linux_6_1_keeps_avx_state_by_xsaves() {
    boots_with_avx_state("6.1");
}
