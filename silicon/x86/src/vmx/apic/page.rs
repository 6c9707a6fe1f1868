//! The virtual-APIC page ("Virtual APIC State").

use crate::Core;

/// Offsets of the virtual registers.
pub mod offset {
    pub const ID: u16 = 0x20;
    pub const VERSION: u16 = 0x30;
    pub const TPR: u16 = 0x80;
    pub const PPR: u16 = 0xa0;
    pub const EOI: u16 = 0xb0;
    pub const LDR: u16 = 0xd0;
    pub const DFR: u16 = 0xe0;
    pub const SVR: u16 = 0xf0;
    pub const ISR: u16 = 0x100;
    pub const IRR: u16 = 0x200;
    pub const ESR: u16 = 0x280;
    pub const ICR_LOW: u16 = 0x300;
    pub const ICR_HIGH: u16 = 0x310;
    pub const LVT_TIMER: u16 = 0x320;
    pub const LVT_ERROR: u16 = 0x370;
    pub const INITIAL_COUNT: u16 = 0x380;
    pub const DIVIDE: u16 = 0x3e0;
    pub const SELF_IPI: u16 = 0x3f0;
}

impl Core {
    /// Four bytes of the virtual-APIC page; zero where it has no memory.
    pub(super) fn vapic(&self, offset: u16) -> u32 {
        self.vmx.apic.page.map_or(0, |(_, frame)| frame.load(u64::from(offset)))
    }

    /// Eight bytes.
    pub(super) fn vapic_wide(&self, offset: u16) -> u64 {
        self.vmx.apic.page.map_or(0, |(_, frame)| frame.load(u64::from(offset)))
    }

    pub(super) fn set_vapic(&mut self, offset: u16, value: u32) {
        if let Some((_, frame)) = self.vmx.apic.page {
            frame.store(u64::from(offset), value);
        }
    }

    pub(super) fn set_vapic_wide(&mut self, offset: u16, value: u64) {
        if let Some((_, frame)) = self.vmx.apic.page {
            frame.store(u64::from(offset), value);
        }
    }

    /// Sets the bit of `vector` in the 256-bit register (VISR, VIRR) at `register`.
    pub(super) fn set_vector(&mut self, register: u16, vector: u8) {
        let at = register + u16::from(vector >> 5) * 0x10;
        self.set_vapic(at, self.vapic(at) | 1 << (vector & 31));
    }

    pub(super) fn clear_vector(&mut self, register: u16, vector: u8) {
        let at = register + u16::from(vector >> 5) * 0x10;
        self.set_vapic(at, self.vapic(at) & !(1 << (vector & 31)));
    }

    /// The highest vector of a 256-bit register; zero where none is set.
    pub(super) fn highest_vector(&self, register: u16) -> u8 {
        (0..8_u16)
            .rev()
            .find_map(|i| {
                let word = self.vapic(register + i * 0x10);
                (word != 0).then(|| (i * 32) as u8 + word.ilog2() as u8)
            })
            .unwrap_or(0)
    }
}
