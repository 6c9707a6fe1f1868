//! Lanes changing places.

use super::lane::each;

/// PUNPCKLxx, UNPCKLPx: lanes of the low halves in turn.
#[inline(always)]
#[must_use]
pub fn unpack_low<T: Copy + Default, const N: usize>(a: [T; N], b: [T; N]) -> [T; N] {
    each(|i| if i & 1 == 0 { a[i / 2] } else { b[i / 2] })
}

/// PUNPCKHxx, UNPCKHPx: lanes of the high halves in turn.
#[inline(always)]
#[must_use]
pub fn unpack_high<T: Copy + Default, const N: usize>(a: [T; N], b: [T; N]) -> [T; N] {
    each(|i| if i & 1 == 0 { a[N / 2 + i / 2] } else { b[N / 2 + i / 2] })
}

/// PSHUFB.
#[inline(always)]
#[must_use]
pub fn bytes<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    each(|i| if b[i] & 0x80 != 0 { 0 } else { a[usize::from(b[i]) & (N - 1)] })
}

/// Field `i` of two bits.
#[inline(always)]
fn field(imm: u8, i: usize) -> usize {
    usize::from(imm >> (2 * (i & 3)) & 3)
}

/// PSHUFD, PSHUFW.
#[inline(always)]
#[must_use]
pub fn four<T: Copy + Default>(b: [T; 4], imm: u8) -> [T; 4] {
    each(|i| b[field(imm, i)])
}

/// PSHUFLW.
#[inline(always)]
#[must_use]
pub fn low_words(b: [u16; 8], imm: u8) -> [u16; 8] {
    each(|i| if i < 4 { b[field(imm, i)] } else { b[i] })
}

/// PSHUFHW.
#[inline(always)]
#[must_use]
pub fn high_words(b: [u16; 8], imm: u8) -> [u16; 8] {
    each(|i| if i < 4 { b[i] } else { b[4 + field(imm, i)] })
}

/// SHUFPS.
#[inline(always)]
#[must_use]
pub fn singles(a: [u32; 4], b: [u32; 4], imm: u8) -> [u32; 4] {
    each(|i| if i < 2 { a[field(imm, i)] } else { b[field(imm, i)] })
}

/// SHUFPD.
#[inline(always)]
#[must_use]
pub fn doubles(a: [u64; 2], b: [u64; 2], imm: u8) -> [u64; 2] {
    [a[usize::from(imm & 1)], b[usize::from(imm >> 1 & 1)]]
}

/// PALIGNR: `b` below `a`, shifted right by `imm` bytes.
#[inline(always)]
#[must_use]
pub fn align<const N: usize>(a: [u8; N], b: [u8; N], imm: u8) -> [u8; N] {
    each(|i| match i + usize::from(imm) {
        j if j < N => b[j],
        j if j < 2 * N => a[j - N],
        _ => 0,
    })
}

/// PSLLDQ.
#[inline(always)]
#[must_use]
pub fn left(a: u128, imm: u8) -> u128 {
    if imm > 15 { 0 } else { a << (u32::from(imm) * 8) }
}

/// PSRLDQ.
#[inline(always)]
#[must_use]
pub fn right(a: u128, imm: u8) -> u128 {
    if imm > 15 { 0 } else { a >> (u32::from(imm) * 8) }
}

/// PBLENDW, BLENDPS, BLENDPD: `b` where the bit of `imm` is set.
#[inline(always)]
#[must_use]
pub fn blend<T: Copy + Default, const N: usize>(a: [T; N], b: [T; N], imm: u8) -> [T; N] {
    each(|i| if imm >> i & 1 != 0 { b[i] } else { a[i] })
}

macro_rules! blend_by_sign {
    ($($name:ident $t:ty, $n:literal;)*) => {$(
        /// PBLENDVB, BLENDVPS, BLENDVPD: `b` where the sign of the mask is set.
        #[inline(always)]
        #[must_use]
        pub fn $name(a: [$t; $n], b: [$t; $n], mask: [$t; $n]) -> [$t; $n] {
            each(|i| if mask[i] < 0 { b[i] } else { a[i] })
        }
    )*};
}
blend_by_sign! { blend_bytes i8, 16; blend_singles i32, 4; blend_doubles i64, 2; }

/// INSERTPS, with the source lane already chosen.
#[inline(always)]
#[must_use]
pub fn insert_single(mut a: [u32; 4], value: u32, imm: u8) -> [u32; 4] {
    a[usize::from(imm >> 4 & 3)] = value;
    each(|i| if imm >> i & 1 != 0 { 0 } else { a[i] })
}

/// `a` with lane `imm` replaced: PINSRx.
#[inline(always)]
#[must_use]
pub fn insert<T: Copy, const N: usize>(mut a: [T; N], value: T, imm: u8) -> [T; N] {
    a[usize::from(imm) & (N - 1)] = value;
    a
}

/// Lane `imm`: PEXTRx.
#[inline(always)]
#[must_use]
pub fn pick<T: Copy, const N: usize>(a: [T; N], imm: u8) -> T {
    a[usize::from(imm) & (N - 1)]
}

/// PMOVZX, PMOVSX: the low lanes of `b` (given as an array of all lanes of that size), converted.
#[inline(always)]
#[must_use]
pub fn extend<A: Copy, R: Copy + Default + From<A>, const N: usize, const M: usize>(b: [A; N]) -> [R; M] {
    each(|i| R::from(b[i]))
}
