//! Ports 0x40 to 0x43 and 0x61.

use super::{Pit, tick_at};
use crate::routing::Level;

/// Bits 1:0 of port 0x61 that can be written.
const GATE: u8 = 1;
const SPEAKER: u8 = 2;

impl Pit {
    /// Whether the port belongs to the timer or is port 0x61.
    #[must_use]
    pub const fn owns_port(port: u16) -> bool {
        matches!(port, 0x40..=0x43 | 0x61)
    }

    /// Read a byte. The control port reads as 0.
    pub fn port_read(&mut self, port: u16, now_ns: u64) -> u8 {
        let tick = self.settle(tick_at(now_ns));
        match port {
            0x40..=0x42 => self.counters[usize::from(port - 0x40)].read(tick),
            0x61 => self.read_port_61(now_ns, tick),
            _ => 0,
        }
    }

    /// Write a byte. Edges of counter 0 before the write stay for [`Pit::advance`] to report.
    pub fn port_write(&mut self, port: u16, value: u8, now_ns: u64) {
        let tick = self.settle(tick_at(now_ns));
        match port {
            0x40..=0x42 => self.counters[usize::from(port - 0x40)].write(value, tick),
            0x43 => self.write_control(value, tick),
            0x61 => {
                let gate = if value & GATE != 0 { Level::High } else { Level::Low };
                self.counters[2].set_gate(gate, tick);
                self.speaker = if value & SPEAKER != 0 { Level::High } else { Level::Low };
            }
            _ => {}
        }
    }

    fn write_control(&mut self, value: u8, tick: u64) {
        let selected = value >> 6;
        if selected == 3 {
            // Read-back: bits 5 and 4 ask for count and status by being clear, bits 3:1 select counters.
            for (index, counter) in self.counters.iter_mut().enumerate() {
                if value & (2 << index) != 0 {
                    if value & 0x20 == 0 {
                        counter.latch_count(tick);
                    }
                    if value & 0x10 == 0 {
                        counter.latch_status(tick);
                    }
                }
            }
            return;
        }
        let counter = &mut self.counters[usize::from(selected)];
        if value & 0x30 == 0 {
            counter.latch_count(tick);
        } else {
            counter.write_control(value);
        }
    }

    /// Gate, speaker, the toggle that memory refresh makes (about every 15 microseconds; 16.4, as KVM has it), and the
    /// output of counter 2.
    fn read_port_61(&self, now_ns: u64, tick: u64) -> u8 {
        let counter = &self.counters[2];
        let bit = |level, shift: u8| u8::from(level == Level::High) << shift;
        bit(counter.gate, 0) | bit(self.speaker, 1) | ((now_ns >> 14) as u8 & 1) << 4 | bit(counter.output(tick), 5)
    }
}
