//! Addition, subtraction and logic ("Binary Arithmetic Instructions", "Logical Instructions").

use silicon_memory::Word;

use super::operand::{Place, Source};
use crate::Core;
use crate::core::Flags;
use crate::op::{Done, Op};

/// A two-operand instruction: the result of `a` and `b`, zero-extended operands; bits above the size do not count.
pub trait Alu {
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64;
}

pub struct Add;
pub struct Or;
pub struct Adc;
pub struct Sbb;
pub struct And;
/// SUB, and CMP where the result is not kept.
pub struct Sub;
pub struct Xor;

impl Alu for Add {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a.wrapping_add(b);
        flags.add::<T>(a, b, r);
        r
    }
}

impl Alu for Adc {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a.wrapping_add(b).wrapping_add(u64::from(flags.cf()));
        flags.add::<T>(a, b, r);
        r
    }
}

impl Alu for Sub {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a.wrapping_sub(b);
        flags.sub::<T>(a, b, r);
        r
    }
}

impl Alu for Sbb {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a.wrapping_sub(b).wrapping_sub(u64::from(flags.cf()));
        flags.sub::<T>(a, b, r);
        r
    }
}

impl Alu for And {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a & b;
        flags.logic::<T>(r);
        r
    }
}

impl Alu for Or {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a | b;
        flags.logic::<T>(r);
        r
    }
}

impl Alu for Xor {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64, b: u64) -> u64 {
        let r = a ^ b;
        flags.logic::<T>(r);
        r
    }
}

/// `place = place O source`.
#[inline(always)]
pub fn binary<O: Alu, P: Place, S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = S::read::<T>(core, op)?.to_u64();
    P::update::<T>(core, op, |core, a| T::from_u64(O::apply::<T>(&mut core.flags, a.to_u64(), b)))
}

/// `A O B` for the flags: CMP and TEST.
#[inline(always)]
pub fn compare<O: Alu, A: Source, B: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let a = A::read::<T>(core, op)?.to_u64();
    let b = B::read::<T>(core, op)?.to_u64();
    O::apply::<T>(&mut core.flags, a, b);
    Ok(())
}

/// A one-operand instruction.
pub trait Unary {
    fn apply<T: Word>(flags: &mut Flags, a: u64) -> u64;
}

pub struct Inc;
pub struct Dec;
pub struct Neg;
pub struct Not;

impl Unary for Inc {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64) -> u64 {
        let r = a.wrapping_add(1);
        flags.inc::<T>(a, r);
        r
    }
}

impl Unary for Dec {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64) -> u64 {
        let r = a.wrapping_sub(1);
        flags.dec::<T>(a, r);
        r
    }
}

impl Unary for Neg {
    #[inline(always)]
    fn apply<T: Word>(flags: &mut Flags, a: u64) -> u64 {
        let r = 0_u64.wrapping_sub(a);
        flags.sub::<T>(0, a, r);
        r
    }
}

impl Unary for Not {
    #[inline(always)]
    fn apply<T: Word>(_: &mut Flags, a: u64) -> u64 {
        !a
    }
}

/// `place = O place`.
#[inline(always)]
pub fn unary<O: Unary, P: Place, T: Word>(core: &mut Core, op: &Op) -> Done {
    P::update::<T>(core, op, |core, a| T::from_u64(O::apply::<T>(&mut core.flags, a.to_u64())))
}

/// XADD: register [`Op::b`] gets the old destination.
pub fn xadd<P: Place, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = core.get::<T>(op.b);
    let mut old = b;
    let mut sum = b;
    P::update::<T>(core, op, |core, a| {
        old = a;
        sum = T::from_u64(Add::apply::<T>(&mut core.flags, a.to_u64(), b.to_u64()));
        sum
    })?;
    core.set(op.b, old);
    if op.a == op.b {
        // Both operands are one register: the sum is written last.
        core.set(op.a, sum);
    }
    Ok(())
}

