//! Where the second operand comes from.

use bytemuck::{Pod, bytes_of, bytes_of_mut, pod_read_unaligned};
use silicon_memory::Word;

use crate::mem::AccessKind;
use crate::{Core, Leave, Op};

/// A source of operands.
pub trait Source {
    /// All of it, 16 bytes.
    fn vector<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave>;
    /// Its lowest bytes; memory is accessed with just this size.
    fn scalar<T: Word + Pod>(core: &mut Core, op: &Op) -> Result<T, Leave>;
}

/// XMM register `op.b`.
pub struct Register;
/// 16 bytes of memory, aligned; scalars are not.
pub struct Memory;
/// 16 bytes of memory at any address.
pub struct Unaligned;
/// The immediate.
pub struct Immediate;
/// General register `op.b`.
pub struct General;

impl Source for Register {
    #[inline(always)]
    fn vector<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(get(core, op.b))
    }

    #[inline(always)]
    fn scalar<T: Word + Pod>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(low(core, op.b))
    }
}

impl Source for Memory {
    #[inline(always)]
    fn vector<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        let mut value = V::zeroed();
        fetch::<true>(core, op, bytes_of_mut(&mut value))?;
        Ok(value)
    }

    #[inline(always)]
    fn scalar<T: Word + Pod>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        core.load(op)
    }
}

impl Source for Unaligned {
    #[inline(always)]
    fn vector<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        let mut value = V::zeroed();
        fetch::<false>(core, op, bytes_of_mut(&mut value))?;
        Ok(value)
    }

    #[inline(always)]
    fn scalar<T: Word + Pod>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        core.load(op)
    }
}

impl Source for Immediate {
    #[inline(always)]
    fn vector<V: Pod>(_: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(*bytemuck::cast_ref(&u128::from(op.imm)))
    }

    #[inline(always)]
    fn scalar<T: Word + Pod>(_: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(T::from_u64(op.imm))
    }
}

impl Source for General {
    #[inline(always)]
    fn vector<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(*bytemuck::cast_ref(&u128::from(core.get::<u64>(op.b))))
    }

    #[inline(always)]
    fn scalar<T: Word + Pod>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(core.get(op.b))
    }
}

/// Linear address of an aligned 16-byte operand; #GP(0) if it is not aligned.
#[inline(always)]
pub fn aligned(core: &mut Core, op: &Op, kind: AccessKind) -> Result<u64, Leave> {
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, 16, kind)?;
    if linear & 15 == 0 { Ok(linear) } else { Err(core.gp0()) }
}

/// Copies 16 bytes of memory to `out`, by way of memory: a value in general registers would have to be moved over.
#[inline(always)]
fn fetch<const ALIGNED: bool>(core: &mut Core, op: &Op, out: &mut [u8]) -> Result<(), Leave> {
    let linear = if ALIGNED {
        aligned(core, op, AccessKind::Read)?
    } else {
        let offset = core.address(op);
        core.linear(op.seg, offset, 16, AccessKind::Read)?
    };
    if let Some(frame) = core.mmu.fast_frame::<u128>(linear, core.mmu.need_read) {
        frame.read((linear & 0xfff) as usize, &mut out[..16]);
        return Ok(());
    }
    fetch_slow(core, linear, op.seg, out)
}

#[cold]
#[inline(never)]
fn fetch_slow(core: &mut Core, linear: u64, seg: u8, out: &mut [u8]) -> Result<(), Leave> {
    let value = core.load_linear::<u128>(linear, seg)?;
    out[..16].copy_from_slice(&value.to_le_bytes());
    Ok(())
}

/// An XMM register.
#[inline(always)]
#[must_use]
pub fn get<V: Pod>(core: &Core, slot: u8) -> V {
    *bytemuck::cast_ref(&core.fpu.xmm[(slot & 15) as usize])
}

/// Sets an XMM register.
#[inline(always)]
pub fn set<V: Pod>(core: &mut Core, slot: u8, value: V) {
    *bytemuck::cast_mut(&mut core.fpu.xmm[(slot & 15) as usize]) = value;
}

/// The lowest bytes of an XMM register.
#[inline(always)]
#[must_use]
pub fn low<T: Pod>(core: &Core, slot: u8) -> T {
    pod_read_unaligned(&bytes_of(&core.fpu.xmm[(slot & 15) as usize])[..size_of::<T>()])
}

/// Sets the lowest bytes of an XMM register; the rest stays.
#[inline(always)]
pub fn set_low<T: Pod>(core: &mut Core, slot: u8, value: T) {
    bytes_of_mut(&mut core.fpu.xmm[(slot & 15) as usize])[..size_of::<T>()].copy_from_slice(bytes_of(&value));
}
