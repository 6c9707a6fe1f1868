//! Keys that are typed when the guest prints something: a dialogue with a boot menu in virtual time, where the guest
//! does not wait for a person and every run must be the same.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One step of the dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    prompt: Vec<u8>,
    keys: Vec<u8>,
}

impl std::str::FromStr for Answer {
    type Err = String;

    /// `PROMPT=KEYS`; in KEYS, `\e` is the escape key, `\r` Enter, `\t` Tab and `\\` a backslash.
    fn from_str(text: &str) -> Result<Self, String> {
        let (prompt, keys) =
            text.split_once('=').ok_or("write PROMPT=KEYS: what the guest prints, then what to type")?;
        if prompt.is_empty() {
            return Err("the prompt before '=' is empty: there is nothing to wait for".into());
        }
        let mut bytes = Vec::new();
        let mut rest = keys.chars();
        while let Some(char) = rest.next() {
            if char != '\\' {
                bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
                continue;
            }
            bytes.push(match rest.next() {
                Some('e') => 0x1b,
                Some('r') => b'\r',
                Some('n') => b'\n',
                Some('t') => b'\t',
                Some('\\') => b'\\',
                other => {
                    let shown = other.map_or(String::new(), String::from);
                    return Err(format!("'\\{shown}' is no key here: there are \\e \\r \\n \\t and \\\\"));
                }
            });
        }
        Ok(Self { prompt: prompt.as_bytes().to_vec(), keys: bytes })
    }
}

#[derive(Debug, Default)]
struct State {
    expected: VecDeque<Answer>,
    /// The last bytes printed, fewer than the prompt has.
    printed: Vec<u8>,
    due: Vec<u8>,
}

/// A dialogue: each answer is given once, in order.
#[derive(Clone, Debug, Default)]
pub struct Answers(Arc<Mutex<State>>);

impl Answers {
    pub fn new(answers: Vec<Answer>) -> Self {
        Self(Arc::new(Mutex::new(State { expected: answers.into(), ..Default::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what the guest printed.
    fn printed(&self, bytes: &[u8]) {
        let mut state = self.state();
        for &byte in bytes {
            let Some(next) = state.expected.front() else { return };
            let wanted = next.prompt.len();
            state.printed.push(byte);
            if state.printed.len() > wanted {
                state.printed.remove(0);
            }
            if state.expected.front().is_some_and(|next| next.prompt == state.printed)
                && let Some(answer) = state.expected.pop_front()
            {
                state.due.extend(answer.keys);
                state.printed.clear();
            }
        }
    }

    /// Keys to type now.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().due)
    }

    /// A writer that passes output on, and looks at it.
    pub fn watch<W: Write>(&self, out: W) -> Watched<W> {
        Watched { answers: self.clone(), out }
    }
}

/// See [`Answers::watch`].
pub struct Watched<W> {
    answers: Answers,
    out: W,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.printed(bytes);
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_each_once() {
        let answers = Answers::new(vec!["menu.=\\e".parse().unwrap(), "menu=2\\r".parse().unwrap()]);
        let mut out = Vec::new();
        let mut watched = answers.watch(&mut out);
        watched.write_all(b"boot me").unwrap();
        assert!(answers.take().is_empty());
        watched.write_all(b"nu. menu menu.").unwrap();
        assert_eq!(answers.take(), b"\x1b2\r");
        watched.write_all(b"menu.").unwrap();
        assert!(answers.take().is_empty());
        assert_eq!(out, b"boot menu. menu menu.menu.");
    }

    #[test]
    fn a_prompt_that_starts_again_within_itself_is_found() {
        let answers = Answers::new(vec!["aab=x".parse().unwrap()]);
        answers.watch(io::sink()).write_all(b"aaab").unwrap();
        assert_eq!(answers.take(), b"x");
    }

    #[test]
    fn what_cannot_be_typed_is_refused() {
        for bad in ["no equals sign", "=x", "a=\\q", "a=\\"] {
            assert!(bad.parse::<Answer>().is_err(), "{bad}");
        }
    }
}
