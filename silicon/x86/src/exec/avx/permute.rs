//! Lanes changing places, in ways that SSE does not have; shifts of each lane by a count of its own.

use crate::exec::sse::lane::each;

/// VPERMILPS with the control in a vector.
#[inline(always)]
#[must_use]
pub fn singles(a: [u32; 4], control: [u32; 4]) -> [u32; 4] {
    each(|i| a[(control[i] & 3) as usize])
}

/// VPERMILPD with the control in a vector: bit 1 of each lane.
#[inline(always)]
#[must_use]
pub fn doubles(a: [u64; 2], control: [u64; 2]) -> [u64; 2] {
    each(|i| a[(control[i] >> 1 & 1) as usize])
}

/// VPERMD, VPERMPS: the control is source 1.
#[inline(always)]
#[must_use]
pub fn eight(control: [u32; 8], b: [u32; 8]) -> [u32; 8] {
    each(|i| b[(control[i] & 7) as usize])
}

/// VPERMQ, VPERMPD.
#[inline(always)]
#[must_use]
pub fn four(b: [u64; 4], imm: u8) -> [u64; 4] {
    each(|i| b[(imm >> (2 * i) & 3) as usize])
}

/// VPERM2F128, VPERM2I128.
#[inline(always)]
#[must_use]
pub fn halves(a: [u128; 2], b: [u128; 2], imm: u8) -> [u128; 2] {
    let all = [a[0], a[1], b[0], b[1]];
    each(|i| {
        let field = imm >> (4 * i);
        if field & 8 != 0 { 0 } else { all[(field & 3) as usize] }
    })
}

macro_rules! shifts {
    ($($left:ident $right:ident $t:ty;)*) => {$(
        /// VPSLLVx of one lane: zero when the count is too large.
        #[inline(always)]
        #[must_use]
        pub fn $left(a: $t, count: $t) -> $t {
            if count < <$t>::BITS as $t { a << count } else { 0 }
        }

        /// VPSRLVx of one lane: zero when the count is too large.
        #[inline(always)]
        #[must_use]
        pub fn $right(a: $t, count: $t) -> $t {
            if count < <$t>::BITS as $t { a >> count } else { 0 }
        }
    )*};
}
shifts! { left32 right32 u32; left64 right64 u64; }

/// VPSRAVD of one lane.
#[inline(always)]
#[must_use]
pub fn arithmetic32(a: u32, count: u32) -> u32 {
    (a as i32 >> count.min(31)) as u32
}
