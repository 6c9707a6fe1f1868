//! Segment access rights in the layout of the VMCS ("Guest Register State"), which is the descriptor's bytes 5 and 6.

pub mod rights {
    pub const TYPE: u32 = 0xf;
    pub const ACCESSED: u32 = 1 << 0;
    /// Data: writable. Code: readable.
    pub const WRITABLE: u32 = 1 << 1;
    pub const READABLE: u32 = 1 << 1;
    /// Data: expands down. Code: conforming.
    pub const EXPAND_DOWN: u32 = 1 << 2;
    pub const CONFORMING: u32 = 1 << 2;
    pub const CODE: u32 = 1 << 3;
    /// Code or data (clear: system).
    pub const S: u32 = 1 << 4;
    pub const DPL: u32 = 3 << 5;
    pub const DPL_SHIFT: u32 = 5;
    pub const P: u32 = 1 << 7;
    pub const AVL: u32 = 1 << 12;
    pub const L: u32 = 1 << 13;
    /// Default size of a code segment; size of the stack pointer of a stack segment.
    pub const DB: u32 = 1 << 14;
    pub const G: u32 = 1 << 15;
    pub const UNUSABLE: u32 = 1 << 16;
}

/// Index of a segment register, in the order of the instruction encoding; then the system ones.
pub mod index {
    pub const ES: usize = 0;
    pub const CS: usize = 1;
    pub const SS: usize = 2;
    pub const DS: usize = 3;
    pub const FS: usize = 4;
    pub const GS: usize = 5;
    pub const LDTR: usize = 6;
    pub const TR: usize = 7;
}
