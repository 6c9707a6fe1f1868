//! SHA-1 ("SHA1RNDS4—Perform Four Rounds of SHA1 Operation" and the others; FIPS 180).
//!
//! The first of the four words of the standard is the highest of the vector.

/// SHA1RNDS4: four rounds of the group that bits 1:0 of `group` choose. `a`: A, B, C, D; `b`: E + W0, W1, W2, W3.
#[inline]
#[must_use]
pub fn rounds(a: [u32; 4], b: [u32; 4], group: u8) -> [u32; 4] {
    let [mut d, mut c, mut b_, mut a_] = a;
    let [w3, w2, w1, w0] = b;
    let (constant, f): (u32, fn(u32, u32, u32) -> u32) = match group & 3 {
        0 => (0x5a82_7999, |b, c, d| b & c ^ !b & d),
        1 => (0x6ed9_eba1, |b, c, d| b ^ c ^ d),
        2 => (0x8f1b_bcdc, |b, c, d| b & c ^ b & d ^ c & d),
        _ => (0xca62_c1d6, |b, c, d| b ^ c ^ d),
    };
    let mut e = 0;
    for w in [w0, w1, w2, w3] {
        let next = f(b_, c, d).wrapping_add(a_.rotate_left(5)).wrapping_add(w).wrapping_add(e).wrapping_add(constant);
        (e, d, c, b_, a_) = (d, c, b_.rotate_left(30), a_, next);
    }
    [d, c, b_, a_]
}

/// SHA1NEXTE: E after four rounds, of A before them, added to the first word of the schedule.
#[inline]
#[must_use]
pub fn next_e(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    [b[0], b[1], b[2], b[3].wrapping_add(a[3].rotate_left(30))]
}

/// SHA1MSG1.
#[inline]
#[must_use]
pub fn schedule_1(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    let [w3, w2, w1, w0] = a;
    let [_, _, w5, w4] = b;
    [w5 ^ w3, w4 ^ w2, w3 ^ w1, w2 ^ w0]
}

/// SHA1MSG2.
#[inline]
#[must_use]
pub fn schedule_2(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    let [w15, w14, w13, _] = b;
    let w16 = (a[3] ^ w13).rotate_left(1);
    let w17 = (a[2] ^ w14).rotate_left(1);
    let w18 = (a[1] ^ w15).rotate_left(1);
    let w19 = (a[0] ^ w16).rotate_left(1);
    [w19, w18, w17, w16]
}
