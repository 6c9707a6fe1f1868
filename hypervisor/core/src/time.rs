//! The VM's clocks: all derive from the host TSC by pure arithmetic.
//!
//! With the host TSC at `base` when the VM was made, and `khz` ticks a millisecond:
//!
//! - VM time: `vm_ns = (tsc - base) * 10^6 / khz`
//! - guest TSC of a vCPU: `guest = tsc + offset` (mod 2^64)
//!
//! Worked example: `khz` = 2 100 000, `base` = 1 000; at TSC 2 101 000 the VM is 2 100 000 * 10^6 / 2 100 000 =
//! 1 000 000 ns old.

/// Nanoseconds in a TSC duration. Rounds down.
#[must_use]
pub fn ticks_to_ns(ticks: u64, khz: u64) -> u64 {
    (u128::from(ticks) * 1_000_000 / u128::from(khz.max(1))) as u64
}

/// TSC ticks that cover a duration: the first tick at which it is over. Rounds up.
#[must_use]
pub fn ns_to_ticks(ns: u64, khz: u64) -> u64 {
    (u128::from(ns) * u128::from(khz)).div_ceil(1_000_000) as u64
}

/// Origin and frequency of a VM's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VmClock {
    /// Host TSC when the VM was made.
    pub base: u64,
    pub khz: u64,
    /// Wall clock then, nanoseconds since 1970.
    pub wall_clock_ns: u64,
}

impl VmClock {
    /// VM time at a host TSC.
    #[must_use]
    pub fn vm_ns(&self, host_tsc: u64) -> u64 {
        ticks_to_ns(host_tsc.saturating_sub(self.base), self.khz)
    }

    /// Host TSC at a VM time.
    #[must_use]
    pub fn host_tsc(&self, vm_ns: u64) -> u64 {
        self.base.saturating_add(ns_to_ticks(vm_ns, self.khz))
    }
}

/// A kvmclock scale: `ns = (ticks << shift, or >> -shift) * multiplier >> 32` ("KVM-specific MSRs", pvclock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PvclockScale {
    pub multiplier: u32,
    pub shift: i8,
}

/// The scale that turns ticks of `khz` into nanoseconds: the ratio 10^6/khz, shifted into 0.5..1.
#[must_use]
pub fn pvclock_scale(khz: u64) -> PvclockScale {
    // ratio = 10^9 / (khz * 10^3) = multiplier / 2^32 * 2^shift
    let hz = u128::from(khz.max(1)) * 1000;
    let mut numerator: u128 = 1_000_000_000;
    let mut denominator = hz;
    let mut shift = 0_i8;
    while numerator >= denominator {
        denominator *= 2;
        shift += 1;
    }
    while numerator * 2 < denominator {
        numerator *= 2;
        shift -= 1;
    }
    PvclockScale { multiplier: ((numerator << 32) / denominator) as u32, shift }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(ticks: u64, scale: PvclockScale) -> u64 {
        let t = if scale.shift >= 0 { ticks << scale.shift } else { ticks >> -scale.shift };
        ((u128::from(t) * u128::from(scale.multiplier)) >> 32) as u64
    }

    #[test]
    fn pvclock_scales_are_right_to_one_part_in_a_billion() {
        for khz in [1_000, 999_999, 1_000_000, 1_000_001, 2_100_000, 3_700_000, 25_000, 19_200] {
            let scale = pvclock_scale(khz);
            let second = khz * 1000;
            let ns = scaled(second, scale);
            assert!(ns.abs_diff(1_000_000_000) <= 4, "{khz} kHz: {ns}");
        }
    }

    #[test]
    fn conversions_are_inverse_at_nanosecond_resolution() {
        for ns in [0, 1, 999, 1_000_000, 86_400_000_000_000] {
            assert_eq!(ticks_to_ns(ns_to_ticks(ns, 2_100_000), 2_100_000), ns);
        }
    }
}
