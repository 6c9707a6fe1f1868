//! SSE to SSE4.2.
//!
//! [`operand`] says where the second operand comes from and [`apply`] turns a pure function of lanes into a handler;
//! the functions are in [`lane`], [`integer`], [`shuffle`], [`float`], [`dot`] and [`text`]. Which function an instruction is
//! stands in the tables of `lower::sse`.
//!
//! Vectors are arrays of lanes that are read from, and written to, the register file as arrays: from a `u128` the
//! compiler would take the lanes apart with shifts, from an array it makes vector instructions.

pub mod apply;
pub mod compare;
pub mod crypto;
pub mod dot;
pub mod float;
pub mod fxsave;
pub mod integer;
pub mod lane;
pub mod moves;
pub mod operand;
pub mod shuffle;
pub mod state;
pub mod text;
pub mod xsave;

use silicon_float::Mxcsr;
use x86_defs::control::{cr0, cr4};
use x86_defs::exception::vector;

use crate::{Core, Leave};

impl Core {
    /// Raises what an SSE instruction raises for CR0.EM, CR0.TS and CR4.OSFXSR.
    #[inline(always)]
    pub fn check_sse(&mut self) -> Result<(), Leave> {
        if self.mode.sse_usable { Ok(()) } else { Err(self.sse_unusable()) }
    }

    #[cold]
    #[inline(never)]
    fn sse_unusable(&mut self) -> Leave {
        let undefined = self.cr0 & cr0::EM != 0 || self.cr4 & cr4::OSFXSR == 0;
        self.raise(if undefined { vector::UD } else { vector::NM })
    }

    /// Does the lanes of one floating-point instruction under MXCSR. An unmasked exception sets its flags in MXCSR
    /// and raises #XM, or #UD without CR4.OSXMMEXCPT.
    #[inline(always)]
    pub fn simd<R>(&mut self, lanes: impl FnOnce(&mut Mxcsr) -> R) -> Result<R, Leave> {
        let mut mxcsr = Mxcsr(self.fpu.mxcsr);
        let result = mxcsr.instruction(lanes);
        self.fpu.mxcsr = mxcsr.0;
        result.map_err(|_| self.simd_exception())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn simd_exception(&mut self) -> Leave {
        let reported = self.cr4 & cr4::OSXMMEXCPT != 0;
        self.raise(if reported { vector::XM } else { vector::UD })
    }
}
