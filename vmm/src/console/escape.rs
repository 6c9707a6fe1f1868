//! The escape key: Ctrl-], then one letter.

const ESCAPE: u8 = 0x1d;

/// What the user asks of the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Quit,
    Statistics,
    Help,
}

/// Typed bytes, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    ForGuest(Vec<u8>),
    Command(Command),
}

/// Separates commands from input; remembers an escape key across reads.
#[derive(Debug, Default)]
pub struct EscapeFilter {
    escaped: bool,
}

impl EscapeFilter {
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let mut typed = Vec::new();
        let mut plain = Vec::new();
        for &byte in bytes {
            if !std::mem::take(&mut self.escaped) {
                if byte == ESCAPE {
                    self.escaped = true;
                } else {
                    plain.push(byte);
                }
                continue;
            }
            let command = match byte {
                b'q' | b'Q' => Command::Quit,
                b's' | b'S' => Command::Statistics,
                ESCAPE => {
                    plain.push(ESCAPE);
                    continue;
                }
                _ => Command::Help,
            };
            if !plain.is_empty() {
                typed.push(Typed::ForGuest(std::mem::take(&mut plain)));
            }
            typed.push(Typed::Command(command));
        }
        if !plain.is_empty() {
            typed.push(Typed::ForGuest(plain));
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_taken_out_in_order_also_across_reads() {
        let mut filter = EscapeFilter::default();
        assert_eq!(filter.feed(b"ab\x1d"), [Typed::ForGuest(b"ab".to_vec())]);
        assert_eq!(
            filter.feed(b"scd\x1dq"),
            [
                Typed::Command(Command::Statistics),
                Typed::ForGuest(b"cd".to_vec()),
                Typed::Command(Command::Quit)
            ]
        );
    }

    #[test]
    fn the_escape_key_twice_goes_to_the_guest_and_unknown_letters_help() {
        let mut filter = EscapeFilter::default();
        assert_eq!(filter.feed(b"\x1d\x1dx"), [Typed::ForGuest(b"\x1dx".to_vec())]);
        assert_eq!(filter.feed(b"\x1dz"), [Typed::Command(Command::Help)]);
        assert_eq!(filter.feed(b"\x03"), [Typed::ForGuest(vec![3])], "Ctrl-C is the guest's");
    }
}
