//! A case: instructions, registers and memory before, and what the processor made of them.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::mode::Mode;
use super::native::State;
use super::place::DATA_BYTES;

/// The most bytes of code.
pub const CODE_BYTES: usize = 32;

/// How execution ended: always with a signal, as INT3 is all around the code.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Outcome {
    pub signal: u32,
    /// Exception vector.
    pub vector: u32,
    pub error: u64,
    /// CR2 of a page fault.
    pub address: u64,
    pub rip: u64,
    pub gs_base: u64,
}

/// A case in memory that parent and child share.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Slot {
    pub before: State,
    pub after: State,
    pub code: [u8; CODE_BYTES],
    pub code_len: u32,
    pub mode: Mode,
    /// Nonzero where the code may change the base of GS.
    pub changes_gs: u32,
    pub outcome: Outcome,
    pub data: [u8; DATA_BYTES],
    pub data_after: [u8; DATA_BYTES],
}

impl Slot {
    pub fn bytes(&self) -> &[u8] {
        &self.code[..self.code_len as usize]
    }

    pub fn instructions(&self) -> Vec<Instruction> {
        Decoder::with_ip(self.mode.bits(), self.bytes(), self.mode.start(), DecoderOptions::NONE).iter().collect()
    }
}
