//! Bit tests, scans, counts and the BMI instructions ("Bit and Byte Instructions", "BMI1 and BMI2").
//!
//! Flags that the manual leaves undefined: BT and its kin change CF only; BSF and BSR change ZF only, and leave the
//! destination alone, all 64 bits of it, where the source is zero.

use silicon_memory::Word;
use x86_defs::rflags;

use super::operand::{Place, Source, bits, signed};
use crate::mem::AccessKind;
use crate::op::{Done, Op};
use crate::{Core, Leave};

/// What a bit test leaves in the place of the bit.
pub trait BitChange {
    fn apply(word: u64, bit: u64) -> u64;
}

/// BTS.
pub struct Set;
/// BTR.
pub struct Reset;
/// BTC.
pub struct Complement;

impl BitChange for Set {
    #[inline(always)]
    fn apply(word: u64, bit: u64) -> u64 {
        word | bit
    }
}

impl BitChange for Reset {
    #[inline(always)]
    fn apply(word: u64, bit: u64) -> u64 {
        word & !bit
    }
}

impl BitChange for Complement {
    #[inline(always)]
    fn apply(word: u64, bit: u64) -> u64 {
        word ^ bit
    }
}

#[inline(always)]
fn change<C: BitChange, T: Word>(core: &mut Core, word: T, number: u64) -> T {
    let number = number & (u64::from(bits::<T>()) - 1);
    let word = word.to_u64();
    core.flags.set_cf(word >> number & 1 != 0);
    T::from_u64(C::apply(word, 1 << number))
}

/// BT, where the number of the bit is taken modulo the operand size.
pub fn test<A: Source, N: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let number = N::read::<T>(core, op)?.to_u64() & (u64::from(bits::<T>()) - 1);
    let word = A::read::<T>(core, op)?.to_u64();
    core.flags.set_cf(word >> number & 1 != 0);
    Ok(())
}

/// BTS, BTR and BTC, where the number of the bit is taken modulo the operand size.
pub fn modify<C: BitChange, P: Place, N: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let number = N::read::<T>(core, op)?.to_u64();
    P::update::<T>(core, op, |core, word| change::<C, T>(core, word, number))
}

/// Linear address of the word that holds bit `number` (signed) of the bit string at the memory operand.
#[inline(always)]
fn bit_string<T: Word>(core: &mut Core, op: &Op, number: i64, kind: AccessKind) -> Result<u64, Leave> {
    let words = number >> bits::<T>().trailing_zeros();
    let distance = words.wrapping_mul(T::BYTES as i64) as u64;
    let drop = op.scale_drop >> 2;
    let offset = (core.address(op).wrapping_add(distance) << drop) >> drop;
    core.linear(op.seg, offset, T::BYTES, kind)
}

/// BT of a bit string in memory, with the number of the bit in [`Op::b`].
pub fn test_string<T: Word>(core: &mut Core, op: &Op) -> Done {
    let number = signed(core.get::<T>(op.b));
    let linear = bit_string::<T>(core, op, number, AccessKind::Read)?;
    let word = core.load_linear::<T>(linear, op.seg)?.to_u64();
    core.flags.set_cf(word >> (number as u64 & (u64::from(bits::<T>()) - 1)) & 1 != 0);
    Ok(())
}

/// BTS, BTR and BTC of a bit string in memory, with the number of the bit in [`Op::b`].
pub fn modify_string<C: BitChange, T: Word>(core: &mut Core, op: &Op) -> Done {
    let number = signed(core.get::<T>(op.b));
    let linear = bit_string::<T>(core, op, number, AccessKind::Write)?;
    core.modify_linear::<T>(linear, op.seg, |core, word| change::<C, T>(core, word, number as u64))
}

/// BSF.
pub fn scan_forward<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    core.flags.set_zf(value == 0);
    if value != 0 {
        core.set(op.a, T::from_u64(u64::from(value.trailing_zeros())));
    }
    Ok(())
}

/// BSR.
pub fn scan_reverse<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    core.flags.set_zf(value == 0);
    if value != 0 {
        core.set(op.a, T::from_u64(u64::from(63 - value.leading_zeros())));
    }
    Ok(())
}

/// LZCNT and TZCNT share their flags: CF says that the source was zero, ZF that the result is.
#[inline(always)]
fn set_count<T: Word>(core: &mut Core, op: &Op, source: u64, count: u32) {
    let cf = if source == 0 { rflags::CF } else { 0 };
    let zf = if count == 0 { rflags::ZF } else { 0 };
    core.flags.set_bits(cf | zf);
    core.set(op.a, T::from_u64(u64::from(count)));
}

