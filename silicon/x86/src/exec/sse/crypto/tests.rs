//! Published vectors, put through the instructions' functions as programs use them.

use super::{aes, carryless, sha1, sha256};

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn state(text: &str) -> aes::State {
    let bytes = bytes(text);
    std::array::from_fn(|c| u32::from_le_bytes(bytes[4 * c..4 * c + 4].try_into().unwrap()))
}

/// The key schedule of AES-128, as code with AESKEYGENASSIST makes it.
fn expand(key: aes::State) -> Vec<aes::State> {
    let mut keys = vec![key];
    for constant in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36] {
        let [mut w0, mut w1, mut w2, mut w3] = *keys.last().unwrap();
        w0 ^= aes::key_assist([w0, w1, w2, w3], constant)[3];
        w1 ^= w0;
        w2 ^= w1;
        w3 ^= w2;
        keys.push([w0, w1, w2, w3]);
    }
    keys
}

fn xor(a: aes::State, b: aes::State) -> aes::State {
    std::array::from_fn(|i| a[i] ^ b[i])
}

#[test]
fn aes_128_is_that_of_fips_197() {
    // "Cipher Example" and "AES-128 (Nk=4, Nr=10)".
    for (key, plain, cipher) in [
        ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
        ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
    ] {
        let keys = expand(state(key));
        let mut s = xor(state(plain), keys[0]);
        for &key in &keys[1..10] {
            s = aes::encrypt(s, key);
        }
        s = aes::encrypt_last(s, keys[10]);
        assert_eq!(s, state(cipher));
        s = xor(s, keys[10]);
        for &key in keys[1..10].iter().rev() {
            s = aes::decrypt(s, aes::mix_columns_back(key));
        }
        assert_eq!(aes::decrypt_last(s, keys[0]), state(plain));
    }
}

#[test]
fn the_key_expansion_is_that_of_fips_197() {
    // "Expansion of a 128-bit Cipher Key": w4-w7 and w40-w43.
    let keys = expand(state("2b7e151628aed2a6abf7158809cf4f3c"));
    assert_eq!(keys[1], state("a0fafe1788542cb123a339392a6c7605"));
    assert_eq!(keys[10], state("d014f9a8c9ee2589e13f0cc8b6630ca6"));
}

#[test]
fn carryless_products_are_those_of_intels_paper() {
    // "Intel Carry-Less Multiplication Instruction and its Usage for Computing the GCM Mode", the examples of PCLMULQDQ.
    let (a, b) = ([0x5b477565726f6e5d, 0x4869285368617929], [0x63746f725d53475d, 0x7b5b546573745665]);
    for (select, product) in [
        (0x00, 0x1d4d84c85c3440c0929633d5d36f0451_u128),
        (0x01, 0x1bd17c8d556ab5a17fa540ac2a281315),
        (0x10, 0x1a2bf6db3a30862fbabf262df4b7d5c9),
        (0x11, 0x1d1e1f2c592e7c45d66ee03e410fd4ed),
    ] {
        assert_eq!(carryless::multiply(a, b, select), product, "{select:#x}");
    }
    assert_eq!(carryless::multiply(a, b, 0xee), carryless::multiply(a, b, 0), "the other bits do not count");
}

/// The padded block of a message below 56 bytes, as big-endian words.
fn block(message: &[u8]) -> [u32; 16] {
    let mut block = [0; 64];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    block[56..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    std::array::from_fn(|i| u32::from_be_bytes(block[4 * i..4 * i + 4].try_into().unwrap()))
}

fn add(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

#[test]
fn sha_1_is_that_of_fips_180() {
    // "SHA-1 Example (One-Block Message)": "abc".
    let w = block(b"abc");
    // The first word is the highest of its vector.
    let mut schedule: Vec<[u32; 4]> = w.chunks(4).map(|c| [c[3], c[2], c[1], c[0]]).collect();
    for i in 4..20 {
        let first = sha1::schedule_1(schedule[i - 4], schedule[i - 3]);
        let mixed = std::array::from_fn(|j| first[j] ^ schedule[i - 2][j]);
        schedule.push(sha1::schedule_2(mixed, schedule[i - 1]));
    }
    let start = [0x1032_5476, 0x98ba_dcfe, 0xefcd_ab89, 0x6745_2301];
    let (mut abcd, mut before) = (start, start);
    for (i, &words) in schedule.iter().enumerate() {
        let e = if i == 0 { add(words, [0, 0, 0, 0xc3d2_e1f0]) } else { sha1::next_e(before, words) };
        before = abcd;
        abcd = sha1::rounds(abcd, e, (i / 5) as u8);
    }
    let e = sha1::next_e(before, [0, 0, 0, 0xc3d2_e1f0])[3];
    let [d, c, b, a] = add(abcd, start);
    assert_eq!([a, b, c, d, e], [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c, 0x9cd0_d89d]);
}

#[test]
fn sha_256_is_that_of_fips_180() {
    // "SHA-256 Example (One-Block Message)": "abc". The constants are the fractions of the cube roots of primes.
    let primes: Vec<u32> = (2..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    let constants: Vec<u32> = primes[..64].iter().map(|&p| fraction_of_cube_root(p)).collect();
    assert_eq!((constants[0], constants[63]), (0x428a_2f98, 0xc671_78f2));
    let w = block(b"abc");
    let mut schedule: Vec<[u32; 4]> = w.chunks(4).map(|c| c.try_into().unwrap()).collect();
    for i in 4..16 {
        let [_, a, b, c] = schedule[i - 2];
        let sevens = [a, b, c, schedule[i - 1][0]];
        let first = add(sha256::schedule_1(schedule[i - 4], schedule[i - 3]), sevens);
        schedule.push(sha256::schedule_2(first, schedule[i - 1]));
    }
    let start =
        ([0x9b05_688c, 0x510e_527f, 0xbb67_ae85, 0x6a09_e667], [0x5be0_cd19, 0x1f83_d9ab, 0xa54f_f53a, 0x3c6e_f372]);
    let (mut abef, mut cdgh) = start;
    for (i, &words) in schedule.iter().enumerate() {
        let wk = add(words, constants[4 * i..4 * i + 4].try_into().unwrap());
        for wk in [wk, [wk[2], wk[3], 0, 0]] {
            (abef, cdgh) = (sha256::rounds(cdgh, abef, wk), abef);
        }
    }
    let ([f, e, b, a], [h, g, d, c]) = (add(abef, start.0), add(cdgh, start.1));
    assert_eq!(
        [a, b, c, d, e, f, g, h],
        [0xba78_16bf, 0x8f01_cfea, 0x4141_40de, 0x5dae_2223, 0xb003_61a3, 0x9617_7a9c, 0xb410_ff61, 0xf200_15ad]
    );
}

/// The first 32 bits of the fraction of the cube root of `n`.
fn fraction_of_cube_root(n: u32) -> u32 {
    // The largest r with r^3 <= n * 2^96, by bits: r has at most 35 of them.
    let n = u128::from(n) << 96;
    let root = (0..36).rev().fold(0_u128, |r, bit| {
        let next = r | 1 << bit;
        if next * next * next <= n { next } else { r }
    });
    root as u32
}
