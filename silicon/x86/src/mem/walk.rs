//! The guest's paging structures ("Paging").

use silicon_memory::{Frame, HostPhysical, PageState};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::exception::{pf, vector};
use x86_defs::rflags;
use x86_defs::vmx::ExitReason;

use super::entry::{Entry, bit};
use super::ept::EptFailure;
use super::nested::Nested;
use super::structure_cache::Cached;
use super::{Access, AccessKind};
use crate::core::{Core, Fault};
use crate::vmx::ExitInfo;
use crate::{Leave, cost};

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;

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

/// Format of the tables.
#[derive(Clone, Copy)]
struct Format {
    /// Level of the root table, 0 being the last.
    root: u32,
    wide: bool,
}

/// An entry that the walk went through, to set its accessed and dirty flags.
#[derive(Clone, Copy)]
struct Step {
    table: Frame,
    state: Option<&'static PageState>,
    offset: u64,
    raw: u64,
    guest: u64,
}

impl Core {
    /// Walks the tables for `linear`; checks permissions and sets accessed and dirty flags as the access asks.
    pub(super) fn walk(&mut self, linear: u64, access: Access) -> Result<Walked, Leave> {
        if self.cr0 & cr0::PG == 0 {
            let bits = bit::WRITABLE | bit::USER | bit::EXECUTABLE | bit::DIRTY;
            return self.finish_walk(linear, linear & 0xffff_ffff, bits, true, access);
        }
        let format = if self.efer & efer::LMA != 0 {
            Format { root: 3, wide: true }
        } else if self.cr4 & cr4::PAE != 0 {
            Format { root: 2, wide: true }
        } else {
            Format { root: 1, wide: false }
        };
        let (mut level, mut cached) = self.walk_start(linear, format)?;
        let mut steps: [Option<Step>; 4] = [None; 4];
        let physical = self.model.physical_mask();
        loop {
            let shift = if format.wide { 12 + 9 * level } else { 12 + 10 * level };
            let (raw, offset) = if format.wide {
                let offset = ((linear >> shift) & 0x1ff) * 8;
                let offset =
                    if format.root == 2 && level == 2 { (cached.guest & 0xfe0) + (offset & 0x18) } else { offset };
                (cached.table.load::<u64>(offset), offset)
            } else {
                let offset = ((linear >> shift) & 0x3ff) * 4;
                (u64::from(cached.table.load::<u32>(offset)), offset)
            };
            self.mmu.count.guest_references += 1;
            self.stall += cost::WALK_REFERENCE;
            if raw & PRESENT == 0 {
                return Err(self.page_fault(linear, access, 0));
            }
            let pae_root = format.root == 2 && level == 2;
            let may_be_large =
                level == 1 && (format.wide || self.cr4 & cr4::PSE != 0) || level == 2 && format.root == 3;
            let leaf = level == 0 || (may_be_large && raw & LARGE != 0);
            if format.wide && !pae_root {
                let mut reserved = !physical & ((1 << 52) - 1);
                if self.efer & efer::NXE == 0 {
                    reserved |= NO_EXECUTE;
                }
                if level == 3 || (level == 2 && !may_be_large) {
                    reserved |= LARGE;
                }
                if leaf && level > 0 {
                    reserved |= ((1 << shift) - 1) & !0x1fff;
                }
                if raw & reserved != 0 {
                    return Err(self.page_fault(linear, access, pf::PRESENT | pf::RESERVED));
                }
            }
            let mut bits = cached.bits;
            if !pae_root {
                if raw & WRITABLE == 0 {
                    bits &= !bit::WRITABLE;
                }
                if raw & USER == 0 {
                    bits &= !bit::USER;
                }
                if format.wide && raw & NO_EXECUTE != 0 {
                    bits &= !bit::EXECUTABLE;
                }
                steps[level as usize] =
                    Some(Step { table: cached.table, state: cached.state, offset, raw, guest: cached.guest });
            }
            if leaf {
                if let Some(code) = self.permission_fault(bits, access) {
                    return Err(self.page_fault(linear, access, pf::PRESENT | code));
                }
                if raw & GLOBAL != 0 && self.cr4 & cr4::PGE != 0 {
                    bits |= bit::GLOBAL;
                }
                let write = access.kind == AccessKind::Write;
                for (l, step) in steps.iter().enumerate() {
                    if let Some(step) = step {
                        let want = if write && l == level as usize { ACCESSED | DIRTY } else { ACCESSED };
                        self.set_flags(linear, *step, want, format.wide)?;
                    }
                }
                if write || raw & DIRTY != 0 {
                    bits |= bit::DIRTY;
                }
                let mask = (1_u64 << shift) - 1;
                let base = if format.wide {
                    raw & physical & !mask & !0xfff
                } else if level == 1 {
                    // PSE-36: bits 20:13 are bits 39:32 of the address.
                    (raw & 0xffc0_0000) | ((raw & 0x1f_e000) << 19)
                } else {
                    raw & !0xfff
                };
                let guest = base | (linear & mask);
                return self.finish_walk(linear, guest, bits, level > 0, access);
            }
            let guest = if format.wide { raw & physical & !0xfff } else { raw & 0xffff_f000 };
            let (table, state) = self.table_page(linear, guest)?;
            // Flags of the upper levels are set before their content is cached.
            if let Some(step) = steps[level as usize].take() {
                self.set_flags(linear, step, ACCESSED, format.wide)?;
            }
            cached = Cached { table, state: Some(state), guest, bits };
            if format.root == 3 {
                let space = self.mmu.space.0;
                match level {
                    1 => self.mmu.pde.insert(linear, space, cached),
                    2 => self.mmu.pdpte.insert(linear, space, cached),
                    _ => {}
                }
            }
            level -= 1;
        }
    }