/// LZCNT.
pub fn leading_zeros<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    set_count::<T>(core, op, value, value.leading_zeros() - (64 - bits::<T>()));
    Ok(())
}

/// TZCNT.
pub fn trailing_zeros<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    set_count::<T>(core, op, value, value.trailing_zeros().min(bits::<T>()));
    Ok(())
}

/// POPCNT.
pub fn population<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    core.flags.set_bits(if value == 0 { rflags::ZF } else { 0 });
    core.set(op.a, T::from_u64(u64::from(value.count_ones())));
    Ok(())
}

/// CRC32 of one `T`, with the polynomial 11EDC6F41H, reflected.
pub fn crc32<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    const REFLECTED: u32 = 0x82f6_3b78;
    let data = S::read::<T>(core, op)?.to_u64();
    let mut crc = core.get::<u32>(op.a);
    for byte in 0..T::BYTES {
        crc ^= (data >> (byte * 8)) as u8 as u32;
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { REFLECTED } else { 0 };
        }
    }
    core.set(op.a, crc);
    Ok(())
}

/// A BMI1 instruction on one source: the result, and CF.
pub trait Lowest {
    fn apply(value: u64) -> (u64, bool);
}
/// BLSI: isolate the lowest set bit.
pub struct Blsi;
/// BLSMSK: mask up to the lowest set bit.
pub struct Blsmsk;
/// BLSR: reset the lowest set bit.
pub struct Blsr;

impl Lowest for Blsi {
    fn apply(value: u64) -> (u64, bool) {
        (value & value.wrapping_neg(), value != 0)
    }
}
impl Lowest for Blsmsk {
    fn apply(value: u64) -> (u64, bool) {
        (value ^ value.wrapping_sub(1), value == 0)
    }
}
impl Lowest for Blsr {
    fn apply(value: u64) -> (u64, bool) {
        (value & value.wrapping_sub(1), value == 0)
    }
}

/// BLSI, BLSMSK and BLSR.
pub fn lowest<O: Lowest, S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let (r, cf) = O::apply(S::read::<T>(core, op)?.to_u64());
    core.flags.result_with::<T>(r, cf, false);
    core.set(op.a, T::from_u64(r));
    Ok(())
}

/// ANDN: the first source is register `imm`.
pub fn andn<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = S::read::<T>(core, op)?.to_u64();
    let r = !core.get::<T>(op.imm as u8).to_u64() & b;
    core.flags.logic::<T>(r);
    core.set(op.a, T::from_u64(r));
    Ok(())
}

/// BEXTR: start and length are in register `imm`.
pub fn bextr<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    let control = core.get::<u16>(op.imm as u8);
    let (start, length) = (u32::from(control & 0xff), u32::from(control >> 8));
    let r = value.checked_shr(start).unwrap_or(0) & low_bits(length);
    core.flags.logic::<T>(r);
    core.set(op.a, T::from_u64(r));
    Ok(())
}

/// BZHI: the number of bits is in register `imm`.
pub fn bzhi<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?.to_u64();
    let number = u32::from(core.get::<u8>(op.imm as u8));
    let r = value & low_bits(number);
    core.flags.result_with::<T>(r, number >= bits::<T>(), false);
    core.set(op.a, T::from_u64(r));
    Ok(())
}

fn low_bits(number: u32) -> u64 {
    if number >= 64 { u64::MAX } else { (1 << number) - 1 }
}

/// PDEP: the bits of register `imm` go where the mask has ones.
pub fn pdep<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let mut mask = S::read::<T>(core, op)?.to_u64();
    let mut source = core.get::<T>(op.imm as u8).to_u64();
    let mut r = 0;
    while mask != 0 {
        if source & 1 != 0 {
            r |= mask & mask.wrapping_neg();
        }
        source >>= 1;
        mask &= mask - 1;
    }
    core.set(op.a, T::from_u64(r));
    Ok(())
}

/// PEXT: the bits of register `imm` that the mask selects move together.
pub fn pext<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let mut mask = S::read::<T>(core, op)?.to_u64();
    let source = core.get::<T>(op.imm as u8).to_u64();
    let (mut r, mut to) = (0, 1_u64);
    while mask != 0 {
        if source & mask & mask.wrapping_neg() != 0 {
            r |= to;
        }
        to <<= 1;
        mask &= mask - 1;
    }
    core.set(op.a, T::from_u64(r));
    Ok(())
}
