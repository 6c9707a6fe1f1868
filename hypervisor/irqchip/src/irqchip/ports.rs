//! Port accesses.

use super::{Claim, Irqchip};
use crate::now::Now;
use crate::pic::Pic;
use crate::pit::Pit;

const COUNTER_0: u16 = 0x40;

impl Irqchip {
    /// Whether the port is one of the 8259 pair's or the 8254's, or 0x61.
    #[must_use]
    pub const fn owns_port(port: u16) -> bool {
        Pic::owns_port(port) || Pit::owns_port(port)
    }

    /// A vCPU reads ports from `port` on, a byte each. Bytes of ports that are not here read as 0xff.
    pub fn port_read(&mut self, port: u16, data: &mut [u8], now: Now) -> Claim {
        if !Self::owns_port(port) {
            return Claim::Foreign;
        }
        for (byte, port) in data.iter_mut().zip(port..) {
            *byte = if Pic::owns_port(port) {
                let (value, ended) = self.pic.port_read(port);
                self.pic_ended(ended);
                self.follow_pic_output();
                value
            } else if Pit::owns_port(port) {
                self.pit.port_read(port, now.vm_ns)
            } else {
                0xff
            };
        }
        Claim::Claimed
    }

    /// A vCPU writes ports from `port` on, a byte each.
    pub fn port_write(&mut self, port: u16, data: &[u8], now: Now) -> Claim {
        if !Self::owns_port(port) {
            return Claim::Foreign;
        }
        for (byte, port) in data.iter().zip(port..) {
            if Pic::owns_port(port) {
                let listeners = self.tick_listeners();
                let ended = self.pic.port_write(port, *byte);
                self.follow_tick_listeners(listeners);
                self.pic_ended(ended);
                self.follow_pic_output();
            } else if Pit::owns_port(port) {
                // Ticks up to now belong to the old count.
                self.advance(now);
                self.pit.port_write(port, *byte, now.vm_ns);
                if port == COUNTER_0 {
                    self.forget_ticks();
                }
            }
        }
        Claim::Claimed
    }
}
