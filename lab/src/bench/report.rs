//! The results as data, as a table for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::engine::Engine;
use super::measure::Sample;
use super::statistics::{geometric_mean, median};
use super::workloads::is_averaged;

/// Ratios that the table shows: how many times as long the first takes as the second.
const RATIOS: [(Engine, Engine); 7] = [
    (Engine::Tcg, Engine::Native),
    (Engine::Icount, Engine::Native),
    (Engine::Real, Engine::Native),
    (Engine::Virtual, Engine::Native),
    (Engine::Real, Engine::Tcg),
    (Engine::Virtual, Engine::Icount),
    (Engine::Icount, Engine::Tcg),
];

/// All samples of one row on one engine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// Wall times, milliseconds, in the order they were taken.
    pub wall_ms: Vec<f64>,
    /// The guest's own times, milliseconds.
    pub guest_ms: Vec<f64>,
    /// Checksums that were seen; more than one means that something computes wrongly.
    pub checksums: Vec<String>,
}

impl Cell {
    /// Median wall time in milliseconds.
    pub fn median_ms(&self) -> Option<f64> {
        median(&self.wall_ms)
    }
}

/// A comparison.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Where and with what it was measured.
    pub setting: BTreeMap<String, String>,
    /// The command of each engine, to run it again.
    pub commands: BTreeMap<Engine, String>,
    /// Rows in the order of the table.
    pub rows: Vec<String>,
    /// Row, engine, samples.
    pub cells: BTreeMap<String, BTreeMap<Engine, Cell>>,
}

impl Report {
    /// Add the samples of one run; rows that were not asked for (a boot, say) are left out.
    pub fn add(&mut self, engine: Engine, samples: Vec<Sample>) {
        for sample in samples.into_iter().filter(|s| self.rows.contains(&s.row)) {
            let cell = self.cells.entry(sample.row).or_default().entry(engine).or_default();
            cell.wall_ms.push(sample.wall.as_secs_f64() * 1e3);
            #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
            cell.guest_ms.extend(sample.guest_ns.map(|ns| ns as f64 / 1e6));
            if let Some(checksum) = sample.checksum
                && !cell.checksums.contains(&checksum)
            {
                cell.checksums.push(checksum);
            }
        }
    }

    /// Median wall time of a cell, milliseconds.
    pub fn median_ms(&self, row: &str, engine: Engine) -> Option<f64> {
        self.cells.get(row)?.get(&engine)?.median_ms()
    }

    /// How many times as long `a` takes as `b`.
    pub fn ratio(&self, row: &str, a: Engine, b: Engine) -> Option<f64> {
        let (a, b) = (self.median_ms(row, a)?, self.median_ms(row, b)?);
        (b > 0.0).then(|| a / b)
    }

    /// Geometric mean of a ratio over the rows that have both and count (see [`is_averaged`]).
    pub fn mean_ratio(&self, a: Engine, b: Engine) -> Option<f64> {
        let ratios: Vec<f64> =
            self.rows.iter().filter(|r| is_averaged(r)).filter_map(|row| self.ratio(row, a, b)).collect();
        geometric_mean(&ratios)
    }

    /// Rows whose checksum is not the same everywhere.
    pub fn wrong_checksums(&self) -> Vec<String> {
        self.cells
            .iter()
            .filter_map(|(row, engines)| {
                let seen: Vec<String> = engines
                    .iter()
                    .flat_map(|(engine, cell)| cell.checksums.iter().map(move |sum| (engine, sum)))
                    .map(|(engine, sum)| format!("{engine} {sum}"))
                    .collect();
                let mut sums: Vec<&str> = seen.iter().filter_map(|s| s.split(' ').nth(1)).collect();
                sums.sort_unstable();
                sums.dedup();
                (sums.len() > 1).then(|| format!("{row}: {}", seen.join(", ")))
            })
            .collect()
    }

    /// Rows where the guest's clock, which follows the host's, disagrees with the time between the lines by more than a
    /// fifth (and 2 ms): the host was too busy to stamp the lines in time, or the row is too short to measure.
    pub fn unreliable(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (row, engines) in &self.cells {
            for engine in [Engine::Native, Engine::Tcg, Engine::Real] {
                let Some(cell) = engines.get(&engine) else { continue };
                let (Some(wall), Some(guest)) = (cell.median_ms(), median(&cell.guest_ms)) else { continue };
                if (wall - guest).abs() > 2.0 + guest / 5.0 {
                    found.push(format!(
                        "{row} on {engine}: {wall:.1} ms between the lines, {guest:.1} ms by the guest's clock"
                    ));
                }
            }
        }
        found
    }

    /// The engines that have any sample, in the order of the columns.
    pub fn engines(&self) -> Vec<Engine> {
        Engine::ALL.into_iter().filter(|e| self.cells.values().any(|engines| engines.contains_key(e))).collect()
    }

    /// The table for people: median wall time in milliseconds, then ratios.
    pub fn table(&self) -> String {
        let engines = self.engines();
        let ratios: Vec<(Engine, Engine)> =
            RATIOS.into_iter().filter(|(a, b)| engines.contains(a) && engines.contains(b)).collect();
        let mut out = String::from("wall ms       ");
        for engine in &engines {
            let _ = write!(out, "{:>10}", engine.name());
        }
        for (a, b) in &ratios {
            let _ = write!(out, "{:>16}", format!("{a}/{b}"));
        }
        for row in &self.rows {
            let _ = write!(out, "\n{row:14}");
            for engine in &engines {
                out.push_str(&column(self.median_ms(row, *engine), 10, 1));
            }
            for (a, b) in &ratios {
                out.push_str(&column(self.ratio(row, *a, *b), 16, 2));
            }
        }
        if ratios.is_empty() {
            return out;
        }
        let averaged = self.rows.iter().filter(|r| is_averaged(r)).count();
        let _ = write!(out, "\n{:14}", "geometric mean");
        out.push_str(&" ".repeat(10 * engines.len()));
        for (a, b) in &ratios {
            out.push_str(&column(self.mean_ratio(*a, *b), 16, 2));
        }
        let _ = write!(
            out,
            "\n(mean of {averaged} rows: without boot, sleep and the aliased copies; ratio a/b: a takes that many times as long as b)"
        );
        out
    }

