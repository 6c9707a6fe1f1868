//! Look-up in the modelled TLB, refill, and permissions.

use silicon_memory::{Frame, HostPhysical, PageState};
use x86_defs::control::{cr0, cr4};
use x86_defs::segment::index;
use x86_defs::vmx::ExitReason;

use super::entry::{Entry, bit};
use super::fast::{FAST_ENTRIES, FETCH_ENTRIES, FastEntry, FetchEntry};
use super::walk::Walked;
use super::{Access, AccessKind};
use crate::core::Core;
use crate::vmx::ExitInfo;
use crate::{Leave, cost};

/// Where a linear address leads.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Memory {
        frame: Frame,
        host: u64,
        state: &'static PageState,
    },
    /// A device, while device accesses are being replayed; the guest-physical address.
    Device {
        guest: u64,
    },
    /// The APIC-access page.
    Apic {
        linear: u64,
    },
}

/// A page to fetch instructions from.
#[derive(Clone, Copy, Debug)]
pub struct FetchPage {
    /// Host-physical address of the page.
    pub host: u64,
    pub frame: Frame,
    pub state: &'static PageState,
}

/// Marks the tags of large pages; context ids have the 11 bits below.
const LARGE: u64 = 1 << 11;
const SMALL_SHIFT: u32 = 12;
pub(super) const LARGE_SHIFT: u32 = 21;

fn small_tag(linear: u64, id: u16) -> u64 {
    (linear & !0xfff) | u64::from(id)
}

fn large_tag(linear: u64, id: u16) -> u64 {
    (linear & !0x1f_ffff) | LARGE | u64::from(id)
}

/// An entry of the modelled TLB, and whether its page is large.
type Found = (Entry, bool);

impl Core {
    /// Translates one address; the fast look-up is refilled on success.
    pub(super) fn translate(&mut self, linear: u64, access: Access) -> Result<Place, Leave> {
        self.check_canonical(linear, access.segment)?;
        let (entry, large) = match self.tlb_find(linear, access.kind) {
            Some(found) => found,
            None => match self.walk(linear, access)? {
                Walked::Page { entry, large } => {
                    self.count_walk(access.kind);
                    self.tlb_insert(linear, access.kind, entry, large);
                    (entry, large)
                }
                Walked::Device { guest } => return Ok(Place::Device { guest }),
            },
        };
        let entry = if self.entry_allows(&entry, access) {
            entry
        } else {
            // A cached translation never causes a fault by itself: the tables are asked again.
            self.mmu.count.assist_walks += 1;
            let walked = self.walk(linear, access);
            if !matches!(walked, Ok(Walked::Device { .. })) {
                // The walk gives a new one, or a fault, which voids the old one.
                self.tlb_remove(linear, large);
            }
            match walked? {
                Walked::Page { entry, large: now_large } => {
                    self.tlb_insert(linear, access.kind, entry, now_large);
                    return self.place(linear, access, entry, now_large);
                }
                Walked::Device { guest } => return Ok(Place::Device { guest }),
            }
        };
        self.place(linear, access, entry, large)
    }

    fn place(&mut self, linear: u64, access: Access, entry: Entry, large: bool) -> Result<Place, Leave> {
        let within = if large { linear & 0x1f_f000 } else { 0 };
        let host = entry.host + within;
        if self.vmx.apic.is_access_page(host) {
            return self.apic_place(linear, entry.guest + within + (linear & 0xfff), access);
        }
        let Some((frame, state)) = self.memory.page(HostPhysical(host)) else {
            return Err(self.no_memory(linear, entry.guest + within));
        };
        if access.kind == AccessKind::Write && state.has_code() {
            if host == self.mmu.fetch_page && !self.self_modify {
                return Err(Leave::Refetch);
            }
            state.written();
            self.count.code_invalidations += 1;
        }
        if !access.implicit && access.kind != AccessKind::Fetch {
            self.refill(linear, entry, frame, state);
        }
        Ok(Place::Memory { frame, host, state })
    }

    fn refill(&mut self, linear: u64, entry: Entry, frame: Frame, state: &PageState) {
        if self.mmu.watch.active() && self.mmu.watch.covers_page(linear) {
            return;
        }
        let mut permissions = entry.data_permissions(self.cr0 & cr0::WP != 0, &self.mmu.keys);
        self.mmu.keys.note(entry.bits);
        if state.has_code() {
            permissions &= 0b01_01_01;
        }
        let tag = small_tag(linear, 0) | self.mmu.key[(linear >> 63) as usize];
        if linear >> 63 != 0 && !entry.has(bit::GLOBAL) {
            self.mmu.private_upper = true;
        }
        self.mmu.fast[(linear >> 12) as usize & (FAST_ENTRIES - 1)] = FastEntry { tag, frame, permissions };
    }

