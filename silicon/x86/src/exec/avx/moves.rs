//! Stores, and what is not a function of two vectors.

use bytemuck::Pod;
use silicon_float::Mxcsr;
use silicon_memory::Word;
use x86_defs::rflags;

use super::operand::{Source, aligned, get, set, set_low, store_both, vvvv};
use crate::exec::sse::moves::store_bytes;
use crate::exec::sse::operand as sse;
use crate::exec::sse::text::{Lengths, set_index, set_mask};
use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Op};

/// VMOVUPS and its kin to memory.
#[inline(always)]
pub fn store<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value: [u128; 2] = get(core, op.b);
    if !WIDE {
        return core.store(op, value[0]);
    }
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, 32, AccessKind::Write)?;
    store_both(core, linear, op.seg, value)
}

/// VMOVAPS, VMOVNTPS and their kin to memory.
#[inline(always)]
pub fn store_aligned<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value: [u128; 2] = get(core, op.b);
    let linear = aligned(core, op, if WIDE { 32 } else { 16 }, AccessKind::Write)?;
    if WIDE { store_both(core, linear, op.seg, value) } else { core.store_linear(linear, op.seg, value[0]) }
}

/// VMOVSS, VMOVQ and their kin to memory: the lowest bytes of the register.
#[inline(always)]
pub fn store_low<T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value: T = sse::low(core, op.b);
    core.store(op, value)
}

/// The register becomes the scalar, zero-extended.
#[inline(always)]
pub fn load_scalar<S: sse::Source, T: Word + Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value = S::scalar::<T>(core, op)?;
    set_low(core, op.a, [value.to_u64(), 0]);
    Ok(())
}

/// VEXTRACTF128, VEXTRACTI128 to a register.
pub fn extract_half(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let halves: [u128; 2] = get(core, op.b);
    set_low(core, op.a, halves[(op.imm & 1) as usize]);
    Ok(())
}

/// VEXTRACTF128, VEXTRACTI128 to memory.
pub fn store_half(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let halves: [u128; 2] = get(core, op.b);
    core.store(op, halves[(op.imm & 1) as usize])
}

/// VMASKMOVDQU.
pub fn masked_store_bytes(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let ([bytes, _], [mask, _]): ([[u8; 16]; 2], [[u8; 16]; 2]) = (get(core, op.a), get(core, op.b));
    store_bytes(core, op, &bytes, &mask)
}

/// Registers that there are: YMM8-15 only in 64-bit mode, and elsewhere they stay as they are.
fn registers(core: &Core) -> u8 {
    if core.mode.is_64() { 16 } else { 8 }
}

/// VZEROUPPER.
pub fn zero_upper(core: &mut Core, _: &Op) -> Done {
    core.check_avx()?;
    for slot in 0..registers(core) {
        core.fpu.ymm_high[slot as usize] = 0;
    }
    Ok(())
}

/// VZEROALL.
pub fn zero_all(core: &mut Core, _: &Op) -> Done {
    core.check_avx()?;
    for slot in 0..registers(core) {
        set::<u128>(core, slot, [0; 2]);
    }
    Ok(())
}

/// VLDMXCSR: #GP(0) for reserved bits.
pub fn ldmxcsr(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value = core.load::<u32>(op)?;
    if value & !Mxcsr::WRITABLE != 0 {
        return Err(core.gp0());
    }
    core.fpu.mxcsr = value;
    Ok(())
}

/// VSTMXCSR.
pub fn stmxcsr(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    core.store(op, core.fpu.mxcsr)
}

/// VPTEST, and with the `bits` that count, VTESTPS and VTESTPD.
#[inline(always)]
pub fn test<const WIDE: bool, S: Source>(core: &mut Core, op: &Op, bits: u128) -> Done {
    core.check_avx()?;
    let a: [u128; 2] = get(core, op.a);
    let (both, second) = if WIDE {
        let b = S::both::<u128>(core, op)?;
        (a[0] & b[0] | a[1] & b[1], !a[0] & b[0] | !a[1] & b[1])
    } else {
        let b = S::half::<u128>(core, op)?;
        (a[0] & b, !a[0] & b)
    };
    let zf = if both & bits == 0 { rflags::ZF } else { 0 };
    let cf = if second & bits == 0 { rflags::CF } else { 0 };
    core.flags.set_bits(zf | cf);
    Ok(())
}

/// VPCMPESTRI, VPCMPISTRI.
#[inline(always)]
pub fn text_index<S: sse::Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    set_index::<S, L>(core, op)
}

/// VPCMPESTRM, VPCMPISTRM.
#[inline(always)]
pub fn text_mask<S: sse::Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    set_mask::<S, L>(core, op)?;
    core.fpu.ymm_high[0] = 0;
    Ok(())
}

/// VBROADCASTF128, VBROADCASTI128.
pub fn broadcast_half(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let value = core.load::<u128>(op)?;
    set(core, op.a, [value; 2]);
    Ok(())
}

/// VMOVSS, VMOVSD of registers: the low lane of source 2, the rest of source 1.
#[inline(always)]
pub fn merge_low<T: Pod>(core: &mut Core, op: &Op) -> Done {
    core.check_avx()?;
    let low: T = sse::low(core, op.b);
    let [mut value, _] = get::<u128>(core, vvvv(op));
    bytemuck::bytes_of_mut(&mut value)[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&low));
    set_low(core, op.a, value);
    Ok(())
}
