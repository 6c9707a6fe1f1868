//! The guest that is built in, and the three forms in which a run is told: table, JSON, trace.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::{glassvisor, new_file};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// What must be equal in equal runs: everything but the host's time.
fn without_wall_time(mut report: Value) -> Value {
    report.as_object_mut().expect("an object").remove("wall_time_ns").expect("wall time is told");
    report
}

#[test]
fn the_built_in_guest_succeeds_and_runs_are_equal() {
    let (ended, first) = glassvisor("boot --builtin").statistics("builtin-1.json");
    assert_eq!(ended.status, 0, "{ended}");
    ended.must_print("Glassvisor bare-metal guest");
    ended.must_print("done");
    let first = without_wall_time(first);
    for name in ["builtin-2.json", "builtin-3.json"] {
        let (again, report) = glassvisor("boot --builtin").statistics(name);
        assert_eq!(again.stdout, ended.stdout);
        assert_eq!(without_wall_time(report), first);
    }
}

#[test]
fn the_built_in_guest_succeeds_in_real_time_and_on_every_model() {
    for options in ["--time real", "--cpu nehalem", "--cpu qemu64", "--cpu glassvisor-v2-notsc", "--cpus 16"] {
        let ended = glassvisor("boot --builtin").args(options).run();
        assert_eq!(ended.status, 0, "{ended}");
        ended.must_print("done");
    }
}

#[test]
fn json_holds_counts_that_fit_what_the_guest_did() {
    let (ended, report) = glassvisor("boot --builtin").statistics("builtin-json.json");
    assert_eq!(ended.status, 0, "{ended}");
    assert_eq!(number(&report["exit_code"]), 0);
    // A loop of a million turns, two instructions each, and then some.
    let instructions = number(&report["vcpus"][0]["instructions"]);
    assert!((2_000_000..2_100_000).contains(&instructions), "{instructions}");
    assert!(number(&report["vcpus"][0]["modelled_cycles"]) > 0 && number(&report["guest_time_ns"]) > 0);
    // The timer's vector, once.
    assert_eq!(report["interrupts"], serde_json::json!([{ "vector": 0x40, "count": 1 }]));
    let hash = report["state_hash"].as_str().expect("a hash");
    assert!(hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
    // Two port accesses a character at least.
    let exits = report["exits"].as_array().expect("a list");
    let io = exits.iter().find(|exit| exit["name"] == "IO_INSTRUCTION").expect("port accesses exit");
    assert!(number(&io["count"]) >= 2 * ended.stdout.len() as u64, "{io}");
}

#[test]
fn the_table_shows_the_sections_and_the_same_hash_as_json() {
    let (_, report) = glassvisor("boot --builtin").statistics("builtin-table.json");
    let ended = glassvisor("boot --builtin --stats table").run();
    ended.must_say(
        0,
        &[
            "VM-exits (counted)",
            "IO_INSTRUCTION",
            "MSR accesses that exited (counted)",
            "interrupts injected (counted)",
            "0x40",
            "TLB (counted)",
            "walk references (counted)",
            "instructions (counted)",
            "cycles (modelled)",
            "MIPS (host)",
            report["state_hash"].as_str().expect("a hash"),
        ],
    );
    assert!(ended.stderr.lines().count() < 60, "too tall: {ended}");
    assert!(ended.stderr.lines().all(|line| line.chars().count() <= 100), "too wide: {ended}");
}

#[test]
fn the_trace_has_a_line_for_each_exit_that_is_counted() {
    let path = new_file("builtin.trace");
    let (ended, report) = glassvisor("boot --builtin").arg("--trace", &path).statistics("builtin-trace.json");
    assert_eq!(ended.status, 0, "{ended}");
    let trace = std::fs::read_to_string(&path).expect("a trace");
    let mut lines = trace.lines();
    assert_eq!(lines.next(), Some("guest_time_ns\tvcpu\treason\tname\tqualification\trip"));
    let mut traced: BTreeMap<u64, u64> = BTreeMap::new();
    let mut before = 0;
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let [time, vcpu, reason, name, qualification, rip] = fields[..] else { panic!("not six fields: {line}") };
        let time: u64 = time.parse().expect("nanoseconds");
        assert!(time >= before, "time runs backwards at: {line}");
        before = time;
        assert!(vcpu == "0" && !name.is_empty() && qualification.starts_with("0x") && rip.starts_with("0x"), "{line}");
        *traced.entry(reason.parse().expect("a number")).or_default() += 1;
    }
    let counted: BTreeMap<u64, u64> = report["exits"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|exit| (number(&exit["reason"]), number(&exit["count"])))
        .collect();
    assert_eq!(traced, counted);
    assert!(counted.values().sum::<u64>() > 100);
}
