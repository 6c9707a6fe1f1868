//! Exceptions ("Interrupt and Exception Handling").

/// Exception vectors.
pub mod vector {
    pub const DE: u8 = 0;
    pub const DB: u8 = 1;
    pub const NMI: u8 = 2;
    pub const BP: u8 = 3;
    pub const OF: u8 = 4;
    pub const BR: u8 = 5;
    pub const UD: u8 = 6;
    pub const NM: u8 = 7;
    pub const DF: u8 = 8;
    pub const TS: u8 = 10;
    pub const NP: u8 = 11;
    pub const SS: u8 = 12;
    pub const GP: u8 = 13;
    pub const PF: u8 = 14;
    pub const MF: u8 = 16;
    pub const AC: u8 = 17;
    pub const MC: u8 = 18;
    pub const XM: u8 = 19;
    pub const VE: u8 = 20;
    pub const CP: u8 = 21;
}

/// Page-fault error code bits.
pub mod pf {
    pub const PRESENT: u32 = 1 << 0;
    pub const WRITE: u32 = 1 << 1;
    pub const USER: u32 = 1 << 2;
    pub const RESERVED: u32 = 1 << 3;
    pub const FETCH: u32 = 1 << 4;
    pub const PROTECTION_KEY: u32 = 1 << 5;
}
