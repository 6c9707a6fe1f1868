//! The six arithmetic flags, kept as the words they derive from.
//!
//! An arithmetic instruction stores three words; a flag is computed only when something asks for it.
//!
//! - ZF: `zero == 0`
//! - SF: bit 63 of `sign_parity`; PF: even parity of its low byte
//! - CF: bit 63 of `carries`; OF: bit 63 xor bit 62; AF: bit 3. These are carries out of the positions of the top
//!   bit, the one below it, and bit 3, moved there whatever the operand size.

use silicon_memory::Word;
use x86_defs::rflags;

/// Lazily evaluated arithmetic flags.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    pub zero: u64,
    pub sign_parity: u64,
    pub carries: u64,
}

const TOP: u64 = 1 << 63;
const AUX: u64 = 1 << 3;

/// The value sign-extended from its own size.
#[inline(always)]
fn extend<T: Word>(value: u64) -> u64 {
    let drop = 64 - T::BYTES * 8;
    (((value << drop) as i64) >> drop) as u64
}

impl Flags {
    #[inline(always)]
    fn set_result<T: Word>(&mut self, result: u64) {
        let r = extend::<T>(result);
        self.zero = r;
        self.sign_parity = r;
    }

    #[inline(always)]
    fn set_carries<T: Word>(&mut self, out: u64) {
        let shift = 64 - T::BYTES * 8;
        self.carries = if shift == 0 { out } else { (out << shift) & (3 << 62) | (out & AUX) };
    }

    /// Flags of `result = a + b (+ carry)`.
    #[inline(always)]
    pub fn add<T: Word>(&mut self, a: u64, b: u64, result: u64) {
        self.set_result::<T>(result);
        self.set_carries::<T>((a & b) | ((a | b) & !result));
    }

    /// Flags of `result = a - b (- borrow)`.
    #[inline(always)]
    pub fn sub<T: Word>(&mut self, a: u64, b: u64, result: u64) {
        self.set_result::<T>(result);
        self.set_carries::<T>((!a & b) | ((!a | b) & result));
    }

    /// Flags of a logical instruction: CF = OF = 0, AF = 0 (undefined in the manual).
    #[inline(always)]
    pub fn logic<T: Word>(&mut self, result: u64) {
        self.set_result::<T>(result);
        self.carries = 0;
    }

    /// Result flags ZF, SF and PF from `result`, with CF and OF given, AF = 0: shifts and multiplications.
    #[inline(always)]
    pub fn result_with<T: Word>(&mut self, result: u64, cf: bool, of: bool) {
        self.set_result::<T>(result);
        self.set_cf_of(cf, of);
        self.carries &= !AUX;
    }

    /// Like [`Flags::add`], CF kept: INC.
    #[inline(always)]
    pub fn inc<T: Word>(&mut self, a: u64, result: u64) {
        let cf = self.cf();
        self.add::<T>(a, 1, result);
        let of = self.of();
        self.set_cf_of(cf, of);
    }

    /// Like [`Flags::sub`], CF kept: DEC.
    #[inline(always)]
    pub fn dec<T: Word>(&mut self, a: u64, result: u64) {
        let cf = self.cf();
        self.sub::<T>(a, 1, result);
        let of = self.of();
        self.set_cf_of(cf, of);
    }

    /// Sets CF and OF, the rest stays.
    #[inline(always)]
    pub fn set_cf_of(&mut self, cf: bool, of: bool) {
        self.carries = (self.carries & AUX) | (u64::from(cf) << 63) | (u64::from(cf ^ of) << 62);
    }

    /// Sets CF, the rest stays.
    #[inline(always)]
    pub fn set_cf(&mut self, cf: bool) {
        let of = self.of();
        self.set_cf_of(cf, of);
    }

    /// Sets ZF, the rest stays.
    #[inline(always)]
    pub fn set_zf(&mut self, zf: bool) {
        self.zero = u64::from(!zf);
    }

    #[inline(always)]
    #[must_use]
    pub fn cf(&self) -> bool {
        self.carries & TOP != 0
    }

    #[inline(always)]
    #[must_use]
    pub fn zf(&self) -> bool {
        self.zero == 0
    }

    #[inline(always)]
    #[must_use]
    pub fn sf(&self) -> bool {
        self.sign_parity & TOP != 0
    }

    #[inline(always)]
    #[must_use]
    pub fn of(&self) -> bool {
        (self.carries ^ (self.carries << 1)) & TOP != 0
    }

    #[inline(always)]
    #[must_use]
    pub fn pf(&self) -> bool {
        (self.sign_parity as u8).count_ones() & 1 == 0
    }

    #[inline(always)]
    #[must_use]
    pub fn af(&self) -> bool {
        self.carries & AUX != 0
    }

    /// SF != OF: signed less.
    #[inline(always)]
    #[must_use]
    pub fn less(&self) -> bool {
        (self.sign_parity ^ self.carries ^ (self.carries << 1)) & TOP != 0
    }

    /// The flags as bits of RFLAGS.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let mut f = 0;
        for (set, bit) in [
            (self.cf(), rflags::CF),
            (self.pf(), rflags::PF),
            (self.af(), rflags::AF),
            (self.zf(), rflags::ZF),
            (self.sf(), rflags::SF),
            (self.of(), rflags::OF),
        ] {
            if set {
                f |= bit;
            }
        }
        f
    }

    /// Sets all six flags from bits of RFLAGS.
    pub fn set_bits(&mut self, bits: u64) {
        self.zero = u64::from(bits & rflags::ZF == 0);
        self.sign_parity = u64::from(bits & rflags::PF == 0) | if bits & rflags::SF != 0 { TOP } else { 0 };
        self.carries = if bits & rflags::AF != 0 { AUX } else { 0 };
        self.set_cf_of(bits & rflags::CF != 0, bits & rflags::OF != 0);
    }

    /// Condition `code` (0-15) of Jcc, SETcc and CMOVcc ("EFLAGS Condition Codes").
    #[inline(always)]
    #[must_use]
    pub fn condition<const CODE: u8>(&self) -> bool {
        let c = match CODE >> 1 {
            0 => self.of(),
            1 => self.cf(),
            2 => self.zf(),
            3 => self.cf() || self.zf(),
            4 => self.sf(),
            5 => self.pf(),
            6 => self.less(),
            _ => self.zf() || self.less(),
        };
        c ^ (CODE & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_the_six_flags_round_trips() {
        for i in 0..64_u64 {
            let bits = (i & 1) | (i & 2) << 1 | (i & 4) << 2 | (i & 8) << 3 | (i & 16) << 3 | (i & 32) << 6;
            let mut f = Flags::default();
            f.set_bits(bits);
            assert_eq!(f.bits(), bits, "{bits:#x}");
            f.set_cf(!f.cf());
            assert_eq!(f.bits(), bits ^ rflags::CF);
        }
    }

    #[test]
    fn byte_addition_sets_carry_overflow_and_aux() {
        let mut f = Flags::default();
        f.add::<u8>(0x7f, 1, 0x80);
        assert_eq!(f.bits(), rflags::OF | rflags::SF | rflags::AF);
        f.add::<u8>(0xff, 1, 0x100);
        assert_eq!(f.bits(), rflags::CF | rflags::ZF | rflags::PF | rflags::AF);
        f.sub::<u8>(0, 1, 0_u64.wrapping_sub(1));
        assert_eq!(f.bits(), rflags::CF | rflags::SF | rflags::PF | rflags::AF);
        f.sub::<u32>(0x8000_0000, 1, 0x7fff_ffff);
        assert_eq!(f.bits(), rflags::OF | rflags::PF | rflags::AF);
    }
}
