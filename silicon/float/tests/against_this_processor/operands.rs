//! Seeded random operands, weighted towards what is special.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A fraction of `bits` bits: random, sparse, near all zeros or near all ones.
    pub fn fraction(&mut self, bits: u32) -> u64 {
        let mask = (1u64 << bits) - 1;
        let value = match self.below(8) {
            0 => 0,
            1 => self.below(4),
            2 => mask - self.below(4),
            3 => 1 << self.below(u64::from(bits)),
            4 => mask << self.below(u64::from(bits)),
            5 => self.next() & self.next() & self.next() & self.next(),
            _ => self.next(),
        };
        value & mask
    }

    /// A pattern of a format with `fraction_bits` and `exponent_bits`.
    pub fn float(&mut self, fraction_bits: u32, exponent_bits: u32) -> u64 {
        let top = (1u64 << exponent_bits) - 1;
        let bias = top >> 1;
        let exponent = match self.below(16) {
            0 | 1 => 0,
            2 => top,
            3 => 1 + self.below(4),
            4 => top - 1 - self.below(4),
            5 | 6 => self.below(top),
            7 => bias / 2 + self.below(64),
            8 => bias + bias / 2 - self.below(64),
            9..=11 => bias + self.below(70),
            _ => bias - 3 + self.below(6),
        };
        let sign = self.below(2) << (fraction_bits + exponent_bits);
        sign | exponent << fraction_bits | self.fraction(fraction_bits)
    }

    pub fn f32(&mut self) -> u32 {
        self.float(23, 8) as u32
    }

    pub fn f64(&mut self) -> u64 {
        self.float(52, 11)
    }

    /// Often close to `a`, so that sums cancel.
    pub fn f32_near(&mut self, a: u32) -> u32 {
        if self.below(4) == 0 {
            a.wrapping_add(self.below(9) as u32).wrapping_sub(4) ^ (self.next() as u32 & 1) << 31
        } else {
            self.f32()
        }
    }

    pub fn f64_near(&mut self, a: u64) -> u64 {
        if self.below(4) == 0 { a.wrapping_add(self.below(9)).wrapping_sub(4) ^ self.next() << 63 } else { self.f64() }
    }
}

use silicon_float::F80;

impl Random {
    /// Any encoding of the double extended format, the unsupported ones included.
    pub fn f80(&mut self) -> F80 {
        let pattern = self.fraction(62);
        let integer = u64::from(self.below(16) != 0) << 63;
        let quiet = self.below(2) << 62;
        let field = match self.below(20) {
            0 | 1 => 0,
            2 => 0x7fff,
            3 => 1 + self.below(70),
            4 => 0x7ffe - self.below(4),
            5 => self.below(0x7fff),
            6 => 0x1fff + self.below(64),
            7 => 0x5fff - self.below(64),
            8 => 0x3fff - 1075 + self.below(60),
            9 => 0x3fff + 1020 + self.below(6),
            10 => 0x3fff - 150 + self.below(30),
            11 => 0x3fff + 125 + self.below(5),
            12..=15 => 0x3fff + self.below(70),
            _ => 0x3fff - 3 + self.below(6),
        } as u16;
        let sign = (self.below(2) as u16) << 15;
        let integer = if field == 0 && self.below(3) != 0 { 0 } else { integer };
        match self.below(12) {
            0 => F80 { significand: 0, sign_exponent: sign },
            1 => F80 { significand: 1 << 63, sign_exponent: sign | field },
            _ => F80 { significand: integer | quiet | pattern, sign_exponent: sign | field },
        }
    }

    /// Often close to `a`, so that differences cancel.
    pub fn f80_near(&mut self, a: F80) -> F80 {
        if self.below(4) == 0 {
            F80 {
                significand: a.significand.wrapping_add(self.below(9)).wrapping_sub(4),
                sign_exponent: a.sign_exponent ^ (self.below(2) as u16) << 15,
            }
        } else {
            self.f80()
        }
    }
}
