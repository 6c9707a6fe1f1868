//! One 8259A.
//!
//! Source: 8259A data sheet, "Programming the 8259A".

use super::Latched;
use crate::routing::Level;

/// Which initialisation word the next write to the second port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Initialization {
    Done,
    Icw2,
    Icw3,
    Icw4,
}

/// Which register the first port reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReadRegister {
    Request,
    InService,
}

/// One controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// Levels of the inputs.
    inputs: u8,
    irr: u8,
    imr: u8,
    isr: u8,
    /// Edge/level control register: set for level.
    elcr: u8,
    /// Its writable bits.
    elcr_mask: u8,
    /// The input with the highest priority.
    first_priority: u8,
    /// Vector of input 0 (its low three bits are 0).
    vector_base: u8,
    initialization: Initialization,
    icw4_needed: bool,
    single: bool,
    read_register: ReadRegister,
    poll: bool,
    special_mask: bool,
    special_fully_nested: bool,
    auto_eoi: bool,
    rotate_on_auto_eoi: bool,
}

impl Controller {
    pub(super) const fn new(elcr_mask: u8) -> Self {
        Self {
            inputs: 0,
            irr: 0,
            imr: 0,
            isr: 0,
            elcr: 0,
            elcr_mask,
            first_priority: 0,
            vector_base: 0,
            initialization: Initialization::Done,
            icw4_needed: false,
            single: false,
            read_register: ReadRegister::Request,
            poll: false,
            special_mask: false,
            special_fully_nested: false,
            auto_eoi: false,
            rotate_on_auto_eoi: false,
        }
    }

    pub(super) fn reset(&mut self) {
        let inputs = self.inputs;
        *self = Self::new(self.elcr_mask);
        self.inputs = inputs;
    }

    /// Interrupt mask register.
    #[must_use]
    pub fn imr(&self) -> u8 {
        self.imr
    }

    /// Interrupt request register.
    #[must_use]
    pub fn irr(&self) -> u8 {
        self.irr
    }

    /// In-service register.
    #[must_use]
    pub fn isr(&self) -> u8 {
        self.isr
    }

    /// Edge/level control register.
    #[must_use]
    pub fn elcr(&self) -> u8 {
        self.elcr
    }

    pub(super) fn set_elcr(&mut self, value: u8) {
        self.elcr = value & self.elcr_mask;
    }

    pub(super) fn vector(&self, input: u8) -> u8 {
        self.vector_base | (input & 7)
    }

    pub(super) fn set_input(&mut self, input: u8, level: Level) -> Latched {
        let bit = 1 << (input & 7);
        let level_triggered = self.elcr & bit != 0;
        match level {
            Level::Low => {
                self.inputs &= !bit;
                // An edge stays latched when the line falls (the chip would turn it into a spurious interrupt 7; KVM and
                // real chip sets keep it).
                if level_triggered {
                    self.irr &= !bit;
                }
                Latched::Lowered
            }
            Level::High => {
                let rises = self.inputs & bit == 0;
                self.inputs |= bit;
                let newly = (rises || level_triggered) && self.irr & bit == 0;
                if newly {
                    self.irr |= bit;
                }
                match (self.imr & bit != 0, newly) {
                    (true, _) => Latched::Masked,
                    (false, true) => Latched::New,
                    (false, false) => Latched::Coalesced,
                }
            }
        }
    }

    /// Rank of the highest-priority input in the set: 0 is highest, 8 is none.
    fn rank(&self, set: u8) -> u8 {
        set.rotate_right(u32::from(self.first_priority & 7)).trailing_zeros() as u8
    }

    /// The input to serve next: requested, not masked, and of higher priority than all in service. `cascade` is the input
    /// of a second controller, which in special fully nested mode may interrupt itself.
    pub(super) fn pending(&self, cascade: Option<u8>) -> Option<u8> {
        let requested = self.rank(self.irr & !self.imr);
        let mut in_service = self.isr;
        if self.special_mask {
            in_service &= !self.imr;
        }
        if let (true, Some(cascade)) = (self.special_fully_nested, cascade) {
            in_service &= !(1 << cascade);
        }
        (requested < self.rank(in_service)).then(|| (requested + self.first_priority) & 7)
    }

