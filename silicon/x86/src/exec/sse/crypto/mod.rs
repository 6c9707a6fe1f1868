//! AES, carry-less multiplication and SHA: functions of vectors, which `lower` makes instructions of.
//!
//! Vectors are 16 bytes in memory order, or words of 32 or 64 bits with the lowest first.

pub mod aes;
pub mod carryless;
pub mod sha1;
pub mod sha256;

#[cfg(test)]
mod tests;
