//! Where code and data of the cases are: the same linear addresses natively and in the model.

/// The code page: readable and executable, filled with INT3.
pub const CODE: u64 = 0x2000_0000;
/// Where the instructions under test are.
pub const START: u64 = CODE + 0x800;
/// Two pages that may be written. Between them and the code is one that is not mapped.
pub const DATA: u64 = 0x2000_2000;
/// Bytes of data.
pub const DATA_BYTES: usize = 0x2000;
/// A page that may only be read, right after the data; the one after it is not mapped.
pub const READ_ONLY: u64 = DATA + DATA_BYTES as u64;
/// Base of GS.
pub const GS_BASE: u64 = DATA + 0x300;

/// What the read-only page holds.
pub fn read_only_byte(offset: usize) -> u8 {
    (offset as u8).wrapping_mul(167) ^ (offset >> 8) as u8
}

/// Whether an address is in the code page.
pub fn is_code(address: u64) -> bool {
    address & !0xfff == CODE
}
