//! Count and output of a counter as functions of the tick.
//!
//! Source: 8254 data sheet, "Mode Definitions".

use super::counter::{Counter, CountingMode, Progress};
use crate::routing::Level;

impl Counter {
    /// Ticks since the count was loaded; none if it was not, or will be with the next tick.
    fn elapsed(&self, tick: u64) -> Option<u64> {
        match self.progress {
            Progress::Idle => None,
            Progress::Running { since } => tick.checked_sub(since),
            Progress::Paused { elapsed } => Some(elapsed),
        }
    }

    /// Bring a periodic count to the cycle that runs at `tick`; a new count takes over at the end of the cycle in which
    /// it was written. Called before any change, so that `since` is then the start of the current cycle.
    pub(super) fn settle(&mut self, tick: u64) {
        let Progress::Running { mut since } = self.progress else {
            return;
        };
        if !self.mode.is_periodic() {
            return;
        }
        if let Some(next) = self.next_reload {
            let end = since.saturating_add(u64::from(self.reload));
            if tick >= end {
                self.reload = next;
                self.next_reload = None;
                since = end;
            }
        }
        if let Some(elapsed) = tick.checked_sub(since) {
            let reload = u64::from(self.reload);
            since += elapsed / reload * reload;
        }
        self.progress = Progress::Running { since };
    }

    /// The counting element at `tick`.
    pub(super) fn count(&self, tick: u64) -> u32 {
        let reload = u64::from(self.reload);
        let Some(elapsed) = self.elapsed(tick) else {
            return self.reload;
        };
        let count = match self.mode {
            CountingMode::RateGenerator => reload - elapsed % reload,
            CountingMode::SquareWave => {
                let phase = elapsed % reload;
                let high = reload.div_ceil(2);
                let within = if phase < high { phase } else { phase - high };
                (reload & !1).saturating_sub(2 * within)
            }
            // These go on below 0, and wrap.
            _ => {
                let modulus = self.modulus();
                (reload % modulus + modulus - elapsed % modulus) % modulus
            }
        };
        count as u32
    }

    /// The output pin at `tick`.
    pub(super) fn output(&self, tick: u64) -> Level {
        let reload = u64::from(self.reload);
        let elapsed = self.elapsed(tick);
        let high = match (self.mode, elapsed) {
            (CountingMode::InterruptOnTerminalCount, None) => false,
            (_, None) => true,
            (CountingMode::InterruptOnTerminalCount | CountingMode::OneShot, Some(elapsed)) => elapsed >= reload,
            (CountingMode::RateGenerator | CountingMode::SquareWave, Some(_)) if self.gate == Level::Low => true,
            (CountingMode::RateGenerator, Some(elapsed)) => elapsed % reload != reload - 1,
            (CountingMode::SquareWave, Some(elapsed)) => elapsed % reload < reload.div_ceil(2),
            (CountingMode::SoftwareStrobe | CountingMode::HardwareStrobe, Some(elapsed)) => elapsed != reload,
        };
        if high { Level::High } else { Level::Low }
    }

    /// Ticks from the load to the rising edge: the first one, for periodic modes.
    fn ticks_to_edge(&self) -> u64 {
        let reload = u64::from(self.reload);
        match self.mode {
            CountingMode::SoftwareStrobe | CountingMode::HardwareStrobe => reload + 1,
            _ => reload,
        }
    }

    /// The first tick after `tick` at which the output rises. Edges that a control word makes are not counted: the chip
    /// may make one when it leaves mode 0, KVM does not interrupt for it.
    pub(super) fn rising_edge_after(&self, tick: u64) -> Option<u64> {
        let Progress::Running { since } = self.progress else {
            return None;
        };
        let first = since.saturating_add(self.ticks_to_edge());
        if tick < first {
            return Some(first);
        }
        if !self.mode.is_periodic() {
            return None;
        }
        match self.next_reload {
            // The edge at `first` has passed, and with it the old count.
            Some(next) => {
                let next = u64::from(next);
                Some(first + ((tick - first) / next + 1) * next)
            }
            None => {
                let reload = u64::from(self.reload);
                Some(since + ((tick - since) / reload + 1) * reload)
            }
        }
    }

    /// Rising edges after tick `from` up to and with tick `to`.
    pub(super) fn count_rising_edges(&self, from: u64, to: u64) -> u64 {
        let mut edges = 0;
        if let Some(edge) = self.rising_edge_after(from).filter(|edge| *edge <= to) {
            edges = 1;
            if self.mode.is_periodic() {
                let period = u64::from(self.next_reload.unwrap_or(self.reload));
                edges += (to - edge) / period;
            }
        }
        edges
    }

    fn modulus(&self) -> u64 {
        if self.is_bcd() { 10_000 } else { 0x1_0000 }
    }
}
