//! The interactive serial console: raw terminal, escape key, and input from terminals and pipes.

mod escape;
mod input;
mod terminal;
mod text_screen;

pub use escape::{Command, EscapeFilter, Typed};
pub use input::InputThread;
pub use terminal::{RawTerminal, restore_terminal};
pub use text_screen::{TEXT_SCREEN, TEXT_SCREEN_COLUMNS, TEXT_SCREEN_LEN, text_of};

/// What the escape key offers.
pub const ESCAPE_HELP: &str = "\
Ctrl-] then:  q  quit      s  statistics so far
              ?  this help Ctrl-]  send Ctrl-] to the guest";
