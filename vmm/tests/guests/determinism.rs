//! In virtual time a run is a function of its inputs, and the state hash shows it.

use crate::program::debian;

/// The hash of one boot of Debian's kernel to init and power-off.
fn hash(name: &str, cpus: u8, seed: u64) -> String {
    let (ended, json) = debian("6.12", "")
        .args(&format!("--cpus {cpus} --seed {seed}"))
        .statistics(&format!("determinism-{name}-{cpus}-{seed}.json"));
    assert_eq!(ended.status, 0, "{ended}");
    json["state_hash"].as_str().expect("a hash").to_owned()
}

#[test]
fn three_runs_on_1_vcpu_end_in_one_state_and_another_seed_in_another() {
    let first = hash("a", 1, 1);
    assert_eq!([hash("b", 1, 1), hash("c", 1, 1)], [first.clone(), first.clone()]);
    assert_ne!(hash("d", 1, 2), first, "the seed has no effect");
}

#[test]
fn three_runs_on_4_vcpus_end_in_one_state_and_2_vcpus_in_another() {
    let first = hash("a", 4, 1);
    assert_eq!([hash("b", 4, 1), hash("c", 4, 1)], [first.clone(), first.clone()]);
    assert_ne!(hash("d", 2, 1), first);
}
