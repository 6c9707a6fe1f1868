use silicon_float::x87::F80;

/// x87, MMX and SSE state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fpu {
    /// Physical registers R0-R7 (not rotated by TOP). MMX registers are their significands.
    pub st: [F80; 8],
    /// Control word.
    pub fcw: u16,
    /// Status word, TOP included (bits 13:11).
    pub fsw: u16,
    /// Abridged tag word: bit n set = physical register n is not empty.
    pub ftw: u8,
    /// Last instruction opcode (11 bits), instruction pointer, data pointer.
    pub fop: u16,
    pub fip: u64,
    pub fdp: u64,
    pub mxcsr: u32,
    /// XMM0-15.
    pub xmm: [u128; 16],
    /// Bits 255:128 of YMM0-15. An SSE instruction leaves them, a VEX-encoded one with 128 bits clears them.
    pub ymm_high: [u128; 16],
}

impl Default for Fpu {
    /// State after power-up or RESET ("Processor State After Reset").
    fn default() -> Self {
        Self {
            st: [F80::ZERO; 8],
            fcw: 0x0040,
            fsw: 0,
            ftw: 0,
            fop: 0,
            fip: 0,
            fdp: 0,
            mxcsr: 0x1f80,
            xmm: [0; 16],
            ymm_high: [0; 16],
        }
    }
}
