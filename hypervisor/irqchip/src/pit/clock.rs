//! The clock of the counters: 14.31818 MHz / 12.

/// 14_318_180 / 12 = 3_579_545 / 3 ticks a second.
const NUMERATOR: u128 = 3_579_545;
const DENOMINATOR: u128 = 3 * 1_000_000_000;

/// Whole ticks of the clock by an instant.
#[must_use]
pub fn tick_at(ns: u64) -> u64 {
    // tick = floor(ns * f / 1e9); less than ns, so that it fits.
    (u128::from(ns) * NUMERATOR / DENOMINATOR) as u64
}

/// The first nanosecond at which [`tick_at`] gives this tick; the largest value if that is beyond it.
#[must_use]
pub fn ns_of_tick(tick: u64) -> u64 {
    // ns = ceil(tick * 1e9 / f)
    u64::try_from((u128::from(tick) * DENOMINATOR).div_ceil(NUMERATOR)).unwrap_or(u64::MAX)
}
