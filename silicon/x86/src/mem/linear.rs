//! Linear addresses before translation: width, metadata bits, canonical form, alignment.

use x86_defs::control::{cr3, cr4};
use x86_defs::exception::vector;
use x86_defs::segment::index;

use super::{Access, AccessKind};
use crate::{Core, Leave};

impl Core {
    /// Linear addresses have 32 bits outside of 64-bit mode. (System structures of IA-32e mode have 64.)
    pub(super) fn wrap(&self, linear: u64) -> u64 {
        if self.mode.is_ia32e() { linear } else { linear & 0xffff_ffff }
    }

    /// The address that an access is made to: wrapped, metadata masked.
    pub(super) fn accessed(&self, linear: u64, access: Access) -> u64 {
        if self.mode.is_64() && !access.implicit && access.kind != AccessKind::Fetch {
            self.unmasked(linear)
        } else {
            self.wrap(linear)
        }
    }

    /// The address without its metadata: bit 63 stays, the masked bits become copies of the one below them
    /// ("Linear-Address Masking").
    fn unmasked(&self, linear: u64) -> u64 {
        let width = if linear >> 63 == 0 {
            match self.cr3 & (cr3::LAM_U57 | cr3::LAM_U48) {
                0 => return linear,
                cr3::LAM_U48 => 48,
                _ => 57,
            }
        } else if self.cr4 & cr4::LAM_SUP == 0 {
            return linear;
        } else if self.cr4 & cr4::LA57 != 0 {
            57
        } else {
            48
        };
        let extended = ((linear << (64 - width)) as i64 >> (64 - width)) as u64;
        (extended & !(1 << 63)) | (linear & 1 << 63)
    }

    /// Whether the bits above the linear-address width, 48 or 57 as CR4.LA57 says, are copies of its top bit.
    #[inline(always)]
    #[must_use]
    pub fn is_canonical(&self, linear: u64) -> bool {
        let drop = if self.cr4 & cr4::LA57 != 0 { 7 } else { 16 };
        ((linear << drop) as i64 >> drop) as u64 == linear
    }

    pub(super) fn check_canonical(&mut self, linear: u64, segment: u8) -> Result<(), Leave> {
        if self.mode.is_64() && !self.is_canonical(linear) {
            let vector = if segment as usize == index::SS { vector::SS } else { vector::GP };
            return Err(self.raise_code(vector, 0));
        }
        Ok(())
    }

    /// Makes accesses whose alignment does not matter.
    pub(crate) fn unaligned<R>(&mut self, access: impl FnOnce(&mut Self) -> R) -> R {
        let checked = std::mem::replace(&mut self.mmu.alignment_checked, false);
        let done = access(self);
        self.mmu.alignment_checked = checked;
        done
    }

    /// #AC for a user-mode access that is not aligned to its size, where CR0.AM and EFLAGS.AC ask for it. It comes after
    /// a page fault ("Priority Among Concurrent Events"; processors of AMD have it first).
    pub(super) fn check_alignment(&mut self, linear: u64, bytes: u64, access: Access) -> Result<(), Leave> {
        if self.mmu.alignment_checked && access.user && linear & (bytes - 1) != 0 {
            return Err(self.raise_code(vector::AC, 0));
        }
        Ok(())
    }
}
