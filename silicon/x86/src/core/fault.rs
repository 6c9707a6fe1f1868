use x86_defs::exception::vector;

use crate::{Core, Leave};

/// An exception that an instruction raised: a fault, so RIP stays at the instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    pub vector: u8,
    pub error_code: Option<u32>,
    /// Page fault: the linear address (goes to CR2 or to the exit qualification). Debug exception: DR6 bits.
    pub address: u64,
}

impl Fault {
    /// Whether the error code names a selector, with EXT in bit 0.
    #[must_use]
    pub const fn names_selector(&self) -> bool {
        matches!(self.vector, vector::TS | vector::NP | vector::SS | vector::GP)
    }
}

impl Core {
    /// Raises an exception without an error code.
    #[cold]
    #[inline(never)]
    pub fn raise(&mut self, vector: u8) -> Leave {
        self.fault = Fault { vector, error_code: None, address: 0 };
        Leave::Fault
    }

    /// Raises an exception with an error code.
    #[cold]
    #[inline(never)]
    pub fn raise_code(&mut self, vector: u8, error_code: u32) -> Leave {
        self.fault = Fault { vector, error_code: Some(error_code), address: 0 };
        Leave::Fault
    }

    /// #UD.
    #[cold]
    pub fn ud(&mut self) -> Leave {
        self.raise(vector::UD)
    }

    /// #GP(0).
    #[cold]
    pub fn gp0(&mut self) -> Leave {
        self.raise_code(vector::GP, 0)
    }
}
