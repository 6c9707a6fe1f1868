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
    /// The counters have been brought up to this tick.
    settled_tick: u64,
    /// Rising edges of counter 0 up to then that [`Pit::advance`] has not reported.
    unreported_edges: u64,
}

impl Default for Pit {
    fn default() -> Self {
        Self {
            counters: [Counter::new(Level::High), Counter::new(Level::High), Counter::new(Level::Low)],
            speaker: Level::Low,
            settled_tick: 0,
            unreported_edges: 0,
        }
    }
}

impl Pit {
    /// A counter, for inspection: 0 to 2.
    #[must_use]
    pub fn counter(&self, index: usize) -> Option<&Counter> {
        self.counters.get(index)
    }

    /// When the output of counter 0 rises next, in nanoseconds: the first edge that [`advance`](Self::advance) has not
    /// reported, which may lie in the past.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        if self.unreported_edges > 0 {
            return Some(ns_of_tick(self.settled_tick));
        }
        self.counters[0].rising_edge_after(self.settled_tick).map(ns_of_tick)
    }

    /// How often the output of counter 0 rose since the last call, up to `now_ns`.
    pub fn advance(&mut self, now_ns: u64) -> u64 {
        self.settle(tick_at(now_ns));
        std::mem::take(&mut self.unreported_edges)
    }

    /// Bring all counters up to a tick, and return it; time does not run backwards here.
    fn settle(&mut self, tick: u64) -> u64 {
        let from = self.settled_tick;
        if tick > from {
            let edges = self.counters[0].count_rising_edges(from, tick);
            self.unreported_edges = self.unreported_edges.saturating_add(edges);
            self.settled_tick = tick;
            for counter in &mut self.counters {
                counter.settle(tick);
            }
        }
        self.settled_tick
    }
}
