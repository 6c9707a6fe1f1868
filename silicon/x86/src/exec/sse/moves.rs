//! Moves that are not a function of two vectors.

use bytemuck::Pod;
use silicon_memory::Word;

use super::operand::{Source, aligned, get, low, set};
use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Op};

/// MOVAPS and its kin to memory.
pub fn store_aligned(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let linear = aligned(core, op, AccessKind::Write)?;
    let value: u128 = get(core, op.b);
    core.store_linear(linear, op.seg, value)
}

/// MOVUPS, MOVSS, MOVLPS and their kin to memory: the lowest bytes of the register.
#[inline(always)]
pub fn store_low<T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let value: T = low(core, op.b);
    core.store(op, value)
}

/// The register becomes the scalar, zero-extended.
#[inline(always)]
pub fn load_scalar<S: Source, T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let value = S::scalar::<T>(core, op)?;
    set(core, op.a, [value.to_u64(), 0]);
    Ok(())
}

/// MOVNTI: a store of a general register. Uses no SSE state.
#[inline(always)]
pub fn store_general<T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = core.get::<T>(op.b);
    core.store(op, value)
}

/// MASKMOVDQU: stores the bytes of register `op.a` whose mask byte in `op.b` has its top bit set.
pub fn masked_store(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    let (bytes, mask): ([u8; 16], [u8; 16]) = (get(core, op.a), get(core, op.b));
    store_bytes(core, op, &bytes, &mask)
}

/// Stores each byte whose mask byte has its top bit set.
pub fn store_bytes(core: &mut Core, op: &Op, bytes: &[u8], mask: &[u8]) -> Done {
    let selected = |i: &usize| mask[*i] & 0x80 != 0;
    let (Some(first), Some(last)) = ((0..mask.len()).find(selected), (0..mask.len()).rfind(selected)) else {
        return Ok(());
    };
    let drop = op.scale_drop >> 2;
    let offset = core.address(op).wrapping_add(first as u64) << drop >> drop;
    let linear = core.linear(op.seg, offset, (last - first + 1) as u64, AccessKind::Write)?;
    let at = |i: usize| linear.wrapping_add((i - first) as u64);
    // Both ends must be writable before a byte changes.
    core.span(at(first), AccessKind::Write, op.seg)?;
    core.span(at(last), AccessKind::Write, op.seg)?;
    for i in (first..=last).filter(selected) {
        core.store_linear(at(i), op.seg, bytes[i])?;
    }
    Ok(())
}