    fn entry_allows(&self, entry: &Entry, access: Access) -> bool {
        if self.permission_fault(entry.bits, access).is_some() {
            return false;
        }
        match access.kind {
            AccessKind::Read => entry.has(bit::EPT_READABLE),
            AccessKind::Write => entry.has(bit::DIRTY | bit::EPT_WRITABLE),
            AccessKind::Fetch => entry.has(bit::EPT_EXECUTABLE),
        }
    }

    /// Looks `linear` up in both levels. Global entries are looked up first in the upper half, where almost all are.
    fn tlb_find(&mut self, linear: u64, kind: AccessKind) -> Option<Found> {
        let (space, global) = (self.mmu.space.0, self.mmu.global.0);
        let ids = if linear >> 63 != 0 { [global, space] } else { [space, global] };
        let level = if kind == AccessKind::Fetch { &self.mmu.fetch_level } else { &self.mmu.data_level };
        for id in ids {
            if let Some(at) = level.small.find(small_tag(linear, id)) {
                return Some((*level.small.entry(at), false));
            }
            if let Some(at) = level.large.find(large_tag(linear, id)) {
                return Some((*level.large.entry(at), true));
            }
        }
        for id in ids {
            let small = self.mmu.second.lookup(small_tag(linear, id), SMALL_SHIFT).map(|e| (e, false));
            let found = small.or_else(|| self.mmu.second.lookup(large_tag(linear, id), LARGE_SHIFT).map(|e| (e, true)));
            if let Some((entry, large)) = found {
                if kind == AccessKind::Fetch {
                    self.mmu.count.fetch_second_level_hits += 1;
                } else {
                    self.mmu.count.data_second_level_hits += 1;
                }
                self.stall += cost::SECOND_LEVEL_HIT;
                self.first_level_insert(linear, kind, entry, large);
                return Some((entry, large));
            }
        }
        None
    }

    fn count_walk(&mut self, kind: AccessKind) {
        if kind == AccessKind::Fetch {
            self.mmu.count.fetch_walks += 1;
        } else {
            self.mmu.count.data_walks += 1;
        }
        self.stall += cost::WALK;
    }

    fn tlb_insert(&mut self, linear: u64, kind: AccessKind, entry: Entry, large: bool) {
        let id = self.entry_id(&entry);
        if large {
            self.mmu.second.insert(large_tag(linear, id), LARGE_SHIFT, entry);
        } else {
            self.mmu.second.insert(small_tag(linear, id), SMALL_SHIFT, entry);
        }
        self.first_level_insert(linear, kind, entry, large);
    }

    fn entry_id(&self, entry: &Entry) -> u16 {
        if entry.has(bit::GLOBAL) { self.mmu.global.0 } else { self.mmu.space.0 }
    }

    /// Inserts into the first level; what goes out of it also goes out of the look-up in front of it.
    fn first_level_insert(&mut self, linear: u64, kind: AccessKind, entry: Entry, large: bool) {
        let id = self.entry_id(&entry);
        let fetch = kind == AccessKind::Fetch;
        let level = if fetch { &mut self.mmu.fetch_level } else { &mut self.mmu.data_level };
        let array = if large { &mut level.large } else { &mut level.small };
        let tag = if large { large_tag(linear, id) } else { small_tag(linear, id) };
        if let Some(at) = array.find(tag) {
            array.update(at, entry);
            return;
        }
        let (_, gone) = array.insert(tag, entry);
        if gone != super::first_level::FirstLevel::EMPTY {
            self.fast_drop(gone, large, fetch);
        }
    }

