//! One run from the first instruction to the last: input, signals, limits, statistics on request.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::answers::Answers;
use super::progress::Progress;
use super::{EXIT_CANNOT_START, EXIT_SIGNAL, EXIT_TIME_LIMIT, EXIT_USER_QUIT};
use crate::console::{Command, ESCAPE_HELP, EscapeFilter, InputThread, Typed};
use crate::machine::{Ending, Machine, Step};
use crate::report::{Report, Unclaimed};
use crate::vm::{Kicker, MachineVm, VmError};

/// Why a run is over.
#[derive(Debug)]
pub enum Outcome {
    Guest(Ending),
    UserQuit,
    Signal,
    TimeLimit(Duration),
    Failed(VmError),
}

impl Outcome {
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Guest(ending) => ending.exit_code(),
            Outcome::UserQuit => EXIT_USER_QUIT,
            Outcome::Signal => EXIT_SIGNAL,
            Outcome::TimeLimit(_) => EXIT_TIME_LIMIT,
            Outcome::Failed(_) => EXIT_CANNOT_START,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Guest(ending) => ending.fmt(f),
            Outcome::UserQuit => write!(f, "ended by the escape key"),
            Outcome::Signal => write!(f, "ended by a signal (Ctrl-C)"),
            Outcome::TimeLimit(limit) => {
                write!(f, "ended after {} s of wall time, as --max-time says", limit.as_secs())
            }
            Outcome::Failed(error) => write!(f, "the hypervisor gave up: {error}"),
        }
    }
}

/// Flags that other threads and signal handlers set.
#[derive(Clone, Debug, Default)]
pub struct StopFlags {
    pub signal: Arc<AtomicBool>,
    pub time_limit: Arc<AtomicBool>,
}

impl StopFlags {
    /// Lets Ctrl-C, a hang-up and a request to terminate end the run. A second signal ends the program at once, so
    /// that even a defect of the monitor cannot keep it.
    pub fn watch_signals(&self, kicker: Kicker) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let flag = self.signal.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for _ in signals.forever() {
                if flag.swap(true, Ordering::AcqRel) {
                    crate::console::restore_terminal();
                    std::process::exit(EXIT_SIGNAL.into());
                }
                kicker.kick();
            }
        })?;
        Ok(())
    }

    /// Ends the run after `limit` of wall time.
    pub fn watch_time(&self, limit: Duration, kicker: Kicker) -> std::io::Result<()> {
        let flag = self.time_limit.clone();
        std::thread::Builder::new().name("time limit".into()).spawn(move || {
            std::thread::sleep(limit);
            flag.store(true, Ordering::Release);
            kicker.kick();
        })?;
        Ok(())
    }
}

/// Whether the escape key has a meaning: only on a terminal, as a pipe may hold any byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeKey {
    Active,
    Absent,
}

/// Whether a report has the state hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateHash {
    Taken,
    Omitted,
}

/// A machine with everything around it.
pub struct Session<V> {
    pub machine: Machine<V>,
    pub input: Option<InputThread>,
    pub escape: EscapeKey,
    pub answers: Answers,
    pub stop: StopFlags,
    pub max_time: Option<Duration>,
    pub progress: Option<Progress>,
    pub started: Instant,
}

impl<V: MachineVm> Session<V> {
    /// Runs until the guest, the user or a limit ends it.
    pub fn run(&mut self) -> Outcome {
        let mut filter = EscapeFilter::default();
        loop {
            match self.machine.step() {
                Ok(Step::Ended(ending)) => return Outcome::Guest(ending),
                Ok(Step::Served | Step::Interrupted) => {}
                Err(error) => return Outcome::Failed(error),
            }
            if self.stop.signal.load(Ordering::Acquire) {
                return Outcome::Signal;
            }
            if self.stop.time_limit.load(Ordering::Acquire) {
                return Outcome::TimeLimit(self.max_time.unwrap_or_default());
            }
            if let Some(progress) = &mut self.progress {
                progress.show(self.machine.vm(), self.started);
            }
            let keys = self.answers.take();
            if !keys.is_empty()
                && let Err(error) = self.machine.type_in(&keys)
            {
                return Outcome::Failed(error);
            }
            let chunk = self.input.as_mut().map(InputThread::take).unwrap_or_default();
            if chunk.is_empty() {
                continue;
            }
            let typed = match self.escape {
                EscapeKey::Active => filter.feed(&chunk),
                EscapeKey::Absent => vec![Typed::ForGuest(chunk)],
            };
            for typed in typed {
                match typed {
                    Typed::ForGuest(bytes) => {
                        if let Err(error) = self.machine.type_in(&bytes) {
                            return Outcome::Failed(error);
                        }
                    }
                    Typed::Command(Command::Quit) => return Outcome::UserQuit,
                    Typed::Command(Command::Help) => eprintln!("\n{ESCAPE_HELP}"),
                    Typed::Command(Command::Statistics) => {
                        let text = self.report("running", 0, StateHash::Omitted).tables();
                        let _ = std::io::stderr().write_all(format!("\n{text}").as_bytes());
                    }
                }
            }
        }
    }

    /// Everything counted so far.
    pub fn report(&self, ending: &str, exit_code: u8, hash: StateHash) -> Report {
        let vm = self.machine.vm();
        let list = |counts: &crate::devices::PortCounts| {
            counts.iter().map(|(&address, &count)| Unclaimed { address, count }).collect()
        };
        Report {
            ending: ending.to_owned(),
            exit_code,
            counts: vm.counts(),
            unclaimed_ports: list(self.machine.bus().unclaimed_ports()),
            unclaimed_memory: list(self.machine.bus().unclaimed_memory()),
            guest_time_ns: vm.now_ns(),
            wall_time_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            state_hash: (hash == StateHash::Taken).then(|| format!("{:016x}", vm.state_hash())),
        }
    }
}
