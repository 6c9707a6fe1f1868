//! The register stack: TOP and the tags ("The x87 FPU Data Registers").

use silicon_float::x87::{ControlWord, F80};

use crate::core::Fpu;

/// TOP in the status word.
pub const TOP_SHIFT: u16 = 11;

impl Fpu {
    /// The physical register that is ST(0).
    #[inline(always)]
    #[must_use]
    pub fn top(&self) -> u8 {
        (self.fsw >> TOP_SHIFT & 7) as u8
    }

    /// Makes physical register `top` (modulo 8) ST(0).
    #[inline(always)]
    pub fn set_top(&mut self, top: u8) {
        self.fsw = self.fsw & !(7 << TOP_SHIFT) | u16::from(top & 7) << TOP_SHIFT;
    }

    /// The physical register of ST(i).
    #[inline(always)]
    #[must_use]
    pub fn physical(&self, i: u8) -> u8 {
        self.top().wrapping_add(i) & 7
    }

    /// What ST(i) holds, if it is not empty.
    #[inline(always)]
    #[must_use]
    pub fn stack(&self, i: u8) -> Option<F80> {
        let r = self.physical(i);
        (self.ftw >> r & 1 != 0).then(|| self.st[usize::from(r)])
    }

    /// The bits of ST(i), which may be empty.
    #[inline(always)]
    #[must_use]
    pub fn stack_bits(&self, i: u8) -> F80 {
        self.st[usize::from(self.physical(i))]
    }

    /// Writes ST(i): it is no longer empty.
    #[inline(always)]
    pub fn set_stack(&mut self, i: u8, value: F80) {
        let r = self.physical(i);
        self.st[usize::from(r)] = value;
        self.ftw |= 1 << r;
    }

    /// Marks ST(i) as empty.
    #[inline(always)]
    pub fn free(&mut self, i: u8) {
        self.ftw &= !(1 << self.physical(i));
    }

    /// Pushes without a look at what was in ST(7).
    #[inline(always)]
    pub fn push_stack(&mut self, value: F80) {
        self.set_top(self.top().wrapping_sub(1));
        self.set_stack(0, value);
    }

    /// Frees ST(0) and pops, `count` times.
    #[inline(always)]
    pub fn pop_stack(&mut self, count: u8) {
        for _ in 0..count {
            self.free(0);
            self.set_top(self.top().wrapping_add(1));
        }
    }

    /// The control word.
    #[inline(always)]
    #[must_use]
    pub fn control(&self) -> ControlWord {
        ControlWord(self.fcw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_wraps_around_the_eight_registers() {
        let mut fpu = Fpu::default();
        fpu.push_stack(F80::ONE);
        assert_eq!((fpu.top(), fpu.ftw, fpu.st[7]), (7, 0x80, F80::ONE));
        assert_eq!(fpu.stack(0), Some(F80::ONE));
        assert_eq!(fpu.stack(1), None);
        fpu.set_stack(1, F80::ZERO);
        assert_eq!(fpu.ftw, 0x81);
        fpu.pop_stack(2);
        assert_eq!((fpu.top(), fpu.ftw), (1, 0));
    }
}
