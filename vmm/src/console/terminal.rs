//! Raw mode, and the way back from it however the program ends.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The modes to go back to. Global, as a panic hook has nothing else to go by.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Puts the terminal back as it was found; for ends that no destructor sees.
pub fn restore_terminal() {
    if let Some(modes) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // Nothing can be done when the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Standard input in raw mode for as long as this lives.
pub struct RawTerminal(());

impl RawTerminal {
    /// Turns line editing, echo, signals and flow control off, if standard input is a terminal; keys then reach the
    /// guest as they are. Output processing stays on, so that messages of our own look right.
    pub fn enter() -> io::Result<Option<Self>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let modes = tcgetattr(io::stdin())?;
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore_terminal();
                before(info);
            }));
        });
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(modes.clone());
        let mut raw = modes;
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.input_modes.remove(
            InputModes::IXON | InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP,
        );
        let guard = Self(());
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Some(guard))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}
