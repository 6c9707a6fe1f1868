//! Formats of the guest's paging structures, by paging mode ("Paging Modes and Control Bits").

use silicon_memory::Frame;
use x86_defs::control::{cr4, efer};

use crate::core::Core;
use crate::model::Feature;

pub const PRESENT: u64 = 1 << 0;
pub const WRITABLE: u64 = 1 << 1;
pub const USER: u64 = 1 << 2;
pub const ACCESSED: u64 = 1 << 5;
pub const DIRTY: u64 = 1 << 6;
pub const LARGE: u64 = 1 << 7;
pub const GLOBAL: u64 = 1 << 8;
pub const NO_EXECUTE: u64 = 1 << 63;
/// Bits 62:59 of the last entry in 4- and 5-level paging.
const KEY_SHIFT: u32 = 59;
/// Bits 62:52, which are reserved in PAE paging and ignored in 4- and 5-level paging.
const ABOVE_ADDRESS: u64 = 0x7ff << 52;

/// Paging mode. The levels count up from the page table, which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// "32-Bit Paging"
    Bits32,
    /// "PAE Paging": the level above the page directories is in registers.
    Pae,
    /// "4-Level Paging and 5-Level Paging"
    Levels4,
    Levels5,
}

/// The paging mode and what else decides about the meaning of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub mode: Mode,
    /// Entries of 64 bits, with no-execute.
    pub wide: bool,
    physical: u64,
    /// Bits that are reserved in every entry.
    reserved: u64,
    /// Page-directory entries of 32-bit paging may map 4 MiB.
    pse: bool,
    /// Page-directory-pointer entries may map 1 GiB.
    giant: bool,
}

impl Format {
    /// Level of the table to start at.
    pub fn root(&self) -> u32 {
        match self.mode {
            Mode::Bits32 | Mode::Pae => 1,
            Mode::Levels4 => 3,
            Mode::Levels5 => 4,
        }
    }

    /// 4- or 5-level paging.
    pub fn long(&self) -> bool {
        matches!(self.mode, Mode::Levels4 | Mode::Levels5)
    }

    /// Bits of the linear address below those that index the tables of `level`.
    pub fn shift(&self, level: u32) -> u32 {
        if self.wide { 12 + 9 * level } else { 12 + 10 * level }
    }

    /// Offset of the entry for `linear` in its table.
    pub fn offset(&self, linear: u64, level: u32) -> u64 {
        if self.wide { (linear >> self.shift(level) & 0x1ff) * 8 } else { (linear >> self.shift(level) & 0x3ff) * 4 }
    }

    pub fn load(&self, table: Frame, offset: u64) -> u64 {
        if self.wide { table.load(offset) } else { table.load::<u32>(offset).into() }
    }

    pub fn store(&self, table: Frame, offset: u64, entry: u64) {
        if self.wide {
            table.store(offset, entry);
        } else {
            table.store(offset, entry as u32);
        }
    }

    /// Whether an entry maps a page.
    pub fn is_leaf(&self, entry: u64, level: u32) -> bool {
        let may_be_large = match level {
            0 => return true,
            1 => self.wide || self.pse,
            2 => self.giant,
            _ => false,
        };
        may_be_large && entry & LARGE != 0
    }

    /// Bits that must be zero in a present entry of `level`.
    pub fn reserved(&self, level: u32, leaf: bool) -> u64 {
        if !self.wide {
            // A page of 4 MiB has its address in bits 31:22 and, above, in bits 20:13.
            return if leaf && level == 1 {
                let upper = self.physical >> 32 & 0xff;
                1 << 21 | (0xff & !upper) << 13
            } else {
                0
            };
        }
        let mut reserved = self.reserved;
        if !leaf && level >= 2 {
            reserved |= LARGE;
        }
        if leaf && level > 0 {
            // Bit 12 selects the memory type.
            reserved |= ((1 << self.shift(level)) - 1) & !0x1fff;
        }
        reserved
    }

    /// Guest-physical address of the page that a last entry maps.
    pub fn page(&self, entry: u64, level: u32) -> u64 {
        let mask = (1_u64 << self.shift(level)) - 1;
        if self.wide {
            entry & self.physical & !mask
        } else if level == 1 {
            (entry & 0xffc0_0000) | (entry & 0x1f_e000) << 19
        } else {
            entry & 0xffff_f000
        }
    }

    /// Guest-physical address of the table that an entry leads to.
    pub fn table(&self, entry: u64) -> u64 {
        if self.wide { entry & self.physical & !0xfff } else { entry & 0xffff_f000 }
    }

    /// Protection key of a last entry.
    pub fn key(&self, entry: u64) -> u16 {
        if self.long() { (entry >> KEY_SHIFT & 0xf) as u16 } else { 0 }
    }
}

impl Core {
    /// The format in use; paging is on.
    pub(super) fn paging_format(&self) -> Format {
        let long = self.efer & efer::LMA != 0;
        let wide = long || self.cr4 & cr4::PAE != 0;
        let mode = match (long, wide) {
            (true, _) if self.cr4 & cr4::LA57 != 0 => Mode::Levels5,
            (true, _) => Mode::Levels4,
            (false, true) => Mode::Pae,
            (false, false) => Mode::Bits32,
        };
        let mut physical = self.model.physical_mask();
        let mut reserved = !physical & ((1 << 52) - 1);
        if mode == Mode::Pae {
            reserved |= ABOVE_ADDRESS;
        }
        if self.efer & efer::NXE == 0 {
            reserved |= NO_EXECUTE;
        }
        if mode == Mode::Bits32 && !self.model.has(Feature::Pse36) {
            physical &= 0xffff_ffff;
        }
        Format {
            mode,
            wide,
            physical,
            reserved,
            pse: self.cr4 & cr4::PSE != 0,
            giant: long && self.model.has(Feature::Pdpe1gb),
        }
    }
}
