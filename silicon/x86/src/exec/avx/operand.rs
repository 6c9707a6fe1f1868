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
        let low = core.load_linear::<u128>(linear, op.seg)?;
        let high = core.load_linear::<u128>(linear.wrapping_add(16), op.seg)?;
        Ok([*bytemuck::cast_ref(&low), *bytemuck::cast_ref(&high)])
    }
}
