//! What is measured. The sizes are in the runner (`guest/workloads/main.c`).

/// Name of the row for the time from the start of the engine to the guest's init.
pub const BOOT: &str = "boot";

/// Runs before the others and is not counted: the first workload after init also pays for leftover boot work.
pub const WARM_UP: &str = "intmix";

/// Rows in the order of the table: computation, memory, kernel, clocks.
pub const WORKLOADS: [&str; 20] = [
    "intmix",
    "sha256",
    "indirect",
    "fib",
    "fpmix",
    "tlbchase",
    "repmovs",
    "repmovs_alias",
    "copy64",
    "copy64_alias",
    "copysse",
    "copysse_alias",
    "pagefault",
    "syscall",
    "forkexec",
    "ring2",
    "ring8",
    "clock",
    "rdtsc",
    "sleep",
];

/// The rows of `--smoke`.
pub const SMOKE: [&str; 5] = [BOOT, "intmix", "fpmix", "syscall", "ring2"];

/// Whether a row belongs into the geometric means. A boot has no native counterpart; a sleep is idle time; the aliased
/// copies would count copies twice.
pub fn is_averaged(row: &str) -> bool {
    row != BOOT && row != "sleep" && !row.ends_with("_alias")
}

/// All rows.
pub fn all_rows() -> Vec<&'static str> {
    std::iter::once(BOOT).chain(WORKLOADS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_runners_table_and_the_other_way_round() {
        let runner = include_str!("../../../guest/workloads/main.c");
        for name in WORKLOADS {
            assert!(runner.contains(&format!("{{ \"{name}\", ")), "{name} is not in the runner");
        }
        let rows = runner.lines().filter(|line| line.starts_with("    { \"")).count();
        assert_eq!(rows, WORKLOADS.len());
    }

    #[test]
    fn smoke_rows_and_warm_up_exist() {
        for name in SMOKE {
            assert!(all_rows().contains(&name), "{name}");
        }
        assert!(WORKLOADS.contains(&WARM_UP));
    }
}
