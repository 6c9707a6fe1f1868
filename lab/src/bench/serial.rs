//! What the guest's init and workload runner say on the serial console, line by line.

/// A line that means something to the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Init runs: the kernel has booted.
    Init,
    /// A workload is about to start.
    Begin(String),
    /// A workload has finished.
    Bench(Result),
    /// The guest is about to power off; its exit status.
    Done(i32),
    /// The guest reports that something went wrong, or its kernel panicked.
    Trouble(String),
}

/// One `BENCH` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Result {
    /// Name of the workload.
    pub name: String,
    /// Duration by the clock of the machine that ran it, nanoseconds. Under icount and virtual time this is not wall time.
    pub guest_ns: u64,
    /// The same on every correct machine.
    pub checksum: String,
    /// Operations done.
    pub ops: u64,
}

/// Understand a line, or say that it means nothing to us. Firmware leaves escape sequences before the first line.
pub fn parse(line: &str) -> Option<Event> {
    let line = line.trim_end();
    if line.contains("GLASSVISOR-INIT ") {
        return Some(Event::Init);
    }
    if line.contains("Kernel panic") || line.starts_with("GLASSVISOR-ERROR") {
        return Some(Event::Trouble(line.to_owned()));
    }
    let (word, rest) = line.split_once(' ')?;
    match word {
        "BEGIN" => Some(Event::Begin(rest.to_owned())),
        "BENCH" => Some(bench(rest).map_or_else(|| Event::Trouble(format!("garbled line: {line}")), Event::Bench)),
        "GLASSVISOR-DONE" => field(rest, "status")?.parse().ok().map(Event::Done),
        _ => None,
    }
}

fn bench(fields: &str) -> Option<Result> {
    Some(Result {
        name: field(fields, "name")?.to_owned(),
        guest_ns: field(fields, "ns")?.parse().ok()?,
        checksum: field(fields, "checksum")?.to_owned(),
        ops: field(fields, "ops")?.parse().ok()?,
    })
}

fn field<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    fields.split_whitespace().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_line_gives_its_four_fields() {
        assert_eq!(
            parse("BENCH name=fib ns=1336499290 checksum=25205631799a7ecc ops=29860703\r"),
            Some(Event::Bench(Result {
                name: "fib".to_owned(),
                guest_ns: 1_336_499_290,
                checksum: "25205631799a7ecc".to_owned(),
                ops: 29_860_703,
            }))
        );
    }

    #[test]
    fn init_is_found_behind_escape_sequences_of_firmware() {
        assert_eq!(parse("\u{1b}c\u{1b}[?7l\u{1b}[2JGLASSVISOR-INIT uptime=4.28\r"), Some(Event::Init));
    }

    #[test]
    fn done_carries_the_exit_status() {
        assert_eq!(parse("GLASSVISOR-DONE status=0 uptime=28.21"), Some(Event::Done(0)));
        assert_eq!(parse("GLASSVISOR-DONE status=139 uptime=1.0"), Some(Event::Done(139)));
    }

    #[test]
    fn trouble_is_seen() {
        for line in [
            "[    3.6] Kernel panic - not syncing: No working init found.",
            "GLASSVISOR-ERROR workload status=1",
            "BENCH name=fib ns=many checksum=0 ops=1",
            "BENCH name=fib",
        ] {
            assert!(matches!(parse(line), Some(Event::Trouble(_))), "{line}");
        }
    }

    #[test]
    fn other_lines_mean_nothing() {
        for line in ["", "BEGIN", "clocksource current: tsc", "SeaBIOS (version 1.16.2)", "GLASSVISOR-DONE"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