    /// Everything, with medians and means, as JSON.
    pub fn json(&self) -> serde_json::Value {
        let medians: BTreeMap<&String, BTreeMap<Engine, Option<f64>>> = self
            .cells
            .iter()
            .map(|(row, engines)| (row, engines.iter().map(|(e, cell)| (*e, cell.median_ms())).collect()))
            .collect();
        let means: BTreeMap<String, Option<f64>> =
            RATIOS.into_iter().map(|(a, b)| (format!("{a}/{b}"), self.mean_ratio(a, b))).collect();
        serde_json::json!({
            "version": 1,
            "report": self,
            "median_wall_ms": medians,
            "geometric_mean_ratio": means,
            "unreliable": self.unreliable(),
        })
    }
}

fn column(value: Option<f64>, width: usize, digits: usize) -> String {
    value.map_or_else(|| format!("{:>width$}", "-"), |v| format!("{v:>width$.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(row: &str, ms: u64, checksum: &str) -> Sample {
        Sample {
            row: row.to_owned(),
            wall: Duration::from_millis(ms),
            guest_ns: Some(1),
            checksum: Some(checksum.to_owned()),
        }
    }

    fn report() -> Report {
        let mut report =
            Report { rows: ["boot", "fib", "intmix", "sleep"].map(str::to_owned).to_vec(), ..Report::default() };
        report
            .add(Engine::Native, vec![sample("fib", 100, "aa"), sample("intmix", 10, "bb"), sample("sleep", 50, "c")]);
        report.add(Engine::Tcg, vec![sample("fib", 200, "aa"), sample("intmix", 80, "bb"), sample("sleep", 5000, "c")]);
        report
    }

    #[test]
    fn ratio_is_of_medians() {
        let mut report = report();
        report.add(Engine::Tcg, vec![sample("fib", 300, "aa"), sample("fib", 9000, "aa")]);
        assert_eq!(report.ratio("fib", Engine::Tcg, Engine::Native), Some(3.0));
        assert_eq!(report.ratio("boot", Engine::Tcg, Engine::Native), None);
    }

    #[test]
    fn mean_leaves_out_sleep_and_boot() {
        let mean = report().mean_ratio(Engine::Tcg, Engine::Native).unwrap();
        assert!((mean - 4.0).abs() < 1e-9, "{mean}");
        assert_eq!(report().mean_ratio(Engine::Real, Engine::Native), None);
    }

    #[test]
    fn different_checksums_are_reported_with_their_engines() {
        let mut report = report();
        assert!(report.wrong_checksums().is_empty());
        report.add(Engine::Virtual, vec![sample("intmix", 1, "b0")]);
        assert_eq!(report.wrong_checksums(), ["intmix: native bb, tcg bb, virtual b0"]);
    }

    #[test]
    fn a_wall_time_that_the_guests_clock_contradicts_is_reported() {
        let stamped =
            |wall_ms, guest_ms: u64| Sample { guest_ns: Some(guest_ms * 1_000_000), ..sample("fib", wall_ms, "aa") };
        let unreliable = |engine, wall_ms, guest_ms| {
            let mut report = Report { rows: vec!["fib".to_owned()], ..Report::default() };
            report.add(engine, vec![stamped(wall_ms, guest_ms)]);
            report.unreliable()
        };
        assert_eq!(unreliable(Engine::Tcg, 105, 100), Vec::<String>::new());
        assert_eq!(unreliable(Engine::Real, 0, 100).len(), 1);
        assert_eq!(unreliable(Engine::Native, 200, 100).len(), 1);
        assert_eq!(unreliable(Engine::Virtual, 200, 100), Vec::<String>::new(), "its clock is not the host's");
    }

    #[test]
    fn rows_not_asked_for_are_left_out() {
        let mut report = report();
        report.add(Engine::Tcg, vec![sample("ring2", 1, "x")]);
        assert!(!report.table().contains("ring2"));
    }

    #[test]
    fn table_has_a_line_for_each_row_and_shows_what_is_missing() {
        let table = report().table();
        assert_eq!(table.lines().count(), 1 + 4 + 2, "{table}");
        let boot = table.lines().nth(1).unwrap();
        assert!(boot.starts_with("boot") && boot.trim_end().ends_with('-'), "{table}");
        assert!(table.contains("tcg/native") && !table.contains("real/native"), "{table}");
    }

    #[test]
    fn table_of_one_engine_has_no_ratios() {
        let mut report = Report { rows: vec!["fib".to_owned()], ..Report::default() };
        report.add(Engine::Tcg, vec![sample("fib", 200, "aa")]);
        assert_eq!(report.table().lines().count(), 2, "{}", report.table());
    }

    #[test]
    fn json_keeps_every_sample() {
        let json = report().json();
        assert_eq!(json["report"]["cells"]["fib"]["tcg"]["wall_ms"][0], 200.0);
        assert_eq!(json["median_wall_ms"]["intmix"]["native"], 10.0);
    }
}
