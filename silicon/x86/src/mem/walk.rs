//! The walk through the guest's paging structures ("Paging").

use silicon_memory::HostPhysical;
use x86_defs::control::{cr0, cr4};
use x86_defs::exception::pf;

use super::entry::{Entry, bit};
use super::ept::{EptFailure, right};
use super::ept_exit::Reached;
use super::format::{ACCESSED, DIRTY, Format, GLOBAL, Mode, NO_EXECUTE, PRESENT, USER, WRITABLE};
use super::fractured::Noted;
use super::structure_cache::Cached;
use super::translate::LARGE_SHIFT;
use super::{Access, AccessKind};
use crate::core::Core;
use crate::{Leave, cost};

/// What a walk found.
pub(super) enum Walked {
    Page {
        entry: Entry,
        large: bool,
    },
    /// The guest's tables lead to a guest-physical address to which EPT does not allow the access, while device accesses
    /// are being replayed.
    Device {
        guest: u64,
    },
}

/// An entry that the walk went through, to set its accessed and dirty flags.
#[derive(Clone, Copy)]
struct Step {
    table: Cached,
    offset: u64,
    raw: u64,
}

/// Levels of 5-level paging.
const MOST_LEVELS: usize = 5;
const ALL_RIGHTS: u16 = bit::WRITABLE | bit::USER | bit::EXECUTABLE;

/// Takes the rights away that an entry does not give.
fn restrict(bits: u16, raw: u64, format: &Format) -> u16 {
    let mut bits = bits;
    if raw & WRITABLE == 0 {
        bits &= !bit::WRITABLE;
    }
    if raw & USER == 0 {
        bits &= !bit::USER;
    }
    if format.wide && raw & NO_EXECUTE != 0 {
        bits &= !bit::EXECUTABLE;
    }
    bits
}

impl Core {
    /// Walks the tables for `linear`; checks permissions and sets accessed and dirty flags as the access asks.
    pub(super) fn walk(&mut self, linear: u64, access: Access) -> Result<Walked, Leave> {
        if self.cr0 & cr0::PG == 0 {
            return self.finish_walk(linear, linear & 0xffff_ffff, ALL_RIGHTS | bit::DIRTY, LARGE_SHIFT, access);
        }
        let format = self.paging_format();
        let (mut level, mut table) = self.walk_start(linear, access, &format)?;
        let mut steps: [Option<Step>; MOST_LEVELS] = [None; MOST_LEVELS];
        loop {
            let offset = format.offset(linear, level);
            let raw = format.load(table.table, offset);
            self.mmu.count.guest_references += 1;
            self.stall += cost::WALK_REFERENCE;
            if raw & PRESENT == 0 {
                return Err(self.page_fault(linear, access, 0));
            }
            let leaf = format.is_leaf(raw, level);
            if raw & format.reserved(level, leaf) != 0 {
                return Err(self.page_fault(linear, access, pf::PRESENT | pf::RESERVED));
            }
            let bits = restrict(table.bits, raw, &format);
            let step = Step { table, offset, raw };
            if leaf {
                steps[level as usize] = Some(step);
                return self.walk_leaf(linear, access, &format, level, bits, &steps);
            }
            let guest = format.table(raw);
            let next = self.table_at(linear, access, guest, format.offset(linear, level - 1), bits)?;
            // Flags of the upper levels are set before their content is cached.
            self.set_flags(linear, &step, ACCESSED, &format)?;
            table = next;
            if format.long() {
                let space = self.mmu.space.0;
                match level {
                    1 => self.mmu.pde.insert(linear, space, table),
                    2 => self.mmu.pdpte.insert(linear, space, table),
                    _ => {}
                }
            }
            level -= 1;
        }
    }

    fn walk_leaf(
        &mut self,
        linear: u64,
        access: Access,
        format: &Format,
        level: u32,
        bits: u16,
        steps: &[Option<Step>],
    ) -> Result<Walked, Leave> {
        let Some(step) = steps[level as usize] else { unreachable!("the last step was noted") };
        let raw = step.raw;
        let mut bits = bits | format.key(raw) << bit::KEY_SHIFT;
        if let Some(code) = self.permission_fault(bits, access) {
            return Err(self.page_fault(linear, access, pf::PRESENT | code));
        }
        if raw & GLOBAL != 0 && self.cr4 & cr4::PGE != 0 {
            bits |= bit::GLOBAL;
        }
        let write = access.kind == AccessKind::Write;
        self.set_flags(linear, &step, if write { ACCESSED | DIRTY } else { ACCESSED }, format)?;
        if write || raw & DIRTY != 0 {
            bits |= bit::DIRTY;
        }
        let mask = (1_u64 << format.shift(level)) - 1;
        let guest = format.page(raw, level) | (linear & mask);
        self.finish_walk(linear, guest, bits, format.shift(level), access)
    }

