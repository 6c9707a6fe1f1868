//! Packed floating point, lane by lane.

use silicon_float::{F32, F64, Float, Mxcsr, RoundImm, sse};

/// `f` of each pair of lanes.
#[inline(always)]
pub fn lanes<A: Copy, R: Copy + Default, const N: usize>(
    a: [A; N],
    b: [A; N],
    mxcsr: &mut Mxcsr,
    f: impl Fn(A, A, &mut Mxcsr) -> R,
) -> [R; N] {
    let mut out = [R::default(); N];
    for i in 0..N {
        out[i] = f(a[i], b[i], mxcsr);
    }
    out
}

/// `f` of the lanes of `b` that fit; zero in the lanes that are left.
#[inline(always)]
pub fn convert<B: Copy, R: Copy + Default, const N: usize, const M: usize>(
    b: [B; N],
    mxcsr: &mut Mxcsr,
    f: impl Fn(B, &mut Mxcsr) -> R,
) -> [R; M] {
    let mut out = [R::default(); M];
    for (to, from) in out.iter_mut().zip(b) {
        *to = f(from, mxcsr);
    }
    out
}

/// VCMPSS: the low five bits of `predicate` count, of CMPSS the low three.
#[inline(always)]
pub fn compare32(a: u32, b: u32, predicate: u8, mxcsr: &mut Mxcsr) -> u32 {
    if sse::cmp::<F32>(a, b, predicate, mxcsr) { u32::MAX } else { 0 }
}

/// VCMPSD: the low five bits of `predicate` count, of CMPSD the low three.
#[inline(always)]
pub fn compare64(a: u64, b: u64, predicate: u8, mxcsr: &mut Mxcsr) -> u64 {
    if sse::cmp::<F64>(a, b, predicate, mxcsr) { u64::MAX } else { 0 }
}

/// ROUNDSS, ROUNDSD.
#[inline(always)]
pub fn round<F: Float>(b: F::Bits, imm: u8, mxcsr: &mut Mxcsr) -> F::Bits {
    sse::round_to_int::<F>(b, RoundImm(imm), mxcsr)
}

/// ADDSUBPS, ADDSUBPD: even lanes subtract, odd ones add.
#[inline(always)]
pub fn add_sub<F: Float, const N: usize>(a: [F::Bits; N], b: [F::Bits; N], mxcsr: &mut Mxcsr) -> [F::Bits; N] {
    let mut out = a;
    for i in 0..N {
        out[i] = if i & 1 == 0 { sse::sub::<F>(a[i], b[i], mxcsr) } else { sse::add::<F>(a[i], b[i], mxcsr) };
    }
    out
}

/// HADDPS and its kin: `f` of neighbours, those of `a` first.
#[inline(always)]
pub fn horizontal<T: Copy, const N: usize>(
    a: [T; N],
    b: [T; N],
    mxcsr: &mut Mxcsr,
    f: impl Fn(T, T, &mut Mxcsr) -> T,
) -> [T; N] {
    let mut out = a;
    for i in 0..N / 2 {
        out[i] = f(a[2 * i], a[2 * i + 1], mxcsr);
        out[N / 2 + i] = f(b[2 * i], b[2 * i + 1], mxcsr);
    }
    out
}
