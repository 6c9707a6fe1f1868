//! Data breakpoints ("Debug Address Registers (DR0-DR3)", "Debug Control Register (DR7)").
//!
//! A page with an enabled data breakpoint stays out of the fast look-up, so that only its accesses are compared. One that
//! hits leaves its block and is executed again alone; the trap comes after it.

use super::{AccessKind, Mmu};
use crate::event::dr7;
use crate::{Core, Leave};

/// One enabled data breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    bytes: u64,
    /// Loads hit too.
    loads: bool,
}

/// The enabled data breakpoints, as [`Core::sync_watch`] found them in the debug registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    ranges: [Option<Range>; 4],
    active: bool,
    /// Breakpoints that the instruction being executed has hit, as in DR6.
    pub hits: u64,
}

impl Watch {
    /// Whether there is an enabled data breakpoint.
    #[inline(always)]
    #[must_use]
    pub fn active(&self) -> bool {
        self.active
    }

    /// Whether the page of `linear` must stay out of the fast look-up.
    #[must_use]
    pub fn covers_page(&self, linear: u64) -> bool {
        self.ranges.iter().flatten().any(|r| r.first & !0xfff == linear & !0xfff)
    }

    fn hits(&self, linear: u64, bytes: u64, kind: AccessKind) -> u64 {
        let last = linear.wrapping_add(bytes - 1);
        let hit = |r: &Range| {
            (r.loads || kind == AccessKind::Write) && linear < r.first.saturating_add(r.bytes) && last >= r.first
        };
        let bits = self.ranges.iter().enumerate().filter(|(_, r)| r.as_ref().is_some_and(hit));
        bits.map(|(i, _)| 1 << i).sum()
    }
}

impl Core {
    /// Takes over what the debug registers ask for. To be called after they may have changed, before guest code runs.
    #[inline]
    pub fn sync_watch(&mut self) {
        if self.dr[7] & dr7::ENABLES != 0 || self.mmu.watch.active {
            self.derive_watch();
        }
    }

    #[cold]
    fn derive_watch(&mut self) {
        let ranges = std::array::from_fn(|i| {
            let b = dr7::Breakpoint::of(self.dr[7], i);
            let data = matches!(b.condition, dr7::Condition::Write | dr7::Condition::ReadWrite);
            (b.enabled && data).then(|| Range {
                first: self.dr[i] & !(b.bytes - 1),
                bytes: b.bytes,
                loads: b.condition == dr7::Condition::ReadWrite,
            })
        });
        if ranges != self.mmu.watch.ranges {
            self.mmu.set_watch(ranges);
        }
    }

    /// Compares an access with the data breakpoints.
    ///
    /// # Errors
    /// [`Leave::Refetch`]: it hits, and must be executed alone.
    #[cold]
    pub(super) fn watch(&mut self, linear: u64, bytes: u64, kind: AccessKind) -> Result<(), Leave> {
        let hits = self.mmu.watch.hits(linear, bytes, kind);
        if hits == 0 {
            return Ok(());
        }
        // Alone, or no instruction at all but the delivery of an event.
        if !self.self_modify {
            return Err(Leave::Refetch);
        }
        self.mmu.watch.hits |= hits;
        self.events.attention = true;
        Ok(())
    }
}

impl Mmu {
    fn set_watch(&mut self, ranges: [Option<Range>; 4]) {
        self.watch = Watch { ranges, active: ranges.iter().any(Option::is_some), hits: self.watch.hits };
        self.clear_fast();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::test::core;

    const DS: u8 = x86_defs::segment::index::DS as u8;

    fn is_fast(core: &Core, linear: u64) -> bool {
        core.mmu.fast_frame::<u8>(linear, core.mmu.need_read).is_some()
    }

    #[test]
    fn a_watched_page_stays_out_of_the_fast_look_up_until_its_breakpoint_is_disabled() {
        let mut core = core();
        core.load_linear::<u32>(0x3000, DS).unwrap();
        assert!(is_fast(&core, 0x3000));
        // Breakpoint 0: loads and stores of four bytes.
        (core.dr[0], core.dr[7]) = (0x3004, 0xf_0401);
        core.sync_watch();
        core.load_linear::<u32>(0x3000, DS).unwrap();
        core.load_linear::<u32>(0x4000, DS).unwrap();
        assert!(!is_fast(&core, 0x3000) && is_fast(&core, 0x4000));
        core.dr[7] = 0x400;
        core.sync_watch();
        core.load_linear::<u32>(0x3004, DS).unwrap();
        assert!(is_fast(&core, 0x3000) && core.mmu.watch.hits == 0);
    }

    #[test]
    fn an_access_that_hits_is_done_by_an_instruction_alone_and_noted() {
        let mut core = core();
        (core.dr[1], core.dr[7]) = (0x3006, 0x0050_0404);
        core.sync_watch();
        for at in [0x3003, 0x3008] {
            core.store_linear(at, DS, 1_u8).unwrap();
        }
        core.load_linear::<u64>(0x3000, DS).unwrap();
        assert_eq!(core.store_linear(0x3000, DS, 1_u64), Err(Leave::Refetch));
        core.self_modify = true;
        core.store_linear(0x3000, DS, 1_u64).unwrap();
        assert_eq!(core.mmu.watch.hits, 1 << 1);
        core.collect_hits();
        assert!(core.pending_debug());
    }
}
