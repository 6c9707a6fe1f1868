//! A session at a terminal: typing reaches the guest, the escape key the monitor, and the terminal is left as found.

use std::time::Instant;

use guest_bare::{Mode, case, console};

use crate::program::{PROMPT, bare, debian};
use crate::pty::Terminal;

const ESCAPE: u8 = 0x1d;
const USER_QUIT: i32 = 16;
const SIGNAL: i32 = 130;

fn spinning_guest() -> Vec<u8> {
    case(Mode::Long64, |a| {
        let mut here = a.create_label();
        console::print(a, "running\n")?;
        a.cli()?;
        a.set_label(&mut here)?;
        a.jmp(here)
    })
    .expect("a case that can be encoded")
}

#[test]
fn a_shell_in_the_guest_answers_and_the_escape_key_shows_statistics_and_quits() {
    let program = debian("6.12", "gv.shell").args("--time real");
    let (mut terminal, before) = Terminal::start(&program);
    terminal.screen.wait_for("BusyBox shell;");
    terminal.type_in(b"echo answer-$((6 * 7))\r");
    terminal.screen.wait_for("answer-42");
    terminal.type_in(&[ESCAPE, b's']);
    terminal.screen.wait_for("MIPS (host)");
    terminal.type_in(&[ESCAPE, b'?']);
    terminal.screen.wait_for("Ctrl-] then:");
    assert_ne!(terminal.modes(), before, "keys went through line editing");
    terminal.type_in(b"echo still-$((2 + 3))\r");
    terminal.screen.wait_for("still-5");
    terminal.type_in(&[ESCAPE, b'q']);
    let (status, screen) = terminal.end();
    assert_eq!(status, USER_QUIT, "{screen}");
    assert_eq!(terminal.modes(), before);
}

#[test]
fn the_escape_key_quits_a_guest_that_listens_to_nothing_and_ctrl_c_is_the_guests() {
    let (mut terminal, before) = Terminal::start(&bare("console-spin", &spinning_guest()));
    terminal.screen.wait_for("running");
    terminal.screen.wait_for("Ctrl-] then q quits");
    terminal.type_in(&[0x03]);
    terminal.type_in(&[ESCAPE, b's']);
    terminal.screen.wait_for("VM-exits (counted)");
    let asked = Instant::now();
    terminal.type_in(&[ESCAPE, b'q']);
    let (status, screen) = terminal.end();
    assert_eq!(status, USER_QUIT, "{screen}");
    assert!(screen.contains("escape key"), "{screen}");
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    assert_eq!(terminal.modes(), before);
}

#[test]
fn the_terminal_is_restored_after_a_signal() {
    let (mut terminal, before) = Terminal::start(&bare("console-signal", &spinning_guest()));
    terminal.screen.wait_for("running");
    assert_ne!(terminal.modes(), before);
    terminal.terminate();
    let (status, screen) = terminal.end();
    assert_eq!(status, SIGNAL, "{screen}");
    assert_eq!(terminal.modes(), before);
}
