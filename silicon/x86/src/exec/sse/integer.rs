//! Packed integer arithmetic.

use super::lane::{each, map, zip};

/// All ones or zero.
macro_rules! mask {
    ($c:expr, $t:ty) => {
        if $c { <$t>::MAX } else { 0 }
    };
}

macro_rules! equal {
    ($($name:ident $t:ty;)*) => {$(
        #[inline(always)]
        #[must_use]
        pub fn $name(a: $t, b: $t) -> $t {
            mask!(a == b, $t)
        }
    )*};
}
equal! { equal8 u8; equal16 u16; equal32 u32; equal64 u64; }

macro_rules! greater {
    ($($name:ident $t:ty;)*) => {$(
        #[inline(always)]
        #[must_use]
        pub fn $name(a: $t, b: $t) -> $t {
            -<$t>::from(a > b)
        }
    )*};
}
greater! { greater8 i8; greater16 i16; greater32 i32; greater64 i64; }

/// PAVGB.
#[inline(always)]
#[must_use]
pub fn average8(a: u8, b: u8) -> u8 {
    ((u16::from(a) + u16::from(b) + 1) >> 1) as u8
}

/// PAVGW.
#[inline(always)]
#[must_use]
pub fn average16(a: u16, b: u16) -> u16 {
    ((u32::from(a) + u32::from(b) + 1) >> 1) as u16
}