    /// The processor takes the input; the inputs that ended by it (automatic EOI).
    pub(super) fn acknowledge(&mut self, input: u8) -> u8 {
        let bit = 1 << (input & 7);
        self.isr |= bit;
        // A level-triggered request lasts as long as its line.
        if self.elcr & bit == 0 {
            self.irr &= !bit;
        }
        if self.auto_eoi {
            if self.rotate_on_auto_eoi {
                self.first_priority = (input + 1) & 7;
            }
            return self.end(bit);
        }
        0
    }

    fn end(&mut self, bits: u8) -> u8 {
        let ended = self.isr & bits;
        self.isr &= !bits;
        ended
    }

    /// The inputs that ended by the write.
    pub(super) fn write_command(&mut self, value: u8) -> u8 {
        if value & 0x10 != 0 {
            self.initialize(value)
        } else if value & 0x08 != 0 {
            self.write_ocw3(value);
            0
        } else {
            self.write_ocw2(value)
        }
    }

    /// ICW1. Edge detection starts anew: an input that is high must fall before it can interrupt again.
    fn initialize(&mut self, value: u8) -> u8 {
        // Edges that were waiting will never be served: whoever counts on their end has to know.
        let ended = self.isr | self.irr & !self.elcr;
        *self = Self {
            inputs: self.inputs,
            // Lines that are level-triggered and asserted request again at once.
            irr: self.inputs & self.elcr,
            elcr: self.elcr,
            vector_base: self.vector_base,
            initialization: Initialization::Icw2,
            icw4_needed: value & 0x01 != 0,
            single: value & 0x02 != 0,
            ..Self::new(self.elcr_mask)
        };
        ended
    }

    fn write_ocw3(&mut self, value: u8) {
        if value & 0x04 != 0 {
            self.poll = true;
        }
        if value & 0x02 != 0 {
            self.read_register = if value & 1 != 0 { ReadRegister::InService } else { ReadRegister::Request };
        }
        if value & 0x40 != 0 {
            self.special_mask = value & 0x20 != 0;
        }
    }

    fn write_ocw2(&mut self, value: u8) -> u8 {
        let input = value & 7;
        let specific = 1 << input;
        match value >> 5 {
            0 | 4 => {
                self.rotate_on_auto_eoi = value >> 5 == 4;
                0
            }
            // Non-specific end, with rotation or not.
            command @ (1 | 5) => {
                let rank = self.rank(self.isr);
                if rank == 8 {
                    return 0;
                }
                let highest = (rank + self.first_priority) & 7;
                if command == 5 {
                    self.first_priority = (highest + 1) & 7;
                }
                self.end(1 << highest)
            }
            3 => self.end(specific),
            6 => {
                self.first_priority = (input + 1) & 7;
                0
            }
            7 => {
                self.first_priority = (input + 1) & 7;
                self.end(specific)
            }
            _ => 0,
        }
    }

    pub(super) fn write_data(&mut self, value: u8) {
        match self.initialization {
            Initialization::Done => self.imr = value,
            Initialization::Icw2 => {
                self.vector_base = value & 0xf8;
                self.initialization = match (self.single, self.icw4_needed) {
                    (false, _) => Initialization::Icw3,
                    (true, true) => Initialization::Icw4,
                    (true, false) => Initialization::Done,
                };
            }
            // The wiring of the cascade is fixed.
            Initialization::Icw3 => {
                self.initialization = if self.icw4_needed { Initialization::Icw4 } else { Initialization::Done };
            }
            Initialization::Icw4 => {
                self.special_fully_nested = value & 0x10 != 0;
                self.auto_eoi = value & 0x02 != 0;
                self.initialization = Initialization::Done;
            }
        }
    }

    pub(super) fn take_poll(&mut self) -> bool {
        std::mem::take(&mut self.poll)
    }

    pub(super) fn read_command(&self) -> u8 {
        match self.read_register {
            ReadRegister::Request => self.irr,
            ReadRegister::InService => self.isr,
        }
    }
}
