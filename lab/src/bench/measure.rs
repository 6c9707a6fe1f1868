//! One run of an engine: start it, note when each line arrives, and turn that into wall times.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::engine::Engine;
use super::serial::{self, Event};
use super::workloads::BOOT;

/// Lines of output that an error shows.
const SHOWN_LINES: usize = 15;

/// Why a run gave no result.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// the program could not be started
    #[error("{engine}: cannot start '{program}': {source}")]
    Start {
        /// Which engine.
        engine: Engine,
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// no line for too long
    #[error("{engine}: silent for {seconds} s, stopped it; its last lines:\n{tail}")]
    Stalled {
        /// Which engine.
        engine: Engine,
        /// The limit.
        seconds: u64,
        /// Its last output.
        tail: String,
    },
    /// the guest reported trouble, or ended early
    #[error("{engine}: {what}; its last lines:\n{tail}")]
    Failed {
        /// Which engine.
        engine: Engine,
        /// What was seen.
        what: String,
        /// Its last output.
        tail: String,
    },
}

/// One row of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Workload, or [`BOOT`].
    pub row: String,
    /// Wall time on the host, from the line before to the line after.
    pub wall: Duration,
    /// Time by the guest's own clock, nanoseconds.
    pub guest_ns: Option<u64>,
    /// Checksum, to compare between engines.
    pub checksum: Option<String>,
}

/// Turns time-stamped lines into samples. Pure, so that it can be tested without an engine.
#[derive(Debug)]
pub struct Stopwatch {
    started: Instant,
    begun: Option<(String, Instant)>,
    warm_ups_left: usize,
    done: Option<i32>,
}

impl Stopwatch {
    /// Starts now; the first `warm_ups` workloads are not counted.
    pub fn new(started: Instant, warm_ups: usize) -> Self {
        Stopwatch { started, begun: None, warm_ups_left: warm_ups, done: None }
    }

    /// Take in a line that arrived at `at`. A sample when the line ends one; an error text when it tells of trouble.
    pub fn line(&mut self, at: Instant, text: &str) -> Result<Option<Sample>, String> {
        match serial::parse(text) {
            None => Ok(None),
            Some(Event::Init) => {
                Ok(Some(Sample { row: BOOT.to_owned(), wall: at - self.started, guest_ns: None, checksum: None }))
            }
            Some(Event::Begin(name)) => {
                self.begun = Some((name, at));
                Ok(None)
            }
            Some(Event::Bench(result)) => match self.begun.take() {
                Some((name, begun)) if name == result.name => {
                    if self.warm_ups_left > 0 {
                        self.warm_ups_left -= 1;
                        return Ok(None);
                    }
                    Ok(Some(Sample {
                        row: name,
                        wall: at - begun,
                        guest_ns: Some(result.guest_ns),
                        checksum: Some(result.checksum),
                    }))
                }
                _ => Err(format!("the end of '{}' without its beginning", result.name)),
            },
            Some(Event::Done(status)) => {
                self.done = Some(status);
                if status == 0 { Ok(None) } else { Err(format!("the guest ended with status {status}")) }
            }
            Some(Event::Trouble(line)) => Err(line),
        }
    }

    /// Whether the guest said that it is done.
    pub fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// Name of the workload that runs now.
    pub fn running(&self) -> Option<&str> {
        self.begun.as_ref().map(|(name, _)| name.as_str())
    }
}

