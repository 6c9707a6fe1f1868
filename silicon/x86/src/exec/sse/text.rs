//! PCMPESTRI, PCMPESTRM, PCMPISTRI and PCMPISTRM ("String and Text Processing Instructions").

use x86_defs::rflags;

use super::operand::{Source, get, set};
use crate::op::Done;
use crate::{Core, Op};

/// Where the lengths of the two fragments come from.
pub trait Lengths {
    /// Lengths in elements, at most `elements`.
    fn lengths(core: &Core, elements: i64, a: &[i32; 16], b: &[i32; 16]) -> (usize, usize);
}

/// The first zero element ends a fragment.
pub struct Implicit;
/// EAX and EDX.
pub struct Explicit32;
/// RAX and RDX.
pub struct Explicit64;

impl Lengths for Implicit {
    fn lengths(_: &Core, elements: i64, a: &[i32; 16], b: &[i32; 16]) -> (usize, usize) {
        let n = elements as usize;
        let length = |s: &[i32; 16]| s[..n].iter().position(|&e| e == 0).unwrap_or(n);
        (length(a), length(b))
    }
}

/// The magnitude, at most `elements`.
fn saturate(length: i64, elements: i64) -> usize {
    length.unsigned_abs().min(elements as u64) as usize
}

impl Lengths for Explicit32 {
    fn lengths(core: &Core, elements: i64, _: &[i32; 16], _: &[i32; 16]) -> (usize, usize) {
        let length = |slot| saturate(i64::from(core.get::<u32>(slot) as i32), elements);
        (length(0), length(2))
    }
}

impl Lengths for Explicit64 {
    fn lengths(core: &Core, elements: i64, _: &[i32; 16], _: &[i32; 16]) -> (usize, usize) {
        let length = |slot| saturate(core.get::<u64>(slot) as i64, elements);
        (length(0), length(2))
    }
}

/// The elements in the format of `imm` bits 1:0, and their number.
fn elements(v: u128, imm: u8) -> ([i32; 16], usize) {
    let bytes = v.to_le_bytes();
    let word = |i: usize| u16::from_le_bytes([bytes[(2 * i) & 15], bytes[(2 * i + 1) & 15]]);
    let n = if imm & 1 == 0 { 16 } else { 8 };
    let element = |i: usize| match imm & 3 {
        0 => i32::from(bytes[i]),
        1 => i32::from(word(i)),
        2 => i32::from(bytes[i] as i8),
        _ => i32::from(word(i) as i16),
    };
    (std::array::from_fn(|i| if i < n { element(i) } else { 0 }), n)
}

/// "Aggregation Operation": bit j of the result belongs to element j of `b`.
fn aggregate(a: &[i32], b: &[i32], n: usize, imm: u8) -> u32 {
    let holds = |j: usize| match imm >> 2 & 3 {
        // Equal any.
        0 => j < b.len() && a.contains(&b[j]),
        // Ranges: pairs of bounds.
        1 => j < b.len() && a.chunks_exact(2).any(|r| r[0] <= b[j] && b[j] <= r[1]),
        // Equal each: two elements past the end are equal.
        2 => a.get(j) == b.get(j),
        // Equal ordered: `a` is found at j; what is past the end of `a` always matches.
        _ => (0..n - j).all(|i| i >= a.len() || b.get(i + j) == Some(&a[i])),
    };
    (0..n).filter(|&j| holds(j)).fold(0, |bits, j| bits | 1 << j)
}

/// IntRes2 and the number of elements; sets the flags.
#[inline(always)]
fn compare<S: Source, L: Lengths>(core: &mut Core, op: &Op) -> Result<(u32, usize), crate::Leave> {
    let b = S::vector::<u128>(core, op)?;
    let a: u128 = get(core, op.a);
    let imm = op.imm as u8;
    let ((a, n), (b, _)) = (elements(a, imm), elements(b, imm));
    let (a_length, b_length) = L::lengths(core, n as i64, &a, &b);
    let result = aggregate(&a[..a_length], &b[..b_length], n, imm);
    // "Polarity".
    let result = match imm >> 4 & 3 {
        1 => result ^ ((1 << n) - 1),
        3 => result ^ ((1 << b_length) - 1),
        _ => result,
    };
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    core.flags.set_bits(
        flag(result != 0, rflags::CF)
            | flag(b_length < n, rflags::ZF)
            | flag(a_length < n, rflags::SF)
            | flag(result & 1 != 0, rflags::OF),
    );
    Ok((result, n))
}

/// PCMPESTRI, PCMPISTRI.
#[inline(always)]
pub fn index<S: Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    set_index::<S, L>(core, op)
}

/// PCMPESTRM, PCMPISTRM.
#[inline(always)]
pub fn mask<S: Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    core.check_sse()?;
    set_mask::<S, L>(core, op)
}

/// ECX becomes the index of the lowest or highest bit, or the number of elements.
#[inline(always)]
pub fn set_index<S: Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    let (result, n) = compare::<S, L>(core, op)?;
    let index = match result {
        0 => n as u32,
        _ if op.imm & 0x40 != 0 => 31 - result.leading_zeros(),
        _ => result.trailing_zeros(),
    };
    core.set(1, index);
    Ok(())
}

/// XMM0 becomes the bits, or a mask of elements.
#[inline(always)]
pub fn set_mask<S: Source, L: Lengths>(core: &mut Core, op: &Op) -> Done {
    let (result, n) = compare::<S, L>(core, op)?;
    let mask = if op.imm & 0x40 == 0 {
        u128::from(result)
    } else {
        let width = 128 / n as u32;
        let ones = (1_u128 << width) - 1;
        (0..n as u32).filter(|i| result >> i & 1 != 0).fold(0, |mask, i| mask | ones << (i * width))
    };
    set(core, 0, mask);
    Ok(())
}
