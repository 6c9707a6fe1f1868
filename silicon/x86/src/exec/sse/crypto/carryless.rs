//! PCLMULQDQ ("PCLMULQDQ—Carry-Less Multiplication Quadword").

/// The product of a half of `a` and a half of `b`: bit 0 of `select` chooses that of `a`, bit 4 that of `b`.
#[inline]
#[must_use]
pub fn multiply(a: [u64; 2], b: [u64; 2], select: u8) -> u128 {
    let a = a[usize::from(select & 1)];
    let b = b[usize::from(select >> 4 & 1)];
    // Four bits of b at a time.
    let a = u128::from(a);
    let mut multiples = [0; 16];
    for i in 1..16 {
        multiples[i] = multiples[i >> 1] << 1 ^ if i & 1 != 0 { a } else { 0 };
    }
    (0..16).rev().fold(0, |product, digit| product << 4 ^ multiples[(b >> (4 * digit) & 15) as usize])
}
