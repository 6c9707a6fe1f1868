//! Segment base and limit ("Segment Limit Checking", "Type Checking").

use x86_defs::exception::vector;
use x86_defs::segment::{index, rights};

use super::AccessKind;
use crate::op::FLAT;
use crate::{Core, Leave};

impl Core {
    /// Linear address of `offset` in a segment with a base and a limit.
    ///
    /// # Errors
    /// #GP(0), or #SS(0) for the stack segment: limit, type or unusable segment.
    #[inline(never)]
    pub fn segmented(&mut self, seg: u8, offset: u64, bytes: u64, kind: AccessKind) -> Result<u64, Leave> {
        let i = (seg & !FLAT) as usize & 7;
        let segment = self.seg[i];
        if self.mode.is_64() {
            return Ok(if i >= index::FS { segment.base.wrapping_add(offset) } else { offset });
        }
        let last = offset.wrapping_add(bytes - 1);
        let limit = u64::from(segment.limit);
        let data = !segment.has(rights::CODE);
        let within = if data && segment.has(rights::EXPAND_DOWN) {
            let top = if segment.has(rights::DB) { 0xffff_ffff } else { 0xffff };
            offset > limit && last <= top && last >= offset
        } else {
            last <= limit && last >= offset
        };
        let type_allows = match kind {
            AccessKind::Read => data || segment.has(rights::READABLE),
            AccessKind::Write => (data && segment.has(rights::WRITABLE)) || !self.protected(),
            AccessKind::Fetch => true,
        };
        if segment.unusable() || !within || !type_allows {
            let vector = if i == index::SS { vector::SS } else { vector::GP };
            return Err(self.raise_code(vector, 0));
        }
        Ok(segment.base.wrapping_add(offset) & 0xffff_ffff)
    }

    fn protected(&self) -> bool {
        use crate::core::mode::Operating;
        !matches!(self.mode.operating, Operating::Real | Operating::Virtual8086)
    }
}
