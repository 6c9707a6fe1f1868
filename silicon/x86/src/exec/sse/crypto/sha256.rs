//! SHA-256 ("SHA256RNDS2—Perform Two Rounds of SHA256 Operation" and the others; FIPS 180).

/// SHA256RNDS2: two rounds. `cdgh`: H, G, D, C from the lowest word; `abef`: F, E, B, A; the lowest words of `wk` are the
/// message words with the constants added. Gives the new F, E, B, A.
#[inline]
#[must_use]
pub fn rounds(cdgh: [u32; 4], abef: [u32; 4], wk: [u32; 4]) -> [u32; 4] {
    let [mut h, mut g, mut d, mut c] = cdgh;
    let [mut f, mut e, mut b, mut a] = abef;
    for wk in [wk[0], wk[1]] {
        let choice = e & f ^ !e & g;
        let sum_1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let majority = a & b ^ a & c ^ b & c;
        let sum_0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t = choice.wrapping_add(sum_1).wrapping_add(wk).wrapping_add(h);
        (h, g, f, e) = (g, f, e, t.wrapping_add(d));
        (d, c, b, a) = (c, b, a, t.wrapping_add(majority).wrapping_add(sum_0));
    }
    [f, e, b, a]
}

/// SHA256MSG1.
#[inline]
#[must_use]
pub fn schedule_1(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    let sigma = |w: u32| w.rotate_right(7) ^ w.rotate_right(18) ^ w >> 3;
    let [w0, w1, w2, w3] = a;
    let w4 = b[0];
    [(w0, w1), (w1, w2), (w2, w3), (w3, w4)].map(|(w, next)| w.wrapping_add(sigma(next)))
}

/// SHA256MSG2.
#[inline]
#[must_use]
pub fn schedule_2(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    let sigma = |w: u32| w.rotate_right(17) ^ w.rotate_right(19) ^ w >> 10;
    let [_, _, w14, w15] = b;
    let w16 = a[0].wrapping_add(sigma(w14));
    let w17 = a[1].wrapping_add(sigma(w15));
    [w16, w17, a[2].wrapping_add(sigma(w16)), a[3].wrapping_add(sigma(w17))]
}
