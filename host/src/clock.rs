use std::time::{Instant, SystemTime, UNIX_EPOCH};

use silicon_x86::core::Oscillator;

/// The host's monotonic clock as a counter of the modelled TSC's frequency.
#[derive(Debug)]
pub struct HostOscillator {
    start: Instant,
    khz: u64,
}

impl HostOscillator {
    /// A counter that starts at zero now and ticks at `khz`.
    #[must_use]
    pub fn new(khz: u64) -> Self {
        Self { start: Instant::now(), khz }
    }
}

impl Oscillator for HostOscillator {
    fn ticks(&self) -> u64 {
        // ticks = ns * khz / 10^6
        (self.start.elapsed().as_nanos() * u128::from(self.khz) / 1_000_000) as u64
    }
}

/// The host's `CLOCK_REALTIME`, in nanoseconds since 1970.
#[must_use]
pub fn wall_clock_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