/// ADCX and ADOX: an addition with its own carry flag, which `OVERFLOW` says is OF.
pub fn add_carry<S: Source, T: Word, const OVERFLOW: bool>(core: &mut Core, op: &Op) -> Done {
    let b = u128::from(S::read::<T>(core, op)?.to_u64());
    let flags = &mut core.flags;
    let (cf, of) = (flags.cf(), flags.of());
    let carry = u128::from(if OVERFLOW { of } else { cf });
    let a = u128::from(core.get::<T>(op.a).to_u64());
    let r = a + b + carry;
    let out = r >> (T::BYTES * 8) != 0;
    if OVERFLOW {
        core.flags.set_cf_of(cf, out)
    } else {
        core.flags.set_cf_of(out, of)
    }
    core.set(op.a, T::from_u64(r as u64));
    Ok(())
}

/// CMPXCHG. The destination is written in either case.
pub fn cmpxchg<T: Word>(core: &mut Core, op: &Op) -> Done {
    let expected = core.get::<T>(0);
    let new = core.get::<T>(op.b);
    let mut found = expected;
    core.modify::<T>(op, |core, old| {
        found = old;
        Sub::apply::<T>(&mut core.flags, expected.to_u64(), old.to_u64());
        if old == expected { new } else { old }
    })?;
    if found != expected {
        core.set(0, found);
    }
    Ok(())
}

/// CMPXCHG with a register destination, which keeps even its upper half where the comparison fails.
pub fn cmpxchg_register<T: Word>(core: &mut Core, op: &Op) -> Done {
    let expected = core.get::<T>(0);
    let found = core.get::<T>(op.a);
    let new = core.get::<T>(op.b);
    Sub::apply::<T>(&mut core.flags, expected.to_u64(), found.to_u64());
    if found == expected {
        core.set(op.a, new);
    } else {
        core.set(0, found);
    }
    Ok(())
}

/// CMPXCHG8B.
pub fn cmpxchg8b(core: &mut Core, op: &Op) -> Done {
    let expected = core.gpr[2] << 32 | u64::from(core.get::<u32>(0));
    let new = core.gpr[1] << 32 | u64::from(core.get::<u32>(3));
    let mut found = expected;
    core.modify::<u64>(op, |core, old| {
        found = old;
        core.flags.set_zf(old == expected);
        if old == expected { new } else { old }
    })?;
    if found != expected {
        core.set(0, found as u32);
        core.set(2, (found >> 32) as u32);
    }
    Ok(())
}

/// CMPXCHG16B.
pub fn cmpxchg16b(core: &mut Core, op: &Op) -> Done {
    if core.address_in_segment(op) & 15 != 0 {
        return Err(core.gp0());
    }
    let expected = u128::from(core.gpr[2]) << 64 | u128::from(core.gpr[0]);
    let new = u128::from(core.gpr[1]) << 64 | u128::from(core.gpr[3]);
    let mut found = expected;
    core.modify::<u128>(op, |core, old| {
        found = old;
        core.flags.set_zf(old == expected);
        if old == expected { new } else { old }
    })?;
    if found != expected {
        core.gpr[0] = found as u64;
        core.gpr[2] = (found >> 64) as u64;
    }
    Ok(())
}

/// BOUND: the index in [`Op::a`] against the two bounds in memory.
pub fn bound<T: Word>(core: &mut Core, op: &Op) -> Done {
    use super::operand::signed;
    // The bounds are two operands: what the lower one raises comes before the limit that the upper one is beyond.
    let lower = core.load::<T>(op)?;
    let offset = core.address(op).wrapping_add(T::BYTES);
    let linear = core.linear(op.seg, offset, T::BYTES, crate::mem::AccessKind::Read)?;
    let upper = core.load_linear::<T>(linear, op.seg)?;
    let index = signed(core.get::<T>(op.a));
    if index < signed(lower) || index > signed(upper) {
        return Err(core.raise(x86_defs::exception::vector::BR));
    }
    Ok(())
}

impl Core {
    /// Linear address of the memory operand in 64-bit mode, unchecked.
    fn address_in_segment(&self, op: &Op) -> u64 {
        let base = if op.seg & crate::op::FLAT != 0 { 0 } else { self.seg[(op.seg & 7) as usize].base };
        base.wrapping_add(self.address(op))
    }
}
