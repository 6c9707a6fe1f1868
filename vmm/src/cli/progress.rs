//! One line on standard error that tells that a quiet guest is alive.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::report::{grouped, seconds};
use crate::vm::{Kicker, MachineVm};

const PERIOD: Duration = Duration::from_secs(1);
/// Into a file, fewer lines do.
const LINES_PERIOD: Duration = Duration::from_secs(10);

/// Asks the run loop for a line now and then.
pub struct Progress {
    due: Arc<AtomicBool>,
    in_place: bool,
    shown: bool,
}

impl Progress {
    /// Starts the clock; it ends with the program.
    pub fn start(kicker: Kicker) -> std::io::Result<Self> {
        let in_place = std::io::stderr().is_terminal();
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
        Ok(Self { due, in_place, shown: false })
    }

    /// Shows the line if it is time.
    pub fn show(&mut self, vm: &dyn MachineVm, started: Instant) {
        if !self.due.swap(false, Ordering::Acquire) {
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
        let mut stderr = std::io::stderr().lock();
        let _ = if self.in_place { write!(stderr, "\r\x1b[K{line}") } else { writeln!(stderr, "{line}") };
        let _ = stderr.flush();
        self.shown = true;
    }

    /// Wipes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) && self.in_place {
            eprint!("\r\x1b[K");
        }
    }
}
