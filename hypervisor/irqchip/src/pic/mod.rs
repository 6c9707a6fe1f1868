//! The pair of 8259A interrupt controllers of a PC.
//!
//! Source: 8259A Programmable Interrupt Controller data sheet; edge/level control registers of the PIIX.

mod controller;
mod ports;

pub use controller::Controller;

use crate::routing::{IrqSource, Level, PicPin};

/// The input of the first controller to which the second is wired.
const CASCADE: u8 = 2;

/// Inputs whose interrupt has ended, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EndedPins(pub u16);

/// Both controllers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pic {
    /// The first one, whose output goes to the processor, and the second.
    controllers: [Controller; 2],
    /// Who asserts each input.
    sources: [u8; 16],
}

impl Default for Pic {
    fn default() -> Self {
        Self {
            // Inputs that can be level-triggered: not the timer, the keyboard, the cascade, the clock, the coprocessor.
            controllers: [Controller::new(0xf8), Controller::new(0xde)],
            sources: [0; 16],
        }
    }
}

impl Pic {
    /// After RESET. Inputs keep their levels.
    pub fn reset(&mut self) {
        for controller in &mut self.controllers {
            controller.reset();
        }
        self.cascade();
    }

    /// One of the controllers, for inspection: 0 or 1.
    #[must_use]
    pub fn controller(&self, index: usize) -> Option<&Controller> {
        self.controllers.get(index)
    }

    /// The output to the processor (LINT0 or INTR).
    #[must_use]
    pub fn output(&self) -> Level {
        match self.controllers[0].pending(Some(CASCADE)) {
            Some(_) => Level::High,
            None => Level::Low,
        }
    }

    /// A source drives an input to a level; whether a new interrupt was latched.
    pub fn set_pin(&mut self, pin: PicPin, source: IrqSource, level: Level) -> Latched {
        let number = pin.number();
        let sources = &mut self.sources[usize::from(number)];
        match level {
            Level::High => *sources |= source.mask(),
            Level::Low => *sources &= !source.mask(),
        }
        let combined = if *sources == 0 { Level::Low } else { Level::High };
        let latched = self.controllers[usize::from(number >> 3)].set_input(number & 7, combined);
        self.cascade();
        latched
    }

    /// Pass the second controller's output on to the first. It is re-armed first: a new request behind an acknowledged
    /// one must make an edge.
    fn cascade(&mut self) {
        let output = self.controllers[1].pending(None);
        if output.is_some() {
            self.controllers[0].set_input(CASCADE, Level::High);
        }
        self.controllers[0].set_input(CASCADE, Level::Low);
    }

    /// The processor's interrupt acknowledge cycle: the vector. Without a request it is the spurious one, input 7.
    pub fn acknowledge(&mut self) -> (u8, EndedPins) {
        let mut ended = EndedPins::default();
        let first = self.controllers[0].pending(Some(CASCADE));
        let vector = match first {
            Some(CASCADE) => {
                let second = self.controllers[1].pending(None);
                if let Some(input) = second {
                    let mask = self.controllers[1].acknowledge(input);
                    ended.0 |= u16::from(mask) << 8;
                }
                self.controllers[0].acknowledge(CASCADE);
                self.controllers[1].vector(second.unwrap_or(7))
            }
            Some(input) => {
                ended.0 |= u16::from(self.controllers[0].acknowledge(input));
                self.controllers[0].vector(input)
            }
            None => self.controllers[0].vector(7),
        };
        self.cascade();
        (vector, ended)
    }
}

/// What became of a request at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latched {
    /// It is new, and will be delivered.
    New,
    /// The input is masked; an edge is latched all the same.
    Masked,
    /// There was no edge, or one is latched already.
    Coalesced,
    /// The input was de-asserted.
    Lowered,
}
