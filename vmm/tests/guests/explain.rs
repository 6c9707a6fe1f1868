//! `glassvisor explain` and `glassvisor cpus`.

use crate::program::glassvisor;

#[test]
fn names_and_numbers_are_explained_with_where_to_read_on() {
    for (what, expected) in [
        ("HLT", "VM-exit reason 12"),
        ("exit:48", "EPT_VIOLATION"),
        ("0x6e0", "IA32_TSC_DEADLINE"),
        ("msr:0x825", "IA32_X2APIC_IRR5"),
        ("IA32_MTRR_PHYSMASK3", "0x207"),
        ("leaf:0x15", "CPUID leaf 0x15"),
    ] {
        let ended = glassvisor("explain").args(what).run();
        assert_eq!(ended.status, 0, "{ended}");
        assert!(ended.stdout.contains(expected) && ended.stdout.contains("Read on: "), "{ended}");
        assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{ended}");
    }
}

#[test]
fn what_is_unknown_gets_the_nearest() {
    glassvisor("explain EPT_VIOLATOIN").run().must_say(4, &["EPT_VIOLATOIN", "nearest: EPT_VIOLATION"]);
    glassvisor("explain msr:0x6e1").run().must_say(4, &["0x6e0"]);
    glassvisor("explain").run().must_say(2, &["WHAT"]);
}

#[test]
fn the_models_that_boot_takes_are_listed() {
    let ended = glassvisor("cpus").run();
    assert_eq!(ended.status, 0, "{ended}");
    for text in ["glassvisor-v2\n", "glassvisor-v2-notsc\n", "glassvisor-v3\n", "nonstop_tsc", "kHz"] {
        assert!(ended.stdout.contains(text), "{text}: {ended}");
    }
}
