//! COM1: a 16550A by `vm-superio`, with a queue for input that does not fit its FIFO yet.

use std::collections::VecDeque;
use std::io::Write;

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};
use vm_superio::Serial;
use vm_superio::serial::NoEvents;

use super::COM1_GSI;
use super::lines::{IrqLines, Line};

/// Offset of the data register.
const DATA: u16 = 0;

/// The first serial port.
pub struct Com1 {
    uart: Serial<Line, NoEvents, Box<dyn Write + Send>>,
    waiting: VecDeque<u8>,
}

impl Com1 {
    /// A port that sends to `out`.
    pub fn new(lines: &IrqLines, out: Box<dyn Write + Send>) -> Self {
        Self { uart: Serial::new(lines.line(COM1_GSI), out), waiting: VecDeque::new() }
    }

    /// Bytes from the terminal: into the FIFO as far as they fit, the rest as the guest reads.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        self.refill();
    }

    fn refill(&mut self) {
        while !self.waiting.is_empty() && self.uart.fifo_capacity() > 0 {
            let (front, _) = self.waiting.as_slices();
            match self.uart.enqueue_raw_bytes(front) {
                // Zero in loopback mode: the driver probes; input waits.
                Ok(0) | Err(_) => return,
                Ok(taken) => drop(self.waiting.drain(..taken)),
            }
        }
    }
}

impl MutDevicePio for Com1 {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        for byte in data {
            *byte = self.uart.read(offset as u8);
        }
        if offset == DATA {
            self.refill();
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        for &byte in data {
            // Only writing to the terminal can fail; the line would be closed, and a UART does not notice.
            let _ = self.uart.write(offset as u8, byte);
        }
        if !self.waiting.is_empty() {
            self.refill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Screen;

    #[test]
    fn output_reaches_the_screen_also_from_string_instructions() {
        let screen = Screen::default();
        let mut com1 = Com1::new(&IrqLines::default(), Box::new(screen.clone()));
        com1.pio_write(PioAddress(0x3f8), 0, b"hello");
        assert_eq!(*screen.0.lock().unwrap(), b"hello");
    }

    #[test]
    fn input_longer_than_the_fifo_arrives_whole_with_interrupts() {
        let lines = IrqLines::default();
        let mut com1 = Com1::new(&lines, Box::new(std::io::sink()));
        com1.pio_write(PioAddress(0x3f8), 1, &[1]);
        lines.take();
        let sent: Vec<u8> = (0..200).collect();
        com1.receive(&sent);
        assert_eq!(lines.take().len(), 2);
        let mut got = Vec::new();
        loop {
            let mut status = [0];
            com1.pio_read(PioAddress(0x3f8), 5, &mut status);
            if status[0] & 1 == 0 {
                break;
            }
            let mut byte = [0];
            com1.pio_read(PioAddress(0x3f8), 0, &mut byte);
            got.push(byte[0]);
        }
        assert_eq!(got, sent);
    }

    #[test]
    fn writing_to_a_closed_terminal_does_not_stop_the_guest() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut com1 = Com1::new(&IrqLines::default(), Box::new(Closed));
        com1.pio_write(PioAddress(0x3f8), 0, b"x");
    }
}
