//! The parent's end of the child process.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;

use super::case::Slot;
use super::shared::{SLOTS, Shared};

/// Tells the test binary that it is the child: the descriptor of the shared memory.
pub const VARIABLE: &str = "GLASSVISOR_NATIVE_CASES";
/// The test that the child runs.
pub const TEST: &str = "child_process_executes_cases";

pub struct Executor {
    shared: Shared,
    process: Option<(Child, ChildStdin, ChildStdout)>,
}

impl Executor {
    pub fn new() -> Self {
        Self { shared: Shared::create(), process: None }
    }

    /// Hands a batch to the child, which goes to work; [`Executor::finish`] gives the results.
    pub fn begin(&mut self, cases: &[Slot]) {
        assert!(cases.len() <= SLOTS);
        for (i, case) in cases.iter().enumerate() {
            // SAFETY: the child is idle.
            unsafe { self.shared.slot(i).write(case.clone()) };
        }
        self.command(0, cases.len() as u32);
    }

    /// Waits for the batch. Gives the cases that the child did not survive.
    pub fn finish(&mut self, cases: &mut [Slot]) -> Vec<usize> {
        let mut died = Vec::new();
        while let Err(status) = self.wait() {
            let at = self.shared.progress().load(Ordering::SeqCst) as usize;
            assert!(died.last() != Some(&at), "the child does not start: {status}");
            eprintln!("the child process ended with {status} at {:02x?}", cases[at].bytes());
            died.push(at);
            if at + 1 == cases.len() {
                break;
            }
            self.command(at as u32 + 1, (cases.len() - at - 1) as u32);
        }
        for (i, case) in cases.iter_mut().enumerate() {
            // SAFETY: the child is idle or gone.
            *case = unsafe { (*self.shared.slot(i)).clone() };
        }
        died
    }

    fn command(&mut self, first: u32, count: u32) {
        if self.process.is_none() {
            let program = std::env::current_exe().expect("the test knows its own path");
            let mut child = Command::new(program)
                .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
                .env(VARIABLE, self.shared.descriptor().to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the test starts itself");
            let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
            self.process = Some((child, input, output));
        }
        let (_, input, _) = self.process.as_mut().expect("just started");
        let bytes = [first.to_le_bytes(), count.to_le_bytes()].concat();
        // A child that is gone shows when its answer is read.
        let _ = input.write_all(&bytes);
    }

    /// Waits for the byte that says "done"; what the test harness prints before it is skipped.
    fn wait(&mut self) -> Result<(), String> {
        let (child, _, output) = self.process.as_mut().expect("a command was given");
        let mut byte = [0];
        while output.read(&mut byte).is_ok_and(|n| n == 1) {
            if byte == [1] {
                return Ok(());
            }
        }
        let status = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        self.process = None;
        Err(status)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some((mut child, input, output)) = self.process.take() {
            drop((input, output));
            let _ = child.wait();
        }
    }
}