/// Ends the engine however the measurement ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Run `command` to its end. `on_line` is called after each line with the name of the workload that runs.
pub fn run(
    engine: Engine,
    command: &[String],
    warm_ups: usize,
    stall_limit: Duration,
    mut on_line: impl FnMut(Option<&str>),
) -> Result<Vec<Sample>, MeasureError> {
    let program = command.first().cloned().unwrap_or_default();
    let started = Instant::now();
    let mut child = Command::new(&program)
        .args(command.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| MeasureError::Start { engine, program, source })?;
    let (sender, lines) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
        child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut bytes = Vec::new();
            while matches!(reader.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if sender.send((Instant::now(), text)).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
    }
    drop(sender);

    let mut child = Running(child);
    let mut watch = Stopwatch::new(started, warm_ups);
    let mut samples = Vec::new();
    let mut tail: VecDeque<String> = VecDeque::new();
    let show =
        |tail: &VecDeque<String>| tail.iter().map(|l| format!("    {}", l.trim_end())).collect::<Vec<_>>().join("\n");
    loop {
        match lines.recv_timeout(stall_limit) {
            Ok((at, text)) => {
                tail.push_back(text.clone());
                if tail.len() > SHOWN_LINES {
                    tail.pop_front();
                }
                match watch.line(at, &text) {
                    Ok(sample) => samples.extend(sample),
                    Err(what) => {
                        return Err(MeasureError::Failed { engine, what, tail: show(&tail) });
                    }
                }
                on_line(watch.running());
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(MeasureError::Stalled { engine, seconds: stall_limit.as_secs(), tail: show(&tail) });
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.0.wait();
    let finished = match engine {
        Engine::Native => status.as_ref().is_ok_and(std::process::ExitStatus::success),
        _ => watch.is_done(),
    };
    if finished {
        return Ok(samples);
    }
    let what = match status {
        Ok(status) => format!("ended before its workloads did ({status})"),
        Err(error) => format!("ended before its workloads did ({error})"),
    };
    Err(MeasureError::Failed { engine, what, tail: show(&tail) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "BENCH name=fib ns=5 checksum=ab ops=1";

    #[test]
    fn wall_time_runs_from_begin_to_bench_and_boot_from_the_start() {
        let t0 = Instant::now();
        let at = |ms| t0 + Duration::from_millis(ms);
        let mut watch = Stopwatch::new(t0, 0);
        let boot = watch.line(at(3000), "GLASSVISOR-INIT uptime=2.9").unwrap().unwrap();
        assert_eq!((boot.row.as_str(), boot.wall), (BOOT, Duration::from_secs(3)));
        assert_eq!(watch.line(at(4000), "BEGIN fib"), Ok(None));
        assert_eq!(watch.running(), Some("fib"));
        let sample = watch.line(at(4250), LINE).unwrap().unwrap();
        assert_eq!(sample.wall, Duration::from_millis(250));
        assert_eq!((sample.guest_ns, sample.checksum.as_deref()), (Some(5), Some("ab")));
    }

    #[test]
    fn warm_up_is_not_counted() {
        let t0 = Instant::now();
        let mut watch = Stopwatch::new(t0, 1);
        let mut counted = 0;
        for _ in 0..3 {
            watch.line(t0, "BEGIN fib").unwrap();
            counted += usize::from(watch.line(t0, LINE).unwrap().is_some());
        }
        assert_eq!(counted, 2);
    }

    #[test]
    fn end_without_beginning_and_bad_status_are_errors() {
        let t0 = Instant::now();
        assert!(Stopwatch::new(t0, 0).line(t0, LINE).is_err());
        let mut watch = Stopwatch::new(t0, 0);
        watch.line(t0, "BEGIN sha256").unwrap();
        assert!(watch.line(t0, LINE).unwrap_err().contains("'fib'"));
        assert!(watch.line(t0, "GLASSVISOR-DONE status=3 uptime=1").unwrap_err().contains('3'));
    }

    fn shell(script: &str) -> Result<Vec<Sample>, MeasureError> {
        let command = ["sh", "-c", script].map(str::to_owned);
        run(Engine::Tcg, &command, 0, Duration::from_millis(1500), |_| {})
    }

    #[test]
    fn a_program_that_speaks_as_a_guest_is_measured() {
        let script = format!("echo GLASSVISOR-INIT x; echo BEGIN fib; echo {LINE}; echo GLASSVISOR-DONE status=0");
        let rows: Vec<String> = shell(&script).unwrap().into_iter().map(|s| s.row).collect();
        assert_eq!(rows, ["boot", "fib"]);
    }

    #[test]
    fn a_silent_program_is_stopped() {
        let error = shell("echo some last words; exec sleep 60").unwrap_err();
        assert!(matches!(&error, MeasureError::Stalled { tail, .. } if tail.contains("some last words")), "{error}");
    }

    #[test]
    fn an_early_end_shows_what_was_said_on_standard_error() {
        let error = shell("echo BEGIN fib; echo no such kernel >&2; exit 4").unwrap_err().to_string();
        assert!(error.contains("no such kernel") && error.contains('4'), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = run(Engine::Real, &["/nowhere/x".to_owned()], 0, Duration::from_secs(1), |_| {}).unwrap_err();
        assert!(error.to_string().contains("/nowhere/x"), "{error}");
    }
}