    /// The level to start at and its table: from the paging-structure caches, or CR3.
    fn walk_start(&mut self, linear: u64, format: Format) -> Result<(u32, Cached), Leave> {
        if format.root == 3 {
            let space = self.mmu.space.0;
            if let Some(hit) = self.mmu.pde.lookup(linear, space) {
                return Ok((0, hit));
            }
            if let Some(hit) = self.mmu.pdpte.lookup(linear, space) {
                return Ok((1, hit));
            }
        }
        let guest = match format.root {
            3 => self.cr3 & self.model.physical_mask() & !0xfff,
            2 => self.cr3 & 0xffff_ffe0,
            _ => self.cr3 & 0xffff_f000,
        };
        let (table, state) = self.table_page(linear, guest & !0xfff)?;
        let bits = bit::WRITABLE | bit::USER | bit::EXECUTABLE;
        Ok((format.root, Cached { table, state: Some(state), guest, bits }))
    }

    /// The translation of a table that has just been translated.
    fn ept_peek(&self, guest: u64) -> Option<Nested> {
        if self.vmx.controls.eptp == 0 {
            return Some(Nested { host: guest & !0xfff, allowed: 7, large: true });
        }
        self.mmu.nested.lookup(guest, self.mmu.ept.0)
    }

    fn table_page(&mut self, linear: u64, guest: u64) -> Result<(Frame, &'static PageState), Leave> {
        let nested = match self.ept_translate(guest) {
            Ok(nested) if nested.allowed & 1 != 0 => nested,
            Ok(nested) => return Err(self.ept_violation(linear, guest, 1, nested.allowed, false)),
            Err(failure) => return Err(self.ept_failure(linear, guest, 1, failure, false)),
        };
        if self.vmx.apic.is_access_page(nested.host) {
            return Err(self.apic_guest_physical_exit());
        }
        match self.memory.page(HostPhysical(nested.host)) {
            Some(page) => Ok(page),
            None => Err(self.ept_failure(linear, guest, 1, EptFailure::Misconfiguration, false)),
        }
    }

    fn set_flags(&mut self, linear: u64, step: Step, want: u64, wide: bool) -> Result<(), Leave> {
        if step.raw & want == want {
            return Ok(());
        }
        if let Some(nested) = self.ept_peek(step.guest)
            && nested.allowed & 2 == 0
        {
            return Err(self.ept_violation(linear, step.guest | step.offset, 3, nested.allowed, false));
        }
        if let Some(state) = step.state {
            state.written();
        }
        if wide {
            step.table.store(step.offset, step.raw | want);
        } else {
            step.table.store(step.offset, (step.raw | want) as u32);
        }
        Ok(())
    }

