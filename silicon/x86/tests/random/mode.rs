//! Modes that user code of a 64-bit system can execute in, and the segments that cases have in them.
//!
//! Compatibility mode is entered by loading a selector of 32-bit or 16-bit code. Segments that are not flat are in the
//! local descriptor table, which Linux lets a process fill.

use silicon_x86::core::SegmentRegister;
use silicon_x86::op::CodeSize;
use x86_defs::segment::{index, rights};

use super::place::{CODE, DATA, DATA_BYTES, GS_BASE, START};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Long64,
    /// Compatibility mode, flat apart from ES and GS.
    Protected32,
    /// Compatibility mode with 16-bit code and stack segments.
    Protected16,
}

const DATA_RIGHTS: u32 = rights::P | rights::S | rights::DPL | rights::WRITABLE | rights::ACCESSED;
const CODE_RIGHTS: u32 = rights::P | rights::S | rights::DPL | rights::CODE | rights::READABLE | rights::ACCESSED;

const fn segment(selector: u16, base: u64, limit: u32, rights: u32) -> SegmentRegister {
    SegmentRegister { selector, base, limit, rights }
}

/// Selector of entry `i` of [`LOCAL`].
const fn local(i: u16) -> u16 {
    i << 3 | 7
}

/// The local descriptor table: data with a base and a limit, data that may only be read, 16-bit code, 16-bit data.
pub const LOCAL: [SegmentRegister; 4] = [
    segment(local(0), DATA, DATA_BYTES as u32 - 1, DATA_RIGHTS | rights::DB),
    segment(local(1), GS_BASE, DATA_BYTES as u32 - 1, DATA_RIGHTS & !rights::WRITABLE | rights::DB),
    segment(local(2), CODE, 0xffff, CODE_RIGHTS),
    segment(local(3), DATA, 0xffff, DATA_RIGHTS),
];

/// Selectors and segments of Linux.
const USER_CS32: SegmentRegister = segment(0x23, 0, u32::MAX, CODE_RIGHTS | rights::DB | rights::G);
const USER_CS: SegmentRegister = segment(0x33, 0, u32::MAX, CODE_RIGHTS | rights::L | rights::G);
const USER_DS: SegmentRegister = segment(0x2b, 0, u32::MAX, DATA_RIGHTS | rights::DB | rights::G);
const NULL: SegmentRegister = segment(0, 0, 0, rights::UNUSABLE);

impl Mode {
    pub fn bits(self) -> u32 {
        self.size().bits()
    }

    pub fn size(self) -> CodeSize {
        match self {
            Self::Long64 => CodeSize::Bits64,
            Self::Protected32 => CodeSize::Bits32,
            Self::Protected16 => CodeSize::Bits16,
        }
    }

    pub fn is_64(self) -> bool {
        self == Self::Long64
    }

    /// The segment register with this index ([`index`]).
    pub fn segment(self, register: usize) -> SegmentRegister {
        match (self, register) {
            (Self::Long64, index::CS) => USER_CS,
            (Self::Long64, index::SS) => USER_DS,
            (Self::Long64, index::GS) => SegmentRegister { selector: 0, base: GS_BASE, ..USER_DS },
            (Self::Long64, _) => SegmentRegister { selector: 0, ..USER_DS },
            (_, index::ES) => LOCAL[0],
            (_, index::GS) => LOCAL[1],
            (_, index::FS) => NULL,
            (Self::Protected32, index::CS) => USER_CS32,
            (Self::Protected32, _) => USER_DS,
            (Self::Protected16, index::CS) => LOCAL[2],
            (Self::Protected16, _) => LOCAL[3],
        }
    }

    /// Base of a segment register.
    pub fn base(self, register: iced_x86::Register) -> u64 {
        self.segment(register.number()).base
    }

    /// Base of the code segment.
    pub fn code_base(self) -> u64 {
        self.segment(index::CS).base
    }

    /// Instruction pointer of the first instruction.
    pub fn start(self) -> u64 {
        START - self.code_base()
    }

    /// Registers and addresses have this many bits.
    pub fn mask(self) -> u64 {
        if self.is_64() { u64::MAX } else { 0xffff_ffff }
    }
}
