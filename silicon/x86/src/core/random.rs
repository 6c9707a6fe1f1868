//! The generator behind RDRAND and RDSEED: deterministic, so that a run is a function of its inputs.

/// SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators").
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose values follow from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_values_and_different_seeds_do_not() {
        let (mut a, mut b, mut c) = (Random::new(1), Random::new(1), Random::new(2));
        let first: Vec<u64> = (0..8).map(|_| a.next()).collect();
        assert_eq!(first, (0..8).map(|_| b.next()).collect::<Vec<_>>());
        assert_ne!(first, (0..8).map(|_| c.next()).collect::<Vec<_>>());
    }
}
