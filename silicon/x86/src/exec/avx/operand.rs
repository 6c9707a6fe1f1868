//! Operands of VEX-encoded instructions: registers by half, memory of 16 and 32 bytes.

use bytemuck::Pod;

use crate::mem::AccessKind;
use crate::{Core, Leave, Op};

/// The register of VEX.vvvv.
#[inline(always)]
#[must_use]
pub fn vvvv(op: &Op) -> u8 {
    (op.imm >> 8) as u8 & 15
}

/// The register of an immediate (`/is4`).
#[inline(always)]
#[must_use]
pub fn is4(op: &Op) -> u8 {
    (op.imm >> 12) as u8 & 15
}

/// Both halves of a YMM register, low half first.
#[inline(always)]
#[must_use]
pub fn get<V: Pod>(core: &Core, slot: u8) -> [V; 2] {
    let i = (slot & 15) as usize;
    [*bytemuck::cast_ref(&core.fpu.xmm[i]), *bytemuck::cast_ref(&core.fpu.ymm_high[i])]
}

/// Sets a YMM register.
#[inline(always)]
pub fn set<V: Pod>(core: &mut Core, slot: u8, [low, high]: [V; 2]) {
    let i = (slot & 15) as usize;
    *bytemuck::cast_mut(&mut core.fpu.xmm[i]) = low;
    *bytemuck::cast_mut(&mut core.fpu.ymm_high[i]) = high;
}

/// Sets the low half of a YMM register and clears the high half.
#[inline(always)]
pub fn set_low<V: Pod>(core: &mut Core, slot: u8, low: V) {
    let i = (slot & 15) as usize;
    *bytemuck::cast_mut(&mut core.fpu.xmm[i]) = low;
    core.fpu.ymm_high[i] = 0;
}

/// Where source 2 comes from.
pub trait Source {
    /// 16 bytes.
    fn half<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave>;
    /// 32 bytes.
    fn both<V: Pod>(core: &mut Core, op: &Op) -> Result<[V; 2], Leave>;
}

/// Register `op.b`.
pub struct Register;
/// Memory at any address, as nearly all VEX-encoded instructions take it.
pub struct Memory;
/// Memory at a multiple of its size: VMOVAPS and its kin.
pub struct Aligned;
/// The immediate, zero-extended.
pub struct Immediate;

impl Source for Register {
    #[inline(always)]
    fn half<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(get(core, op.b)[0])
    }

    #[inline(always)]
    fn both<V: Pod>(core: &mut Core, op: &Op) -> Result<[V; 2], Leave> {
        Ok(get(core, op.b))
    }
}

impl Source for Memory {
    #[inline(always)]
    fn half<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(*bytemuck::cast_ref(&core.load::<u128>(op)?))
    }

    #[inline(always)]
    fn both<V: Pod>(core: &mut Core, op: &Op) -> Result<[V; 2], Leave> {
        let offset = core.address(op);
        let linear = core.linear(op.seg, offset, 32, AccessKind::Read)?;
        load_both(core, linear, op.seg)
    }
}

impl Source for Aligned {
    #[inline(always)]
    fn half<V: Pod>(core: &mut Core, op: &Op) -> Result<V, Leave> {
        let linear = aligned(core, op, 16, AccessKind::Read)?;
        Ok(*bytemuck::cast_ref(&core.load_linear::<u128>(linear, op.seg)?))
    }

    #[inline(always)]
    fn both<V: Pod>(core: &mut Core, op: &Op) -> Result<[V; 2], Leave> {
        let linear = aligned(core, op, 32, AccessKind::Read)?;
        load_both(core, linear, op.seg)
    }
}

impl Source for Immediate {
    #[inline(always)]
    fn half<V: Pod>(_: &mut Core, op: &Op) -> Result<V, Leave> {
        Ok(*bytemuck::cast_ref(&u128::from(op.imm as u8)))
    }

    #[inline(always)]
    fn both<V: Pod>(core: &mut Core, op: &Op) -> Result<[V; 2], Leave> {
        Ok([Self::half(core, op)?; 2])
    }
}

/// Linear address of an operand of `bytes` bytes that must be aligned; #GP(0) if it is not.
#[inline(always)]
pub fn aligned(core: &mut Core, op: &Op, bytes: u64, kind: AccessKind) -> Result<u64, Leave> {
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, bytes, kind)?;
    if linear & (bytes - 1) == 0 { Ok(linear) } else { Err(core.gp0()) }
}

/// Whether 32 bytes lie in two pages.
#[inline(always)]
fn crosses(linear: u64) -> bool {
    linear & 0xfff > 0x1000 - 32
}

/// 32 bytes of memory.
#[inline(always)]
fn load_both<V: Pod>(core: &mut Core, linear: u64, seg: u8) -> Result<[V; 2], Leave> {
    if crosses(linear) {
        // It is one access: what any byte of it raises comes before the read of a device.
        let access = core.access(AccessKind::Read, seg);
        core.check_slow(linear, 32, access)?;
    }
    let low = core.load_linear::<u128>(linear, seg)?;
    let high = core.load_linear::<u128>(linear.wrapping_add(16), seg)?;
    Ok([*bytemuck::cast_ref(&low), *bytemuck::cast_ref(&high)])
}

/// Stores 32 bytes, or none.
#[inline(always)]
pub fn store_both(core: &mut Core, linear: u64, seg: u8, [low, high]: [u128; 2]) -> Result<(), Leave> {
    if crosses(linear) {
        core.check_store(linear, seg, 32)?;
    }
    // In one page, the second store is allowed what the first one is.
    core.store_linear(linear, seg, low)?;
    core.store_linear(linear.wrapping_add(16), seg, high)
}
