//! The 8254 programmable interval timer of a PC, and port 0x61.
//!
//! Counters are functions of time: a counter keeps the tick at which its count was loaded, and its output and count
//! follow from that.
//!
//! Source: 8254 Programmable Interval Timer data sheet.

mod clock;
mod counter;
mod ports;
mod waveform;

pub use clock::{ns_of_tick, tick_at};
pub use counter::{Counter, CountingMode};

use crate::routing::Level;

/// The 8254.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pit {
    counters: [Counter; 3],
    /// Bit 1 of port 0x61: the speaker listens to counter 2.
    speaker: Level,
    /// Edges of counter 0 up to this tick have been reported.
    reported_tick: u64,
}

impl Default for Pit {
    fn default() -> Self {
        Self {
            counters: [
                Counter::new(Level::High),
                Counter::new(Level::High),
                Counter::new(Level::Low),
            ],
            speaker: Level::Low,
            reported_tick: 0,
        }
    }
}

impl Pit {
    /// A counter, for inspection: 0 to 2.
    #[must_use]
    pub fn counter(&self, index: usize) -> Option<&Counter> {
        self.counters.get(index)
    }

    /// When the output of counter 0 rises next, in nanoseconds: the first edge that
    /// [`advance`](Self::advance) has not reported, which may lie in the past.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        self.counters[0]
            .rising_edge_after(self.reported_tick)
            .map(ns_of_tick)
    }

    /// How often the output of counter 0 rose since the last call, up to `now_ns`.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        let to = tick_at(now_ns);
        if to <= self.reported_tick {
            return 0;
        }
        let from = std::mem::replace(&mut self.reported_tick, to);
        self.counters[0].count_rising_edges(from, to)
    }
}
