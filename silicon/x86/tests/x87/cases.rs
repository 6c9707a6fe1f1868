//! States to start from: the same on every run.

use silicon_float::x87::F80;

use crate::state::{OPERAND, State};

/// A generator of states (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A register: any kind of number, often near one another.
    fn register(&mut self) -> F80 {
        let sign = (self.next() as u16) & 0x8000;
        let significand = match self.below(4) {
            0 => 1 << 63,
            1 => u64::MAX << self.below(64) | 1 << 63,
            _ => self.next() | 1 << 63,
        };
        let (exponent, significand) = match self.below(16) {
            0 => (0, 0),
            1 => (0x7fff, 1 << 63),
            2 => (0x7fff, significand | 3 << 62),
            3 => (0x7fff, (significand | 1) & !(1 << 62)),
            4 => (0, significand & !(1 << 63)),
            5 => (self.next() as u16 & 0x7fff, self.next()),
            6 => (*self.pick(&[1, 2, 0x7ffe, 0x7ffd, 0x3f81, 0x3c01, 0x407f, 0x43ff]), significand),
            7 | 8 => (0x3fff + self.below(70) as u16, significand),
            9 => (self.next() as u16 % 0x7ffe + 1, significand),
            _ => (0x3ff0 + self.below(32) as u16, significand),
        };
        F80 { significand, sign_exponent: sign | exponent }
    }

    fn memory(&mut self) -> [u8; OPERAND] {
        let mut memory = [0; OPERAND];
        for chunk in memory.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes());
        }
        let first: Vec<u8> = match self.below(8) {
            0 => self.register().to_bytes().to_vec(),
            1 => f64::from_bits(self.next() & !(0x7ff << 52) | (0x3f0 + self.next() % 32) << 52).to_le_bytes().to_vec(),
            2 => f32::from_bits(self.next() as u32 & !(0xff << 23) | (0x70 + self.next() as u32 % 32) << 23)
                .to_le_bytes()
                .to_vec(),
            3 => (self.next() & 0x8000_0000_0000_0000 | 0x7ff << 52 | self.next() >> self.below(63))
                .to_le_bytes()
                .to_vec(),
            4 => (self.next() as u32 & 0x8000_0000 | 0xff << 23 | (self.next() >> 41) as u32).to_le_bytes().to_vec(),
            5 => (self.next() & 0x8000_7fff_8000_7fff).to_le_bytes().to_vec(),
            // Ten bytes of decimal digits and a sign.
            6 => (0..10)
                .map(|i| if i == 9 { self.next() as u8 & 0x80 } else { (self.below(10) << 4 | self.below(10)) as u8 })
                .collect(),
            _ => vec![0; self.below(11)],
        };
        memory[..first.len()].copy_from_slice(&first);
        memory
    }

    /// A state without a pending exception.
    pub fn state(&mut self) -> State {
        let fcw = match self.below(3) {
            0 => 0x037f,
            1 => 0x007f | self.next() as u16 & 0x0f00,
            _ => 0x0040 | self.next() as u16 & 0x0f3f,
        };
        // The reserved precision is left alone.
        let fcw = if fcw & 0x300 == 0x100 { fcw | 0x200 } else { fcw };
        let fsw = self.next() as u16 & 0x7f7f & (!0x3f | fcw);
        let ftw = if self.below(2) == 0 {
            self.next() as u8
        } else {
            self.next() as u8 | self.next() as u8 | self.next() as u8
        };
        State {
            stack: std::array::from_fn(|_| self.register()),
            fcw,
            fsw,
            ftw,
            fop: 0,
            fip: 0,
            rflags: 0x202 | self.next() & 0x8d5,
            rax: self.next(),
            memory: self.memory(),
        }
    }
}
