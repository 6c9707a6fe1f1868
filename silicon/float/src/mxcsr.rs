//! The control and status register of SSE.

use crate::flags::{Flags, Rounding};

/// MXCSR. Source: Intel SDM volume 1, "MXCSR Control and Status Register".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mxcsr(pub u32);

/// A SIMD floating-point exception (#XM) is due: the result is to be discarded. MXCSR already has the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimdException;

impl Default for Mxcsr {
    fn default() -> Mxcsr {
        Mxcsr(Mxcsr::RESET)
    }
}

impl Mxcsr {
    /// The value at reset and after INIT of the SSE state: all exceptions masked, round to nearest.
    pub const RESET: u32 = 0x1f80;
    /// Denormal operands are taken as zeros.
    pub const DAZ: u32 = 1 << 6;
    /// Results that underflow are replaced by zeros, while underflow is masked.
    pub const FTZ: u32 = 1 << 15;
    /// The bits that LDMXCSR may set; others are #GP.
    pub const WRITABLE: u32 = 0xffff;

    const MASKS_SHIFT: u32 = 7;
    const RC_SHIFT: u32 = 13;

    /// The exception flags.
    #[inline]
    pub fn flags(self) -> Flags {
        Flags((self.0 & 0x3f) as u8)
    }

    /// The exceptions that are masked.
    #[inline]
    pub fn masked(self) -> Flags {
        Flags((self.0 >> Mxcsr::MASKS_SHIFT & 0x3f) as u8)
    }

    /// The rounding mode.
    #[inline]
    pub fn rounding(self) -> Rounding {
        Rounding::from_rc(self.0 >> Mxcsr::RC_SHIFT)
    }

    /// Whether rounding is to nearest: the mode that the host's own operations have.
    #[inline]
    pub(crate) fn rounds_to_nearest(self) -> bool {
        self.0 & (3 << Mxcsr::RC_SHIFT) == 0
    }

    /// Whether denormal operands are zeros.
    #[inline]
    pub fn denormals_are_zeros(self) -> bool {
        self.0 & Mxcsr::DAZ != 0
    }

    /// Whether results that underflow are flushed to zero.
    #[inline]
    pub fn flushes_to_zero(self) -> bool {
        self.0 & Mxcsr::FTZ != 0
    }

    /// Sets the flags, which stick.
    #[inline]
    pub fn raise(&mut self, flags: Flags) {
        self.0 |= u32::from(flags.0);
    }

    /// Whether a flag is set whose exception is not masked.
    ///
    /// Flags stick, and a flag that was set before an instruction does not make that instruction fault: use
    /// [`Mxcsr::instruction`], which looks only at what the instruction raised.
    #[inline]
    pub fn unmasked_pending(self) -> bool {
        !(self.flags() & !self.masked()).is_empty()
    }

    /// Does all lanes of one instruction and says whether #XM is due.
    ///
    /// An unmasked exception counts only if this instruction raised it, not if its flag was set before. If a lane has
    /// an unmasked exception of the kind found before the operation (IE, DE, ZE), no lane reports those found after it
    /// (OE, UE, PE). Source: Intel SDM volume 1, "SIMD Floating-Point Exceptions" and "Handling SIMD Floating-Point
    /// Exceptions in Software".
    #[inline]
    pub fn instruction<R>(&mut self, lanes: impl FnOnce(&mut Mxcsr) -> R) -> Result<R, SimdException> {
        if self.masked() == Flags::ALL {
            return Ok(lanes(self));
        }
        let mut own = Mxcsr(self.0 & !0x3f);
        let result = lanes(&mut own);
        let raised = own.flags();
        let unmasked = raised & !self.masked();
        if !(unmasked & Flags::BEFORE).is_empty() {
            self.raise(raised & Flags::BEFORE);
            return Err(SimdException);
        }
        self.raise(raised);
        if unmasked.is_empty() { Ok(result) } else { Err(SimdException) }
    }

    /// Raises what was found before the operation. False if that is an unmasked exception, and the operation is not
    /// to be done.
    #[inline]
    pub(crate) fn before(&mut self, flags: Flags) -> bool {
        self.raise(flags);
        (flags & !self.masked()).is_empty()
    }
}
