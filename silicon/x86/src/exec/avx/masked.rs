//! Loads and stores of chosen elements: VMASKMOVPS, VPMASKMOVD and their kin, and gathers.
//!
//! An element that is not chosen raises nothing, wherever it is.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};
use silicon_memory::Word;

use super::operand::{get, set, vvvv};
use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// The bytes of a YMM register.
fn bytes(core: &Core, slot: u8) -> [u8; 32] {
    bytemuck::cast(get::<u128>(core, slot))
}

/// Element `i`.
#[inline(always)]
fn element<T: Pod>(bytes: &[u8; 32], i: usize) -> T {
    pod_read_unaligned(&bytes[i * size_of::<T>()..][..size_of::<T>()])
}

#[inline(always)]
fn set_element<T: Pod>(bytes: &mut [u8; 32], i: usize, value: T) {
    bytes[i * size_of::<T>()..][..size_of::<T>()].copy_from_slice(bytes_of(&value));
}

/// Whether the mask chooses element `i`: by its top bit.
#[inline(always)]
fn is_chosen<T: Pod>(mask: &[u8; 32], i: usize) -> bool {
    mask[(i + 1) * size_of::<T>() - 1] & 0x80 != 0
}

/// Offset of the memory operand with something added, in its address size.
#[inline(always)]
fn offset(core: &Core, op: &Op, more: u64) -> u64 {
    let drop = op.scale_drop >> 2;
    core.address(op).wrapping_add(more) << drop >> drop
}

/// Linear address of element `i` of the memory operand.
#[inline(always)]
fn linear<T: Word>(core: &mut Core, op: &Op, i: usize, kind: AccessKind) -> Result<u64, Leave> {
    let offset = offset(core, op, i as u64 * T::BYTES);
    core.linear(op.seg, offset, T::BYTES, kind)
}

const fn elements<const WIDE: bool, T>() -> usize {
    if WIDE { 32 / size_of::<T>() } else { 16 / size_of::<T>() }
}

/// Loads the chosen elements; the others become zero. The mask is in VEX.vvvv.
#[inline(always)]
pub fn load<const WIDE: bool, T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let mask = bytes(core, vvvv(op));
    let mut result = [0; 32];
    for i in 0..const { elements::<WIDE, T>() } {
        if is_chosen::<T>(&mask, i) {
            let at = linear::<T>(core, op, i, AccessKind::Read)?;
            let value = core.load_linear::<T>(at, op.seg)?;
            set_element(&mut result, i, value);
        }
    }
    set::<u128>(core, op.a, bytemuck::cast(result));
    Ok(())
}

/// Stores the chosen elements of register `op.b`, or none. The mask is in VEX.vvvv.
#[inline(always)]
pub fn store<const WIDE: bool, T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let (mask, value) = (bytes(core, vvvv(op)), bytes(core, op.b));
    let chosen = || (0..const { elements::<WIDE, T>() }).filter(|&i| is_chosen::<T>(&mask, i));
    for i in chosen() {
        let at = linear::<T>(core, op, i, AccessKind::Write)?;
        core.check_store(at, op.seg, T::BYTES)?;
    }
    for i in chosen() {
        let at = linear::<T>(core, op, i, AccessKind::Write)?;
        core.store_linear(at, op.seg, element::<T>(&value, i))?;
    }
    Ok(())
}

/// An element of the index vector.
pub trait Index: Pod {
    fn extend(self) -> u64;
}

impl Index for i32 {
    fn extend(self) -> u64 {
        i64::from(self) as u64
    }
}

impl Index for i64 {
    fn extend(self) -> u64 {
        self as u64
    }
}

/// Loads up to `N` elements, each from an address of its own: indices in register `op.b`, mask in VEX.vvvv.
///
/// Elements are loaded in order, and each clears its element of the mask. At a fault the instruction keeps what it has
/// got, and goes on there when it is executed again ("VPGATHERDD").
#[inline(always)]
pub fn gather<I: Index, T: Word + Pod, const N: usize>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let indices = bytes(core, op.b);
    let mut mask = bytes(core, vvvv(op));
    let mut result = bytes(core, op.a);
    let used = N * size_of::<T>();
    mask[used..].fill(0);
    result[used..].fill(0);
    for i in 0..N {
        let sign = if is_chosen::<T>(&mask, i) { 0xff } else { 0 };
        mask[i * size_of::<T>()..][..size_of::<T>()].fill(sign);
    }
    let mut outcome = Ok(());
    for i in 0..N {
        if is_chosen::<T>(&mask, i) {
            match gathered::<T>(core, op, element::<I>(&indices, i).extend()) {
                Ok(value) => set_element(&mut result, i, value),
                // After a VM-exit it starts anew: its reads of devices are answered from the first one on.
                Err(Leave::Fault) => {
                    outcome = Err(Leave::Fault);
                    break;
                }
                Err(leave) => return Err(leave),
            }
            mask[i * size_of::<T>()..][..size_of::<T>()].fill(0);
        }
    }
    set::<u128>(core, op.a, bytemuck::cast(result));
    set::<u128>(core, vvvv(op), bytemuck::cast(mask));
    outcome
}

#[inline(always)]
fn gathered<T: Word>(core: &mut Core, op: &Op, index: u64) -> Result<T, Leave> {
    let offset = offset(core, op, index << (op.scale_drop & 3));
    let at = core.linear(op.seg, offset, T::BYTES, AccessKind::Read)?;
    core.load_linear(at, op.seg)
}
