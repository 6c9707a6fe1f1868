//! The register page, and the 256-bit registers in it.
//!
//! Source: Intel SDM, "Local APIC Register Address Map", "x2APIC Register Address Space".

/// A register, by its offset in the MMIO page. The x2APIC MSR is `0x800 + (offset >> 4)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub(crate) u16);

impl Register {
    /// Local APIC ID.
    pub const ID: Self = Self(0x20);
    /// Version.
    pub const VERSION: Self = Self(0x30);
    /// Task priority.
    pub const TPR: Self = Self(0x80);
    /// Arbitration priority.
    pub const APR: Self = Self(0x90);
    /// Processor priority.
    pub const PPR: Self = Self(0xa0);
    /// End of interrupt.
    pub const EOI: Self = Self(0xb0);
    /// Remote read; not supported, reads as 0.
    pub const RRD: Self = Self(0xc0);
    /// Logical destination.
    pub const LDR: Self = Self(0xd0);
    /// Destination format.
    pub const DFR: Self = Self(0xe0);
    /// Spurious interrupt vector.
    pub const SVR: Self = Self(0xf0);
    /// In service, first of eight.
    pub const ISR: Self = Self(0x100);
    /// Trigger mode, first of eight.
    pub const TMR: Self = Self(0x180);
    /// Interrupt request, first of eight.
    pub const IRR: Self = Self(0x200);
    /// Error status.
    pub const ESR: Self = Self(0x280);
    /// Interrupt command, bits 31:0.
    pub const ICR: Self = Self(0x300);
    /// Interrupt command, bits 63:32.
    pub const ICR2: Self = Self(0x310);
    /// LVT timer.
    pub const LVT_TIMER: Self = Self(0x320);
    /// LVT thermal sensor.
    pub const LVT_THERMAL: Self = Self(0x330);
    /// LVT performance monitoring counters.
    pub const LVT_PERF: Self = Self(0x340);
    /// LVT LINT0.
    pub const LVT_LINT0: Self = Self(0x350);
    /// LVT LINT1.
    pub const LVT_LINT1: Self = Self(0x360);
    /// LVT error.
    pub const LVT_ERROR: Self = Self(0x370);
    /// Timer initial count.
    pub const TIMER_INITIAL: Self = Self(0x380);
    /// Timer current count.
    pub const TIMER_CURRENT: Self = Self(0x390);
    /// Timer divide configuration.
    pub const TIMER_DIVIDE: Self = Self(0x3e0);
    /// Self IPI (x2APIC only).
    pub const SELF_IPI: Self = Self(0x3f0);

    /// Offset in the MMIO page.
    #[must_use]
    pub const fn offset(self) -> u16 {
        self.0
    }
}

/// The registers: one 32-bit register each 16 bytes of the MMIO page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterPage {
    words: [u32; 64],
}

impl Default for RegisterPage {
    fn default() -> Self {
        Self { words: [0; 64] }
    }
}

/// Which of the three 256-bit registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorSet {
    /// In-service register.
    InService,
    /// Trigger mode register: set for level.
    TriggerMode,
    /// Interrupt request register.
    Request,
}

impl VectorSet {
    const fn first_word(self) -> usize {
        match self {
            Self::InService => 0x10,
            Self::TriggerMode => 0x18,
            Self::Request => 0x20,
        }
    }
}

impl RegisterPage {
    /// Value of a register.
    #[must_use]
    pub fn get(&self, register: Register) -> u32 {
        self.words[usize::from(register.0 >> 4) & 63]
    }

    pub(crate) fn set(&mut self, register: Register, value: u32) {
        self.words[usize::from(register.0 >> 4) & 63] = value;
    }

    /// Whether the vector's bit is set.
    #[must_use]
    pub fn test(&self, set: VectorSet, vector: u8) -> bool {
        self.words[set.first_word() + usize::from(vector >> 5)] & (1 << (vector & 31)) != 0
    }

    /// Set the vector's bit; whether it was clear.
    pub(crate) fn insert(&mut self, set: VectorSet, vector: u8) -> bool {
        let word = &mut self.words[set.first_word() + usize::from(vector >> 5)];
        let bit = 1 << (vector & 31);
        let newly = *word & bit == 0;
        *word |= bit;
        newly
    }

    pub(crate) fn remove(&mut self, set: VectorSet, vector: u8) {
        self.words[set.first_word() + usize::from(vector >> 5)] &= !(1 << (vector & 31));
    }

    /// The highest vector whose bit is set.
    #[must_use]
    pub fn highest(&self, set: VectorSet) -> Option<u8> {
        let words = &self.words[set.first_word()..set.first_word() + 8];
        let index = words.iter().rposition(|word| *word != 0)?;
        Some(index as u8 * 32 + 31 - words[index].leading_zeros() as u8)
    }

    /// How many bits are set.
    #[must_use]
    pub fn count(&self, set: VectorSet) -> u32 {
        self.words[set.first_word()..set.first_word() + 8].iter().map(|word| word.count_ones()).sum()
    }

    /// The page as `kvm_lapic_state` has it: each register in the first four bytes of its sixteen.
    #[must_use]
    pub fn to_page(&self) -> [u8; 1024] {
        let mut page = [0; 1024];
        for (slot, word) in page.chunks_exact_mut(16).zip(self.words) {
            slot[..4].copy_from_slice(&word.to_le_bytes());
        }
        page
    }
}
