//! The same static program natively, under QEMU TCG and on the modelled machine, compared by wall time on the host.
//!
//! The guest's own clock is not wall time under icount and in virtual time, so each line of the serial console is
//! stamped as it arrives: a workload's time is from its `BEGIN` to its `BENCH` line, a boot's from the start of the
//! process to init. Engines take turns, so that a busy spell of the host does not hit one of them alone.

pub mod chart;
pub mod engine;
pub mod measure;
pub mod report;
pub mod serial;
pub mod statistics;
pub mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;

use engine::{Engine, Files};
use report::Report;
use workloads::{BOOT, SMOKE, WARM_UP, all_rows};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// A short run: few workloads, small, once. Shows that everything works; its ratios mean little
    #[arg(long)]
    pub smoke: bool,
    /// Folder for bench.json, bench.txt and bench.svg
    #[arg(long, value_name = "DIR", default_value = "out/bench")]
    pub out: PathBuf,
    /// Only these rows: boot and names of workloads
    #[arg(long, value_delimiter = ',', value_name = "ROW,...")]
    pub only: Vec<String>,
    /// Only these engines
    #[arg(long, value_delimiter = ',', value_name = "ENGINE,...")]
    pub engines: Vec<Engine>,
    /// Runs of each engine; the table shows medians [default: 3, or 1 with --smoke]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: Option<u32>,
    /// Size of the workloads in percent [default: 100, or 5 with --smoke]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub scale: Option<u32>,
    /// Stop an engine that says nothing for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub stall_limit: u64,
    /// Kernel to boot instead of the fetched one
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Initramfs instead of the built one
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Our VMM instead of target/release/glassvisor
    #[arg(long, value_name = "FILE")]
    pub glassvisor: Option<PathBuf>,
}

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum BenchError {
    /// a row that does not exist
    #[error("'{0}' is not a row; there are: {1}")]
    UnknownRow(String, String),
    /// native has no boot
    #[error("nothing to measure: a native run has no boot")]
    Nothing,
    /// tools or files are missing
    #[error("cannot start:\n  {}", .0.join("\n  "))]
    Missing(Vec<String>),
    /// an engine failed
    #[error(transparent)]
    Measure(#[from] measure::MeasureError),
    /// the picture failed
    #[error(transparent)]
    Chart(#[from] chart::ChartError),
    /// a result could not be written
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// an engine computes wrongly
    #[error("checksums differ, so one of these machines computes wrongly:\n  {}", .0.join("\n  "))]
    Checksums(Vec<String>),
}

/// What the options come to.
struct Plan {
    rows: Vec<String>,
    engines: Vec<Engine>,
    repeat: u32,
    scale: u32,
    files: Files,
}

impl Plan {
    fn new(options: &Options) -> Result<Self, BenchError> {
        let known = all_rows();
        if let Some(row) = options.only.iter().find(|row| !known.contains(&row.as_str())) {
            return Err(BenchError::UnknownRow(row.clone(), known.join(", ")));
        }
        let wanted = |row: &&str| match (options.only.is_empty(), options.smoke) {
            (false, _) => options.only.iter().any(|name| name == row),
            (true, true) => SMOKE.contains(row),
            (true, false) => true,
        };
        let rows: Vec<String> = known.iter().copied().filter(wanted).map(str::to_owned).collect();
        let mut engines: Vec<Engine> = Engine::ALL
            .into_iter()
            .filter(|engine| options.engines.is_empty() || options.engines.contains(engine))
            .collect();
        if rows == [BOOT] {
            engines.retain(|engine| *engine != Engine::Native);
        }
        if engines.is_empty() {
            return Err(BenchError::Nothing);
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = Files::in_repository(&root.canonicalize().unwrap_or(root));
        for (given, file) in [
            (&options.kernel, &mut files.kernel),
            (&options.initrd, &mut files.initrd),
            (&options.glassvisor, &mut files.glassvisor),
        ] {
            if let Some(path) = given {
                file.clone_from(path);
            }
        }
        let missing = files.missing(&engines);
        if !missing.is_empty() {
            return Err(BenchError::Missing(missing));
        }
        Ok(Plan {
            rows,
            engines,
            repeat: options.repeat.unwrap_or(if options.smoke { 1 } else { 3 }),
            scale: options.scale.unwrap_or(if options.smoke { 5 } else { 100 }),
            files,
        })
    }

    /// What the guest runs: the warm-up, then the rows. Nothing when only the boot counts.
    fn workloads(&self) -> Vec<&str> {
        let rows: Vec<&str> = self.rows.iter().map(String::as_str).filter(|row| *row != BOOT).collect();
        if rows.is_empty() { rows } else { std::iter::once(WARM_UP).chain(rows).collect() }
    }
}

/// Measure, print the table, write the files.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let plan = Plan::new(options)?;
    let workloads = plan.workloads();
    let warm_ups = usize::from(!workloads.is_empty());
    let processor = engine::first_allowed_processor();
    let mut report = Report { rows: plan.rows.clone(), setting: setting(&plan), ..Report::default() };

    let steps = u64::try_from(plan.engines.len() * (workloads.len() + 1)).unwrap_or(0) * u64::from(plan.repeat);
    let bar = ProgressBar::new(steps).with_style(
        ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.enable_steady_tick(Duration::from_millis(250));
    for turn in 1..=plan.repeat {
        for &engine in &plan.engines {
            let command = engine::command(engine, &plan.files, &workloads, plan.scale, processor);
            report.commands.insert(engine, shell_words(&command));
            let before = bar.position();
            let announce = |what: &str| {
                let text = format!("run {turn} of {}, {}: {what}", plan.repeat, engine.title());
                if bar.is_hidden() {
                    eprintln!("lab: {text}");
                }
                bar.set_message(text);
            };
            announce(if engine == Engine::Native { "starting" } else { "booting" });
            let mut last: Option<String> = None;
            let samples =
                measure::run(engine, &command, warm_ups, Duration::from_secs(options.stall_limit), |running| {
                    if let Some(name) = running
                        && last.as_deref() != Some(name)
                    {
                        announce(name);
                        bar.inc(1);
                    }
                    last = running.map(str::to_owned);
                })?;
            report.add(engine, samples);
            bar.set_position(before + u64::try_from(workloads.len() + 1).unwrap_or(0));
        }
    }
    bar.finish_and_clear();

    let table = report.table();
    println!("{table}");
    write(&options.out, "bench.txt", &format!("{table}\n"))?;
    write(&options.out, "bench.json", &format!("{:#}\n", report.json()))?;
    let svg = chart::svg(&report)?;
    if !svg.is_empty() {
        write(&options.out, "bench.svg", &svg)?;
    }
    for line in report.unreliable() {
        println!("unreliable (busy host, or too short): {line}");
    }
    println!("written: {}", options.out.display());
    let wrong = report.wrong_checksums();
    if wrong.is_empty() { Ok(()) } else { Err(BenchError::Checksums(wrong)) }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), BenchError> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|source| BenchError::Write { path: path.display().to_string(), source })
}

/// Where it was measured, as far as the system tells.
fn setting(plan: &Plan) -> BTreeMap<String, String> {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("model name"))?;
        Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
    });
    let qemu = std::process::Command::new(&plan.files.qemu)
        .arg("--version")
        .output()
        .ok()
        .map(|output| first_line(String::from_utf8_lossy(&output.stdout).into_owned()));
    let kernel = plan.files.kernel.parent().and_then(|dir| std::fs::read_to_string(dir.join("version")).ok());
    [
        ("processor", processor),
        ("qemu", qemu),
        ("guest kernel", kernel.map(first_line)),
        ("scale percent", Some(plan.scale.to_string())),
        ("repeat", Some(plan.repeat.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    .collect()
}

/// The command as one would type it.
fn shell_words(command: &[String]) -> String {
    command
        .iter()
        .map(|word| if word.contains(' ') { format!("'{word}'") } else { word.clone() })
        .collect::<Vec<_>>()
        .join(" ")
}
