//! Multiplication and division ("Binary Arithmetic Instructions").
//!
//! Flags that the manual leaves undefined: SF, ZF and PF of a product follow its low half and AF is 0; a division
//! leaves all flags as they are.

use silicon_memory::Word;
use x86_defs::exception::vector;

use super::operand::{Source, bits, signed};
use crate::op::{Done, Op};
use crate::{Core, Leave};

const RAX: u8 = 0;
const RDX: u8 = 2;

/// Writes a double-width value to AX, or to DX:AX, EDX:EAX, RDX:RAX.
#[inline(always)]
fn set_pair<T: Word>(core: &mut Core, value: u128) {
    if T::BYTES == 1 {
        core.set(RAX, value as u16);
    } else {
        core.set(RAX, T::from_u64(value as u64));
        core.set(RDX, T::from_u64((value >> bits::<T>()) as u64));
    }
}

/// The double-width value in AX, or in DX:AX, EDX:EAX, RDX:RAX.
#[inline(always)]
fn pair<T: Word>(core: &Core) -> u128 {
    if T::BYTES == 1 {
        u128::from(core.get::<u16>(RAX))
    } else {
        u128::from(core.get::<T>(RDX).to_u64()) << bits::<T>() | u128::from(core.get::<T>(RAX).to_u64())
    }
}

/// MUL.
#[inline(always)]
pub fn mul<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = S::read::<T>(core, op)?.to_u64();
    let product = u128::from(core.get::<T>(RAX).to_u64()) * u128::from(b);
    set_pair::<T>(core, product);
    let overflow = product >> bits::<T>() != 0;
    core.flags.result_with::<T>(product as u64, overflow, overflow);
    Ok(())
}

/// The signed product, cut to `T` and whole; sets the flags.
#[inline(always)]
fn signed_product<T: Word>(core: &mut Core, a: T, b: T) -> u128 {
    let product = i128::from(signed(a)) * i128::from(signed(b));
    let overflow = i128::from(signed(T::from_u64(product as u64))) != product;
    core.flags.result_with::<T>(product as u64, overflow, overflow);
    product as u128
}

/// IMUL with one operand.
pub fn imul<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = S::read::<T>(core, op)?;
    let a = core.get::<T>(RAX);
    let product = signed_product(core, a, b);
    set_pair::<T>(core, product);
    Ok(())
}

/// IMUL register, source.
#[inline(always)]
pub fn imul_to_reg<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let b = S::read::<T>(core, op)?;
    let a = core.get::<T>(op.a);
    let product = signed_product(core, a, b);
    core.set(op.a, T::from_u64(product as u64));
    Ok(())
}

/// IMUL register, source, immediate.
#[inline(always)]
pub fn imul_by_imm<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let a = S::read::<T>(core, op)?;
    let product = signed_product(core, a, T::from_u64(op.imm));
    core.set(op.a, T::from_u64(product as u64));
    Ok(())
}

/// MULX: high half to `a`, low half to `b`, source in register `imm` or memory; no flags.
pub fn mulx<T: Word, const MEMORY: bool>(core: &mut Core, op: &Op) -> Done {
    let source = if MEMORY { core.load::<T>(op)? } else { core.get(op.imm as u8) };
    let product = u128::from(core.get::<T>(RDX).to_u64()) * u128::from(source.to_u64());
    core.set(op.b, T::from_u64(product as u64));
    // Where both are one register the high half stays.
    core.set(op.a, T::from_u64((product >> bits::<T>()) as u64));
    Ok(())
}

#[cold]
fn divide_error(core: &mut Core) -> Leave {
    core.raise(vector::DE)
}

#[inline(always)]
fn set_quotient<T: Word>(core: &mut Core, quotient: u64, remainder: u64) {
    if T::BYTES == 1 {
        core.set(RAX, (remainder as u16) << 8 | (quotient as u16 & 0xff));
    } else {
        core.set(RAX, T::from_u64(quotient));
        core.set(RDX, T::from_u64(remainder));
    }
}

/// DIV.
pub fn div<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let divisor = S::read::<T>(core, op)?.to_u64();
    let dividend = pair::<T>(core);
    // The quotient fits where the high half is less than the divisor; this includes a divisor of zero.
    if (dividend >> bits::<T>()) as u64 >= divisor {
        return Err(divide_error(core));
    }
    match u64::try_from(dividend) {
        Ok(dividend) => set_quotient::<T>(core, dividend / divisor, dividend % divisor),
        Err(_) => {
            let divisor = u128::from(divisor);
            set_quotient::<T>(core, (dividend / divisor) as u64, (dividend % divisor) as u64);
        }
    }
    Ok(())
}

/// IDIV.
pub fn idiv<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let divisor = signed(S::read::<T>(core, op)?);
    let drop = 128 - 2 * bits::<T>();
    let dividend = (pair::<T>(core) << drop) as i128 >> drop;
    let (quotient, remainder) = match (i64::try_from(dividend), divisor) {
        (_, 0) => return Err(divide_error(core)),
        (Ok(dividend), divisor) if divisor != -1 => (i128::from(dividend / divisor), dividend % divisor),
        (_, divisor) => {
            let divisor = i128::from(divisor);
            // The one quotient that 128 bits do not hold overflows 64 bits as well.
            let Some(quotient) = dividend.checked_div(divisor) else {
                return Err(divide_error(core));
            };
            (quotient, (dividend - quotient.wrapping_mul(divisor)) as i64)
        }
    };
    if i128::from(signed(T::from_u64(quotient as u64))) != quotient {
        return Err(divide_error(core));
    }
    set_quotient::<T>(core, quotient as u64, remainder as u64);
    Ok(())
}
