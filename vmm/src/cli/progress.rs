//! One line on standard error that tells that a quiet guest is alive.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::report::{grouped, seconds};
use crate::vm::{Kicker, MachineVm};

const PERIOD: Duration = Duration::from_secs(1);
/// Into a file, fewer lines do.
const LINES_PERIOD: Duration = Duration::from_secs(5);

/// Back to the start of the line, and wipe it.
const WIPE: &str = "\r\x1b[K";

/// What is on the line where the cursor is, as the guest's output and the progress line may share a terminal.
#[derive(Clone, Debug, Default)]
pub struct Screen(Arc<Line>);

#[derive(Debug, Default)]
struct Line {
    /// The progress line.
    progress: AtomicBool,
    /// A line of the guest's without its end.
    guest: AtomicBool,
}

impl Screen {
    fn wipe(&self) {
        if self.0.progress.swap(false, Ordering::Relaxed) {
            let _ = write!(io::stderr(), "{WIPE}");
        }
    }
}

/// Where the guest's serial port writes: takes the progress line away first.
pub struct GuestOutput<W> {
    screen: Screen,
    out: W,
}

impl<W: Write> GuestOutput<W> {
    pub fn new(screen: Screen, out: W) -> Self {
        Self { screen, out }
    }
}

impl<W: Write> Write for GuestOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.screen.wipe();
        if let Some(&last) = bytes.last() {
            self.screen.0.guest.store(last != b'\n', Ordering::Relaxed);
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Asks the run loop for a line now and then.
pub struct Progress {
    due: Arc<AtomicBool>,
    in_place: bool,
    screen: Screen,
}

impl Progress {
    /// Starts the clock; it ends with the program.
    pub fn start(kicker: Kicker, screen: Screen) -> io::Result<Self> {
        let in_place = io::stderr().is_terminal();
        let due = Arc::new(AtomicBool::new(false));
        let flag = Arc::downgrade(&due);
        std::thread::Builder::new().name("progress".into()).spawn(move || {
            loop {
                std::thread::sleep(if in_place { PERIOD } else { LINES_PERIOD });
                let Some(flag) = flag.upgrade() else { return };
                flag.store(true, Ordering::Release);
                kicker.kick();
            }
        })?;
        Ok(Self { due, in_place, screen })
    }

    /// Shows the line if it is time, and the guest is not in the middle of one of its own.
    pub fn show(&mut self, vm: &dyn MachineVm, started: Instant) {
        if !self.due.swap(false, Ordering::Acquire) {
            return;
        }
        if self.in_place && self.screen.0.guest.load(Ordering::Relaxed) {
            return;
        }
        let instructions = vm.counts().instructions();
        let wall = started.elapsed();
        let mips = instructions as f64 / wall.as_secs_f64().max(1e-9) / 1e6;
        let line = format!(
            "{:>4} s: {} million instructions, guest time {}, {mips:.0} MIPS",
            wall.as_secs(),
            grouped(instructions / 1_000_000),
            seconds(vm.now_ns()),
        );
        let mut stderr = io::stderr().lock();
        let _ = if self.in_place { write!(stderr, "{WIPE}{line}") } else { writeln!(stderr, "{line}") };
        let _ = stderr.flush();
        self.screen.0.progress.store(self.in_place, Ordering::Relaxed);
    }

    /// Wipes the line.
    pub fn clear(&mut self) {
        self.screen.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_output_takes_the_progress_line_away_and_tells_where_it_stopped() {
        let screen = Screen::default();
        let mut out = Vec::new();
        let mut guest = GuestOutput::new(screen.clone(), &mut out);
        screen.0.progress.store(true, Ordering::Relaxed);
        guest.write_all(b"~ # ").unwrap();
        assert!(!screen.0.progress.load(Ordering::Relaxed) && screen.0.guest.load(Ordering::Relaxed));
        guest.write_all(b"exit\n").unwrap();
        assert!(!screen.0.guest.load(Ordering::Relaxed));
        assert_eq!(out, b"~ # exit\n");
    }
}
