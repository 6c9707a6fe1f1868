//! Lanes of vectors.

use bytemuck::Pod;

// Lanes are cast to and from the register file in the order of the host.
const _: () = assert!(cfg!(target_endian = "little"), "the engine needs a little-endian host");

/// An element of a vector.
pub trait Lane: Pod {
    /// A whole XMM register.
    type Xmm: Pod;
    /// A whole MMX register.
    type Mm: Pod;
}

macro_rules! lane {
    ($($t:ty: $xmm:literal, $mm:literal;)*) => {$(
        impl Lane for $t {
            type Xmm = [$t; $xmm];
            type Mm = [$t; $mm];
        }
    )*};
}
lane! {
    u8: 16, 8;
    i8: 16, 8;
    u16: 8, 4;
    i16: 8, 4;
    u32: 4, 2;
    i32: 4, 2;
    u64: 2, 1;
    i64: 2, 1;
}

/// `f` of each pair of lanes.
#[inline(always)]
pub fn zip<A: Copy, R: Copy + Default, const N: usize>(a: [A; N], b: [A; N], f: impl Fn(A, A) -> R) -> [R; N] {
    let mut out = [R::default(); N];
    for i in 0..N {
        out[i] = f(a[i], b[i]);
    }
    out
}

/// `f` of each lane.
#[inline(always)]
pub fn map<A: Copy, R: Copy + Default, const N: usize>(a: [A; N], f: impl Fn(A) -> R) -> [R; N] {
    let mut out = [R::default(); N];
    for i in 0..N {
        out[i] = f(a[i]);
    }
    out
}

/// `f` of each lane number.
#[inline(always)]
pub fn each<R: Copy + Default, const N: usize>(f: impl Fn(usize) -> R) -> [R; N] {
    let mut out = [R::default(); N];
    for (i, lane) in out.iter_mut().enumerate() {
        *lane = f(i);
    }
    out
}
