//! A pseudo-terminal with `glassvisor` on it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, tcgetattr};

use crate::program::{Collected, Glassvisor, signal, wait};

pub struct Terminal {
    keyboard: File,
    /// Keeps the terminal open, and shows its modes.
    line: OwnedFd,
    pub screen: Collected,
    child: Child,
}

/// The modes that a program could leave behind.
#[derive(Debug, PartialEq)]
pub struct Modes {
    local: rustix::termios::LocalModes,
    input: rustix::termios::InputModes,
    output: rustix::termios::OutputModes,
}

fn modes(terminal: &OwnedFd) -> Modes {
    let Termios { local_modes, input_modes, output_modes, .. } = tcgetattr(terminal).expect("a terminal");
    Modes { local: local_modes, input: input_modes, output: output_modes }
}

impl Terminal {
    /// Starts the program with the terminal as input, output and messages; gives the modes from before.
    pub fn start(program: &Glassvisor) -> (Self, Modes) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("a terminal of ours");
        unlockpt(&master).expect("a terminal of ours");
        let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("plain characters");
        let open = || OpenOptions::new().read(true).write(true).open(&name).expect("the terminal's other end");
        let line = OwnedFd::from(open());
        let before = modes(&line);
        let child = program
            .command()
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .expect("the program can be started");
        let keyboard = File::from(master);
        let screen = Collected::start(keyboard.try_clone().expect("another handle"));
        (Self { keyboard, line, screen, child }, before)
    }

    pub fn type_in(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal takes keys");
    }

    pub fn modes(&self) -> Modes {
        modes(&self.line)
    }

    pub fn terminate(&self) {
        signal(&self.child, rustix::process::Signal::TERM);
    }

    /// Exit status, and what is on the screen by then.
    pub fn end(&mut self) -> (i32, String) {
        let status = wait(&mut self.child);
        // What was written last may still be on its way to the reader.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let screen = self.screen.so_far();
        assert!(!screen.contains("panicked"), "{screen}");
        (status.unwrap_or_else(|| panic!("it does not end by itself:\n{screen}")), screen)
    }
}