    /// The level to start at and its table: from the paging-structure caches, the PDPTE registers, or CR3.
    fn walk_start(&mut self, linear: u64, access: Access, format: &Format) -> Result<(u32, Cached), Leave> {
        if format.long() {
            let space = self.mmu.space.0;
            if let Some(hit) = self.mmu.pde.lookup(linear, space) {
                return Ok((0, hit));
            }
            if let Some(hit) = self.mmu.pdpte.lookup(linear, space) {
                return Ok((1, hit));
            }
        }
        let guest = match format.mode {
            Mode::Levels4 | Mode::Levels5 => self.cr3 & self.model.physical_mask() & !0xfff,
            Mode::Bits32 => self.cr3 & 0xffff_f000,
            Mode::Pae => {
                let pdpte = self.vmx.pdptes[(linear >> 30) as usize & 3];
                if pdpte & PRESENT == 0 {
                    return Err(self.page_fault(linear, access, 0));
                }
                format.table(pdpte)
            }
        };
        let level = format.root();
        let table = self.table_at(linear, access, guest, format.offset(linear, level), ALL_RIGHTS)?;
        Ok((level, table))
    }

    /// The table at a guest-physical address, of which the entry at `offset` is going to be used.
    fn table_at(&mut self, linear: u64, access: Access, guest: u64, offset: u64, bits: u16) -> Result<Cached, Leave> {
        let need = self.ept_need_of_tables();
        let mut found = self.ept_translate(guest | offset, need);
        if found.is_err() && self.mmu.mmio.active && need != right::READ {
            // Instruction emulation leaves the flags alone that it cannot set.
            found = self.ept_translate(guest | offset, right::READ);
        }
        let failure = match found {
            Ok(nested) if self.vmx.apic.is_access_page(nested.host) => return Err(self.apic_guest_physical_exit()),
            Ok(nested) => match self.memory.page(HostPhysical(nested.host)) {
                Some((table, state)) => {
                    return Ok(Cached { table, state: Some(state), guest, writable: nested.writable(), bits });
                }
                None => EptFailure::Misconfiguration,
            },
            Err(failure) => failure,
        };
        // Tables in device memory: instruction emulation finds nothing there, as in KVM.
        if self.mmu.mmio.active && failure == EptFailure::Misconfiguration {
            return Err(self.page_fault(linear, access, 0));
        }
        Err(self.ept_exit(Reached::table(linear, guest | offset, need), failure))
    }

    fn set_flags(&mut self, linear: u64, step: &Step, want: u64, format: &Format) -> Result<(), Leave> {
        if step.raw & want == want {
            return Ok(());
        }
        let Cached { mut table, mut state, writable, guest, .. } = step.table;
        if !writable {
            let at = guest | step.offset;
            let page = match self.ept_translate(at, right::READ | right::WRITE) {
                Ok(nested) => self.memory.page(HostPhysical(nested.host)),
                // Tables in read-only memory: instruction emulation goes on without the flags, as in KVM.
                Err(EptFailure::Violation { .. }) if self.mmu.mmio.active => return Ok(()),
                Err(failure) => {
                    return Err(self.ept_exit(Reached::table(linear, at, right::READ | right::WRITE), failure));
                }
            };
            if let Some(page) = page {
                (table, state) = (page.0, Some(page.1));
            }
        }
        if let Some(state) = state {
            state.written();
        }
        format.store(table, step.offset, step.raw | want);
        Ok(())
    }

    /// The last step: the guest-physical page, of `1 << shift` bytes, through EPT.
    fn finish_walk(&mut self, linear: u64, guest: u64, bits: u16, shift: u32, access: Access) -> Result<Walked, Leave> {
        let user_page = bits & bit::USER != 0;
        let need = access.kind.ept_need(user_page);
        let nested = match self.ept_translate(guest, need) {
            Ok(nested) => nested,
            // The hypervisor emulates: it knows what is there.
            Err(_) if self.mmu.mmio.active && access.kind != AccessKind::Fetch => {
                return Ok(Walked::Device { guest });
            }
            Err(failure) => {
                self.drop_linear(linear);
                return Err(self.ept_exit(Reached::page(linear, guest, need, bits), failure));
            }
        };
        let mut bits = bits;
        if nested.writable() {
            bits |= bit::EPT_WRITABLE;
        }
        if nested.allowed & right::READ != 0 {
            bits |= bit::EPT_READABLE;
        }
        if nested.allowed & AccessKind::Fetch.ept_need(user_page) != 0 {
            bits |= bit::EPT_EXECUTABLE;
        }
        let large = shift >= LARGE_SHIFT && nested.large;
        let pieces = shift > LARGE_SHIFT || (shift == LARGE_SHIFT && !large);
        if pieces && self.cr0 & cr0::PG != 0 && self.mmu.fractured.note(linear, shift) == Noted::Overflow {
            self.mmu.clear();
        }
        let mask = if large { !0x1f_ffff } else { !0xfff };
        let entry = Entry { host: nested.host & mask, guest: guest & mask, bits };
        Ok(Walked::Page { entry, large })
    }
}
