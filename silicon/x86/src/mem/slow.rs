//! Accesses that the fast look-up does not answer.

use silicon_memory::Word;

use super::{Access, AccessKind};
use crate::{Core, Leave};

impl Core {
    /// Linear address of `offset` in a segment with a base and a limit.
    #[cold]
    #[inline(never)]
    pub fn segmented(&mut self, seg: u8, offset: u64, bytes: u64, kind: AccessKind) -> Result<u64, Leave> {
        let _ = (seg, offset, bytes, kind);
        todo!()
    }

    /// Loads through the modelled TLB, split at a page boundary where needed.
    #[cold]
    #[inline(never)]
    pub fn load_slow<T: Word>(&mut self, linear: u64, access: Access) -> Result<T, Leave> {
        let _ = (linear, access);
        todo!()
    }

    /// Stores through the modelled TLB.
    #[cold]
    #[inline(never)]
    pub fn store_slow<T: Word>(&mut self, linear: u64, access: Access, value: T) -> Result<(), Leave> {
        let _ = (linear, access, value);
        todo!()
    }

    /// Translates every page of the range, without touching the bytes.
    #[cold]
    #[inline(never)]
    pub fn check_slow(&mut self, linear: u64, bytes: u64, access: Access) -> Result<(), Leave> {
        let _ = (linear, bytes, access);
        todo!()
    }
}