/// PMULHW.
#[inline(always)]
#[must_use]
pub fn multiply_high(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

/// PMULHUW.
#[inline(always)]
#[must_use]
pub fn multiply_high_unsigned(a: u16, b: u16) -> u16 {
    ((u32::from(a) * u32::from(b)) >> 16) as u16
}

/// PMULHRSW.
#[inline(always)]
#[must_use]
pub fn multiply_high_rounded(a: i16, b: i16) -> i16 {
    ((((i32::from(a) * i32::from(b)) >> 14) + 1) >> 1) as i16
}

/// PMULUDQ.
#[inline(always)]
#[must_use]
pub fn multiply_even_unsigned(a: u64, b: u64) -> u64 {
    (a & 0xffff_ffff) * (b & 0xffff_ffff)
}

/// PMULDQ.
#[inline(always)]
#[must_use]
pub fn multiply_even(a: i64, b: i64) -> i64 {
    i64::from(a as i32) * i64::from(b as i32)
}

macro_rules! sign {
    ($($name:ident $t:ty;)*) => {$(
        /// PSIGNB, PSIGNW, PSIGND.
        #[inline(always)]
        #[must_use]
        pub fn $name(a: $t, b: $t) -> $t {
            match b.signum() {
                -1 => a.wrapping_neg(),
                0 => 0,
                _ => a,
            }
        }
    )*};
}
sign! { sign8 i8; sign16 i16; sign32 i32; }

/// PMADDWD.
#[inline(always)]
#[must_use]
pub fn multiply_add<const N: usize, const M: usize>(a: [i16; N], b: [i16; N]) -> [i32; M] {
    let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
    each(|i| product(2 * i).wrapping_add(product(2 * i + 1)))
}

/// PMADDUBSW.
#[inline(always)]
#[must_use]
pub fn multiply_add_bytes<const N: usize, const M: usize>(a: [u8; N], b: [u8; N]) -> [i16; M] {
    let product = |i: usize| i32::from(a[i]) * i32::from(b[i] as i8);
    each(|i| saturate_i16(product(2 * i) + product(2 * i + 1)))
}

/// PSADBW.
#[inline(always)]
#[must_use]
pub fn sum_of_differences<const N: usize, const M: usize>(a: [u8; N], b: [u8; N]) -> [u64; M] {
    each(|i| (0..8).map(|j| u64::from(a[8 * i + j].abs_diff(b[8 * i + j]))).sum())
}

/// MPSADBW.
#[inline(always)]
#[must_use]
pub fn multiple_sums_of_differences(a: [u8; 16], b: [u8; 16], imm: u8) -> [u16; 8] {
    let (left, right) = (usize::from(imm >> 2 & 1) * 4, usize::from(imm & 3) * 4);
    each(|i| (0..4).map(|j| u16::from(a[left + i + j].abs_diff(b[right + j]))).sum())
}

/// PHMINPOSUW.
#[inline(always)]
#[must_use]
pub fn minimum_position(b: [u16; 8]) -> [u16; 8] {
    let mut at = 0;
    for i in 1..8 {
        if b[i] < b[at] {
            at = i;
        }
    }
    [b[at], at as u16, 0, 0, 0, 0, 0, 0]
}

/// PHADDW, PHADDD, PHADDSW and the subtractions: `f` of neighbours.
#[inline(always)]
#[must_use]
pub fn horizontal<T: Copy + Default, const N: usize>(a: [T; N], b: [T; N], f: impl Fn(T, T) -> T) -> [T; N] {
    each(|i| {
        let (from, j) = if i < N / 2 { (&a, 2 * i) } else { (&b, 2 * i - N) };
        f(from[j], from[j + 1])
    })
}

#[inline(always)]
#[must_use]
fn saturate_i16(v: i32) -> i16 {
    v.clamp(-0x8000, 0x7fff) as i16
}

/// PACKSSWB.
#[inline(always)]
#[must_use]
pub fn narrow_i8(v: i16) -> u8 {
    v.clamp(-0x80, 0x7f) as u8
}

/// PACKUSWB.
#[inline(always)]
#[must_use]
pub fn narrow_u8(v: i16) -> u8 {
    v.clamp(0, 0xff) as u8
}

/// PACKSSDW.
#[inline(always)]
#[must_use]
pub fn narrow_i16(v: i32) -> u16 {
    saturate_i16(v) as u16
}

/// PACKUSDW.
#[inline(always)]
#[must_use]
pub fn narrow_u16(v: i32) -> u16 {
    v.clamp(0, 0xffff) as u16
}

/// PACKxx: `f` of the lanes of `a`, then of `b`.
#[inline(always)]
#[must_use]
pub fn pack<A: Copy, R: Copy + Default, const N: usize, const M: usize>(
    a: [A; N],
    b: [A; N],
    f: impl Fn(A) -> R,
) -> [R; M] {
    each(|i| f(if i < N { a[i] } else { b[i - N] }))
}

macro_rules! shifts {
    ($($left:ident $right:ident $t:ty;)*) => {$(
        /// PSLLx: zero when the count is too large.
        #[inline(always)]
        #[must_use]
        pub fn $left<const N: usize>(a: [$t; N], count: u64) -> [$t; N] {
            if count >= u64::from(<$t>::BITS) { [0; N] } else { map(a, |v| v << count) }
        }

        /// PSRLx: zero when the count is too large.
        #[inline(always)]
        #[must_use]
        pub fn $right<const N: usize>(a: [$t; N], count: u64) -> [$t; N] {
            if count >= u64::from(<$t>::BITS) { [0; N] } else { map(a, |v| v >> count) }
        }
    )*};
}
shifts! { left16 right16 u16; left32 right32 u32; left64 right64 u64; }

/// PSRAW.
#[inline(always)]
#[must_use]
pub fn arithmetic16<const N: usize>(a: [i16; N], count: u64) -> [i16; N] {
    let count = count.min(15);
    map(a, |v| v >> count)
}

/// PSRAD.
#[inline(always)]
#[must_use]
pub fn arithmetic32<const N: usize>(a: [i32; N], count: u64) -> [i32; N] {
    let count = count.min(31);
    map(a, |v| v >> count)
}

/// ANDN: of the inverted destination.
#[inline(always)]
#[must_use]
pub fn and_not<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    zip(a, b, |x, y| !x & y)
}

/// PMOVMSKB.
#[inline(always)]
#[must_use]
pub fn byte_signs(bytes: &[u8]) -> u64 {
    let mut signs = 0;
    for half in bytes.chunks_exact(8).rev() {
        let word = half.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
        // Gathers bit 7 of every byte in the top byte.
        signs = signs << 8 | ((word >> 7 & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56);
    }
    signs
}