    /// Drops the fast entries that a first-level tag stood behind.
    fn fast_drop(&mut self, tag: u64, large: bool, fetch: bool) {
        if large {
            let same = |t: u64| t & !0x1f_ffff == tag & !0x1f_ffff;
            if fetch {
                self.mmu.fetch.iter_mut().filter(|e| same(e.tag)).for_each(|e| *e = FetchEntry::empty());
            } else {
                self.mmu.fast.iter_mut().filter(|e| same(e.tag)).for_each(|e| *e = FastEntry::empty());
            }
            return;
        }
        let same = |t: u64| t & !0xfff == tag & !0xfff;
        let page = (tag >> 12) as usize;
        if fetch {
            let e = &mut self.mmu.fetch[page & (FETCH_ENTRIES - 1)];
            if same(e.tag) {
                *e = FetchEntry::empty();
            }
        } else {
            let e = &mut self.mmu.fast[page & (FAST_ENTRIES - 1)];
            if same(e.tag) {
                *e = FastEntry::empty();
            }
        }
    }

    /// Removes every trace of the page that holds `linear` in the current context, global entries included.
    pub(super) fn tlb_remove(&mut self, linear: u64, large: bool) {
        for id in [self.mmu.space.0, self.mmu.global.0] {
            self.tlb_remove_tagged(linear, id, large);
        }
    }

    pub(super) fn tlb_remove_tagged(&mut self, linear: u64, id: u16, large: bool) {
        let (tag, shift) =
            if large { (large_tag(linear, id), LARGE_SHIFT) } else { (small_tag(linear, id), SMALL_SHIFT) };
        self.mmu.leave_page();
        self.mmu.second.remove(tag, shift);
        for fetch in [false, true] {
            let level = if fetch { &mut self.mmu.fetch_level } else { &mut self.mmu.data_level };
            let array = if large { &mut level.large } else { &mut level.small };
            if array.find(tag).is_some() {
                array.remove(tag);
            }
            self.fast_drop(tag, large, fetch);
        }
    }

    /// Translates for an instruction fetch.
    ///
    /// # Errors
    /// The fault or VM-exit of the fetch.
    #[inline]
    pub fn fetch_translate(&mut self, linear: u64) -> Result<FetchPage, Leave> {
        let entry = &self.mmu.fetch[(linear >> 12) as usize & (FETCH_ENTRIES - 1)];
        let tag = (linear & !0xfff) | self.mmu.key[(linear >> 63) as usize];
        let allowed = if self.mode.cpl == 3 { entry.user } else { entry.supervisor };
        if entry.tag == tag
            && allowed
            && let Some(state) = entry.state
        {
            return Ok(FetchPage { host: entry.host, frame: entry.frame, state });
        }
        self.fetch_slow(linear)
    }

    #[cold]
    #[inline(never)]
    fn fetch_slow(&mut self, linear: u64) -> Result<FetchPage, Leave> {
        let access = self.access(AccessKind::Fetch, index::CS as u8);
        let Place::Memory { frame, host, state } = self.translate(linear, access)? else {
            return Err(self.no_memory(linear, 0));
        };
        if let Some((entry, _)) = self.tlb_find(linear, AccessKind::Fetch) {
            let smep = self.cr4 & cr4::SMEP != 0;
            let tag = small_tag(linear, 0) | self.mmu.key[(linear >> 63) as usize];
            if linear >> 63 != 0 && !entry.has(bit::GLOBAL) {
                self.mmu.private_upper = true;
            }
            self.mmu.fetch[(linear >> 12) as usize & (FETCH_ENTRIES - 1)] = FetchEntry {
                tag,
                frame,
                host,
                state: Some(state),
                user: entry.allows_fetch(true, smep),
                supervisor: entry.allows_fetch(false, smep),
            };
        }
        Ok(FetchPage { host, frame, state })
    }

    /// A page has become a source of decoded code: stores to it must be seen.
    pub fn code_marked(&mut self, frame: Frame) {
        for e in self.mmu.fast.iter_mut().filter(|e| e.frame == frame) {
            e.permissions &= 0b01_01_01;
        }
        self.mmu.code_epoch = self.memory.raise_code_epoch();
    }

    /// Before running: other processors may have decoded code since.
    pub fn sync_code_marks(&mut self) {
        let now = self.memory.code_epoch();
        if now != self.mmu.code_epoch {
            self.mmu.code_epoch = now;
            for e in self.mmu.fast.iter_mut() {
                e.permissions &= 0b01_01_01;
            }
        }
    }

    /// EPT leads to a host-physical address without memory: hardware would reach for a device of the host there.
    #[cold]
    fn no_memory(&mut self, linear: u64, guest: u64) -> Leave {
        self.vmexit_with(ExitInfo {
            reason: Some(ExitReason::EptMisconfiguration),
            guest_linear: linear,
            guest_physical: guest,
            ..ExitInfo::default()
        })
    }
}
