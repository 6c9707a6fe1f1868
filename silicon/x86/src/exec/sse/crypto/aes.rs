//! AES rounds ("AESENC—Perform One Round of an AES Encryption Flow" and the others; FIPS 197).
//!
//! The state is four columns, each the little-endian word of its four bytes. Tables are made at compile time from the
//! arithmetic of the standard.

/// A state or round key: columns 0-3.
pub type State = [u32; 4];

/// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    product
}

/// SubBytes: the multiplicative inverse, then an affine map. 3 generates the field, 0xf6 is its inverse.
const SUBSTITUTE: [u8; 256] = {
    let mut table = [0; 256];
    let (mut power, mut inverse) = (1_u8, 1_u8);
    loop {
        let i = inverse;
        table[power as usize] = i ^ i.rotate_left(1) ^ i.rotate_left(2) ^ i.rotate_left(3) ^ i.rotate_left(4) ^ 0x63;
        power = multiply(power, 3);
        inverse = multiply(inverse, 0xf6);
        if power == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
};

const SUBSTITUTE_BACK: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[SUBSTITUTE[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// What a byte of row 0, after `substitute`, adds to its column by the polynomial `coefficients` (lowest row first).
const fn mix_table(substitute: &[u8; 256], coefficients: [u8; 4]) -> [u32; 256] {
    let [c0, c1, c2, c3] = coefficients;
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let s = substitute[i];
        table[i] = u32::from_le_bytes([multiply(s, c0), multiply(s, c1), multiply(s, c2), multiply(s, c3)]);
        i += 1;
    }
    table
}

const IDENTITY: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = i as u8;
        i += 1;
    }
    table
};

/// SubBytes and MixColumns.
static ENCRYPT: [u32; 256] = mix_table(&SUBSTITUTE, [2, 1, 1, 3]);
/// InvSubBytes and InvMixColumns.
static DECRYPT: [u32; 256] = mix_table(&SUBSTITUTE_BACK, [14, 9, 13, 11]);
/// InvMixColumns alone.
static MIX_BACK: [u32; 256] = mix_table(&IDENTITY, [14, 9, 13, 11]);
static SUBSTITUTE_TABLE: [u8; 256] = SUBSTITUTE;
static SUBSTITUTE_BACK_TABLE: [u8; 256] = SUBSTITUTE_BACK;

/// Byte `row` of a column.
#[inline(always)]
fn byte(column: u32, row: u32) -> usize {
    (column >> (8 * row) & 0xff) as usize
}

/// ShiftRows: row r of column c comes from column c + r; and back: from column c - r.
#[inline(always)]
fn shifted(state: &State, c: usize, row: u32) -> usize {
    byte(state[(c + row as usize) & 3], row)
}

#[inline(always)]
fn shifted_back(state: &State, c: usize, row: u32) -> usize {
    byte(state[(c + 4 - row as usize) & 3], row)
}

#[inline(always)]
fn with_key(key: State, column: impl Fn(usize) -> u32) -> State {
    std::array::from_fn(|c| column(c) ^ key[c])
}

/// AESENC.
#[inline]
#[must_use]
pub fn encrypt(state: State, key: State) -> State {
    with_key(key, |c| (0..4).fold(0, |sum, row| sum ^ ENCRYPT[shifted(&state, c, row)].rotate_left(8 * row)))
}

/// AESENCLAST.
#[inline]
#[must_use]
pub fn encrypt_last(state: State, key: State) -> State {
    with_key(key, |c| {
        (0..4).fold(0, |sum, row| sum | u32::from(SUBSTITUTE_TABLE[shifted(&state, c, row)]) << (8 * row))
    })
}

/// AESDEC.
#[inline]
#[must_use]
pub fn decrypt(state: State, key: State) -> State {
    with_key(key, |c| (0..4).fold(0, |sum, row| sum ^ DECRYPT[shifted_back(&state, c, row)].rotate_left(8 * row)))
}

/// AESDECLAST.
#[inline]
#[must_use]
pub fn decrypt_last(state: State, key: State) -> State {
    with_key(key, |c| {
        (0..4).fold(0, |sum, row| sum | u32::from(SUBSTITUTE_BACK_TABLE[shifted_back(&state, c, row)]) << (8 * row))
    })
}

/// AESIMC.
#[inline]
#[must_use]
pub fn mix_columns_back(state: State) -> State {
    state.map(|column| (0..4).fold(0, |sum, row| sum ^ MIX_BACK[byte(column, row)].rotate_left(8 * row)))
}

/// AESKEYGENASSIST: `round_constant` is the immediate.
#[inline]
#[must_use]
pub fn key_assist([_, x1, _, x3]: State, round_constant: u8) -> State {
    let substitute = |word: u32| u32::from_le_bytes(word.to_le_bytes().map(|b| SUBSTITUTE_TABLE[usize::from(b)]));
    let (s1, s3) = (substitute(x1), substitute(x3));
    let constant = u32::from(round_constant);
    [s1, s1.rotate_right(8) ^ constant, s3, s3.rotate_right(8) ^ constant]
}
