//! All encodings of a mode that the model executes, found by decoding every opcode, and sorted by [`Code`].

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use silicon_x86::lower::lower;
use silicon_x86::model::Model;
use silicon_x86::op::Lowering;

use super::mode::Mode;

/// An encoding without what may vary: address, immediate, more registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skeleton {
    pub prefixes: &'static [u8],
    pub rex: u8,
    pub map: Map,
    pub opcode: u8,
    pub modrm: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    Legacy(&'static [u8]),
    Vex(Vex),
}

/// The fields of a VEX prefix that choose the instruction, apart from W.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vex {
    pub map: u8,
    pub pp: u8,
    pub l: u8,
}

/// ModRM.rm of an operand in memory that has a SIB byte, as gathers must have it.
pub const SIB: u8 = 4;

impl Skeleton {
    /// Everything up to and with the opcode. `more` is put in front; `rex` is R, X and B.
    pub fn head(&self, more: &[u8], rex: u8, vvvv: u8) -> Vec<u8> {
        let mut bytes = [more, self.prefixes].concat();
        match self.map {
            Map::Legacy(map) => {
                if self.rex | rex != 0 {
                    bytes.push(0x40 | self.rex | rex);
                }
                bytes.extend(map);
            }
            Map::Vex(Vex { map, pp, l }) => {
                // R, X and B are inverted, and in the order of REX from bit 7 down.
                let inverted = (!rex & 4) << 5 | (!rex & 2) << 5 | (!rex & 1) << 5;
                let last = (!vvvv & 15) << 3 | l << 2 | pp;
                if map == 1 && self.rex & 8 == 0 && rex & 3 == 0 {
                    bytes.extend([0xc5, inverted & 0x80 | last]);
                } else {
                    bytes.extend([0xc4, inverted | map, (self.rex & 8) << 4 | last]);
                }
            }
        }
        bytes.push(self.opcode);
        bytes
    }
}

/// Encodings by code.
pub fn catalogue(model: &Model, mode: Mode) -> BTreeMap<Code, Vec<Skeleton>> {
    const PREFIXES: [&[u8]; 8] = [&[], &[0x66], &[0xf3], &[0xf2], &[0x66, 0xf2], &[0x66, 0xf3], &[0x67], &[0x66, 0x67]];
    let mut found: BTreeMap<Code, Vec<Skeleton>> = BTreeMap::new();
    let mut known: BTreeMap<Code, bool> = BTreeMap::new();
    let mut add = |skeleton: Skeleton| {
        let mut bytes = skeleton.head(&[], 0, 0);
        bytes.extend([skeleton.modrm, 0x24, 0, 0, 0, 0, 0, 0, 0, 0]);
        let insn = Decoder::new(mode.bits(), &bytes, DecoderOptions::NONE).decode();
        if insn.code() != Code::INVALID
            && *known.entry(insn.code()).or_insert_with(|| is_lowered(&insn, &bytes[..insn.len()], model, mode))
        {
            let list = found.entry(insn.code()).or_default();
            if !list.iter().any(|s| Skeleton { modrm: skeleton.modrm, ..*s } == skeleton) || list.len() < 64 {
                list.push(skeleton);
            }
        }
    };
    for opcode in 0..=0xff_u8 {
        for modrm in (0..8).flat_map(|reg| [reg << 3 | 3, reg << 3 | SIB]).chain(0xc0..=0xff) {
            for rex in [0, 8] {
                // Without REX, W is a bit of VEX alone.
                let legacy = mode.is_64() || rex == 0;
                let sib = modrm >> 6 != 3 && modrm & 7 == SIB;
                for (map, prefixes) in PREFIXES
                    .iter()
                    .filter(|_| legacy && !sib)
                    .flat_map(|&prefixes| [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]].map(|map| (map, prefixes)))
                {
                    add(Skeleton { prefixes, rex, map: Map::Legacy(map), opcode, modrm });
                }
                for fields in 0..24 {
                    let vex = Vex { map: 1 + (fields >> 3), pp: fields & 3, l: fields >> 2 & 1 };
                    // A SIB byte takes addresses of 32 bits at least.
                    let prefixes: &[u8] = if mode == Mode::Protected16 && sib { &[0x67] } else { &[] };
                    add(Skeleton { prefixes, rex, map: Map::Vex(vex), opcode, modrm });
                }
            }
        }
    }
    found
}

/// Whether the model executes an instruction.
pub fn is_lowered(insn: &Instruction, bytes: &[u8], model: &Model, mode: Mode) -> bool {
    insn.code() != Code::INVALID && lower(&Lowering { insn, bytes, size: mode.size(), off: 0, model }).is_some()
}
