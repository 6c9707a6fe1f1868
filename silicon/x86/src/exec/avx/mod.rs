//! VEX-encoded vector instructions.
//!
//! Nearly all of them do to each half of a YMM register what an SSE instruction does to an XMM register, so [`apply`]
//! makes handlers of the same functions of lanes; the destination is a register of its own and what is above the result
//! becomes zero.

pub mod apply;
pub mod convert;
pub mod float;
pub mod fma;
pub mod masked;
pub mod moves;
pub mod operand;
pub mod permute;

use x86_defs::exception::vector;

use crate::{Core, Leave};

impl Core {
    /// Raises what a VEX-encoded vector instruction raises for the mode, CR4.OSXSAVE, XCR0 and CR0.TS.
    #[inline(always)]
    pub fn check_avx(&mut self) -> Result<(), Leave> {
        if self.mode.avx_usable { Ok(()) } else { Err(self.avx_unusable()) }
    }

    #[cold]
    #[inline(never)]
    fn avx_unusable(&mut self) -> Leave {
        let undefined = !self.avx_enabled();
        self.raise(if undefined { vector::UD } else { vector::NM })
    }
}