    /// The last step: the guest-physical page through EPT.
    fn finish_walk(
        &mut self,
        linear: u64,
        guest: u64,
        bits: u16,
        large: bool,
        access: Access,
    ) -> Result<Walked, Leave> {
        let need = access.kind.ept_bit();
        let nested = match self.ept_translate(guest) {
            Ok(nested) if nested.allowed & need != 0 => nested,
            // The hypervisor emulates: it knows what is there.
            _ if self.mmu.mmio.active => return Ok(Walked::Device { guest }),
            Ok(nested) => return Err(self.ept_violation(linear, guest, need, nested.allowed, true)),
            Err(failure) => return Err(self.ept_failure(linear, guest, need, failure, true)),
        };
        let mut bits = bits;
        if nested.allowed & 2 != 0 {
            bits |= bit::EPT_WRITABLE;
        }
        if nested.allowed & 4 != 0 {
            bits |= bit::EPT_EXECUTABLE;
        }
        let large = large && nested.large;
        let mask = if large { !0x1f_ffff } else { !0xfff };
        let entry = Entry { host: nested.host & mask, guest: guest & mask, bits };
        Ok(Walked::Page { entry, large })
    }

    /// Page-fault error bits when the combined permissions of all levels do not allow the access.
    pub(super) fn permission_fault(&self, bits: u16, access: Access) -> Option<u32> {
        let user_page = bits & bit::USER != 0;
        let allowed = if access.user {
            user_page
                && match access.kind {
                    AccessKind::Read => true,
                    AccessKind::Write => bits & bit::WRITABLE != 0,
                    AccessKind::Fetch => bits & bit::EXECUTABLE != 0,
                }
        } else {
            match access.kind {
                AccessKind::Fetch => bits & bit::EXECUTABLE != 0 && !(user_page && self.cr4 & cr4::SMEP != 0),
                _ if user_page && self.smap_forbids(access) => false,
                AccessKind::Read => true,
                AccessKind::Write => bits & bit::WRITABLE != 0 || self.cr0 & cr0::WP == 0,
            }
        };
        (!allowed).then_some(0)
    }

    fn smap_forbids(&self, access: Access) -> bool {
        self.cr4 & cr4::SMAP != 0 && (access.implicit || self.rflags_rest & rflags::AC == 0)
    }

    #[cold]
    fn page_fault(&mut self, linear: u64, access: Access, code: u32) -> Leave {
        let mut code = code;
        match access.kind {
            AccessKind::Read => {}
            AccessKind::Write => code |= pf::WRITE,
            AccessKind::Fetch => {
                let reported = (self.efer & efer::NXE != 0 && self.cr4 & cr4::PAE != 0) || self.cr4 & cr4::SMEP != 0;
                if reported {
                    code |= pf::FETCH;
                }
            }
        }
        if access.user {
            code |= pf::USER;
        }
        self.fault = Fault { vector: vector::PF, error_code: Some(code), address: linear };
        Leave::Fault
    }

    #[cold]
    fn ept_failure(&mut self, linear: u64, guest: u64, need: u8, failure: EptFailure, last: bool) -> Leave {
        match failure {
            EptFailure::Violation { allowed } => self.ept_violation(linear, guest, need, allowed, last),
            EptFailure::Misconfiguration => self.vmexit_with(ExitInfo {
                reason: Some(ExitReason::EptMisconfiguration),
                guest_linear: linear,
                guest_physical: guest,
                ..ExitInfo::default()
            }),
        }
    }

    /// Records an EPT violation ("Exit Qualification for EPT Violations").
    #[cold]
    fn ept_violation(&mut self, linear: u64, guest: u64, access: u8, allowed: u8, last: bool) -> Leave {
        let valid = 1 << 7;
        let translation = u64::from(last) << 8;
        self.vmexit_with(ExitInfo {
            reason: Some(ExitReason::EptViolation),
            qualification: u64::from(access) | u64::from(allowed) << 3 | valid | translation,
            guest_linear: linear,
            guest_physical: guest,
            ..ExitInfo::default()
        })
    }
}
