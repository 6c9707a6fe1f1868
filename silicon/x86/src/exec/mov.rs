//! Moves, extensions and exchanges ("Data Transfer Instructions").

use silicon_memory::Word;

use super::operand::{Place, RegA, Source, signed};
use crate::Core;
use crate::op::{Done, Op};

/// MOV register, source.
#[inline(always)]
pub fn to_reg<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?;
    core.set(op.a, value);
    Ok(())
}

/// MOV memory, source; MOVNTI.
pub fn to_mem<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?;
    core.store(op, value)
}

/// MOV accumulator, [64-bit offset].
pub fn load_offset<T: Word>(core: &mut Core, op: &Op) -> Done {
    let linear = core.linear(op.seg, op.imm, T::BYTES, crate::mem::AccessKind::Read)?;
    let value = core.load_linear::<T>(linear, op.seg)?;
    core.set(0, value);
    Ok(())
}

/// MOV [64-bit offset], accumulator.
pub fn store_offset<T: Word>(core: &mut Core, op: &Op) -> Done {
    let linear = core.linear(op.seg, op.imm, T::BYTES, crate::mem::AccessKind::Write)?;
    let value = core.get::<T>(0);
    core.store_linear(linear, op.seg, value)
}

/// MOV register, segment register (slot `b`): the selector, zero-extended.
pub fn selector_to_reg<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[(op.b & 7) as usize].selector;
    core.set(op.a, T::from_u64(u64::from(selector)));
    Ok(())
}

/// MOV memory, segment register: 16 bits whatever the operand size.
pub fn selector_to_mem(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[(op.b & 7) as usize].selector;
    core.store(op, selector)
}

/// MOVZX from `F` to `T`.
#[inline(always)]
pub fn zero_extend<S: Source, F: Word, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<F>(core, op)?;
    core.set(op.a, T::from_u64(value.to_u64()));
    Ok(())
}

/// MOVSX and MOVSXD from `F` to `T`.
#[inline(always)]
pub fn sign_extend<S: Source, F: Word, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<F>(core, op)?;
    core.set(op.a, T::from_u64(signed(value) as u64));
    Ok(())
}

/// CBW, CWDE, CDQE: the accumulator from `F` to `T`.
#[inline(always)]
pub fn extend_accumulator<F: Word, T: Word>(core: &mut Core, _: &Op) -> Done {
    let value = signed(core.get::<F>(0));
    core.set(0, T::from_u64(value as u64));
    Ok(())
}

/// CWD, CDQ, CQO: the accumulator's sign to the data register.
#[inline(always)]
pub fn spread_sign<T: Word>(core: &mut Core, _: &Op) -> Done {
    let sign = signed(core.get::<T>(0)) >> 63;
    core.set(2, T::from_u64(sign as u64));
    Ok(())
}

/// LEA.
#[inline(always)]
pub fn lea<T: Word>(core: &mut Core, op: &Op) -> Done {
    let address = core.address(op);
    core.set(op.a, T::from_u64(address));
    Ok(())
}

/// XCHG. In memory it is a locked instruction even without the prefix.
pub fn xchg<P: Place, T: Word>(core: &mut Core, op: &Op) -> Done {
    let new = core.get::<T>(op.b);
    let mut old = new;
    P::update::<T>(core, op, |_, found| {
        old = found;
        new
    })?;
    core.set(op.b, old);
    Ok(())
}

/// CMOVcc: the source is read, and 32 bits are zero-extended, whatever the condition.
#[inline(always)]
pub fn cmov<const CODE: u8, S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let source = S::read::<T>(core, op)?;
    let value = if core.flags.condition::<CODE>() { source } else { core.get(op.a) };
    core.set(op.a, value);
    Ok(())
}

/// SETcc register.
#[inline(always)]
pub fn set_reg<const CODE: u8>(core: &mut Core, op: &Op) -> Done {
    let value = u8::from(core.flags.condition::<CODE>());
    core.set(op.a, value);
    Ok(())
}

/// SETcc memory.
pub fn set_mem<const CODE: u8>(core: &mut Core, op: &Op) -> Done {
    let value = u8::from(core.flags.condition::<CODE>());
    core.store(op, value)
}

fn swapped<T: Word>(value: T) -> T {
    T::from_u64(value.to_u64().swap_bytes() >> (64 - T::BYTES * 8))
}

/// BSWAP of 32 or 64 bits.
#[inline(always)]
pub fn bswap<T: Word>(core: &mut Core, op: &Op) -> Done {
    RegA::update::<T>(core, op, |_, value| swapped(value))
}

/// BSWAP with a 16-bit operand: undefined in the manual, processors clear the register's low half.
pub fn bswap16(core: &mut Core, op: &Op) -> Done {
    core.set::<u16>(op.a, 0);
    Ok(())
}

/// MOVBE register, memory.
pub fn movbe_load<T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = core.load::<T>(op)?;
    core.set(op.a, swapped(value));
    Ok(())
}

/// MOVBE memory, register.
pub fn movbe_store<T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = swapped(core.get::<T>(op.b));
    core.store(op, value)
}

/// XLAT: the memory operand's index is AL.
pub fn xlat(core: &mut Core, op: &Op) -> Done {
    let drop = op.scale_drop >> 2;
    let al = u64::from(core.get::<u8>(0));
    let offset = (core.address(op).wrapping_add(al) << drop) >> drop;
    let linear = core.linear(op.seg, offset, 1, crate::mem::AccessKind::Read)?;
    let value = core.load_linear::<u8>(linear, op.seg)?;
    core.set(0, value);
    Ok(())
}
