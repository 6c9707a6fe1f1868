//! The ports: 0x20 and 0x21, 0xa0 and 0xa1, and the edge/level control registers at 0x4d0 and 0x4d1.

use super::{CASCADE, EndedPins, Pic};

impl Pic {
    /// Whether the port belongs to the pair.
    #[must_use]
    pub const fn owns_port(port: u16) -> bool {
        matches!(port, 0x20 | 0x21 | 0xa0 | 0xa1 | 0x4d0 | 0x4d1)
    }

    /// Read a byte; a poll acknowledges the interrupt that it reports.
    pub fn port_read(&mut self, port: u16) -> (u8, EndedPins) {
        let index = usize::from(port & 0x80 != 0);
        let value = match port {
            0x20 | 0xa0 | 0x21 | 0xa1 if self.controllers[index].take_poll() => {
                return self.poll(index);
            }
            0x20 | 0xa0 => self.controllers[index].read_command(),
            0x21 | 0xa1 => self.controllers[index].imr(),
            0x4d0 => self.controllers[0].elcr(),
            0x4d1 => self.controllers[1].elcr(),
            _ => 0xff,
        };
        (value, EndedPins::default())
    }

    /// Bit 7 says that there is one, bits 2:0 which.
    fn poll(&mut self, index: usize) -> (u8, EndedPins) {
        let cascade = (index == 0).then_some(CASCADE);
        let Some(input) = self.controllers[index].pending(cascade) else {
            return (0, EndedPins::default());
        };
        let ended = self.controllers[index].acknowledge(input);
        self.cascade();
        (0x80 | input, EndedPins(u16::from(ended) << (8 * index)))
    }

    /// Write a byte.
    pub fn port_write(&mut self, port: u16, value: u8) -> EndedPins {
        let index = usize::from(port & 0x80 != 0);
        let mut ended = 0;
        match port {
            0x20 | 0xa0 => ended = self.controllers[index].write_command(value),
            0x21 | 0xa1 => self.controllers[index].write_data(value),
            0x4d0 => self.controllers[0].set_elcr(value),
            0x4d1 => self.controllers[1].set_elcr(value),
            _ => {}
        }
        self.cascade();
        EndedPins(u16::from(ended) << (8 * index))
    }
}
