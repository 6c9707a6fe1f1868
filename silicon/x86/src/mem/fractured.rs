//! Pages that the TLB holds in pieces: larger than its large pages, or large in the guest's tables and small in EPT
//! ("Use of the TLBs with Large Pages"). Invalidating one address of such a page must reach all its pieces.

use std::collections::HashSet;

/// More are not remembered: all caches are cleared then, and the memory of the pieces with them.
const MOST: usize = 4096;
/// Sizes of pages that may be in pieces: 2 MiB, 4 MiB, 1 GiB.
const SHIFTS: [u32; 3] = [21, 22, 30];

/// What becomes of a page that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    Done,
    /// There are too many: clear every cache.
    Overflow,
}

/// The pages in pieces, in whatever context: linear address and size.
#[derive(Debug, Default)]
pub struct Fractured {
    pages: HashSet<u64>,
}

fn key(linear: u64, shift: u32) -> u64 {
    (linear >> shift << shift) | u64::from(shift)
}

impl Fractured {
    /// A piece of the page of `1 << shift` bytes at `linear` is going to be cached.
    pub fn note(&mut self, linear: u64, shift: u32) -> Noted {
        if !self.pages.insert(key(linear, shift)) || self.pages.len() <= MOST {
            return Noted::Done;
        }
        self.pages.clear();
        self.pages.insert(key(linear, shift));
        Noted::Overflow
    }

    /// Whether pieces of a page that holds `linear` may be cached.
    #[must_use]
    pub fn covers(&self, linear: u64) -> bool {
        !self.pages.is_empty() && SHIFTS.iter().any(|&shift| self.pages.contains(&key(linear, shift)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_covers_its_addresses_until_there_are_too_many() {
        let mut f = Fractured::default();
        assert_eq!(f.note(0x4040_1000, 30), Noted::Done);
        assert!(f.covers(0x7fff_f000) && !f.covers(0x8000_0000));
        for i in 0..MOST as u64 - 1 {
            assert_eq!(f.note(1 << 40 | i << 21, 21), Noted::Done);
        }
        assert_eq!(f.note(1 << 41, 22), Noted::Overflow);
        assert!(f.covers(1 << 41) && !f.covers(0x4040_1000));
    }
}
