//! Invalidation ("Invalidation of TLBs and Paging-Structure Caches"): contexts are retired in constant time.

use x86_defs::control::{cr0, cr4};

use super::context::{ContextKey, Space};
use crate::Core;

/// INVPCID types ("INVPCID").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invpcid {
    /// One address in one PCID, global translations kept.
    Individual { pcid: u16, linear: u64 },
    /// One PCID, global translations kept.
    SingleContext { pcid: u16 },
    /// All PCIDs, global translations included.
    AllIncludingGlobal,
    /// All PCIDs, global translations kept.
    AllRetainingGlobal,
}

/// INVVPID types ("INVVPID").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invvpid {
    Individual { vpid: u16, linear: u64 },
    SingleContext { vpid: u16 },
    AllContexts,
    SingleContextRetainingGlobal { vpid: u16 },
}

/// INVEPT types ("INVEPT").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invept {
    SingleContext { eptp: u64 },
    Global,
}

impl Core {
    /// Selects the translation context that CR0, CR3, CR4, VPID and EPTP ask for. To be called after any of them
    /// changed, and at VM-entry.
    pub fn tlb_select(&mut self) {
        let space = self.space_of(self.cr3);
        let controls = &self.vmx.controls;
        self.mmu.set_context(controls.vpid, controls.eptp, space);
    }

    fn space_of(&self, cr3: u64) -> Space {
        if self.cr0 & cr0::PG == 0 {
            Space::Unpaged
        } else if self.cr4 & cr4::PCIDE != 0 {
            Space::Pcid((cr3 & 0xfff) as u16)
        } else {
            Space::Pcid(0)
        }
    }

    /// After MOV to CR3 has set [`Core::cr3`]: invalidates the entries of its PCID unless `keep` (bit 63 of the source
    /// operand with CR4.PCIDE) asks to keep them, and selects it.
    pub fn tlb_cr3_written(&mut self, keep: Keep) {
        if keep == Keep::Nothing {
            let space = self.space_of(self.cr3);
            self.retire(space);
        }
        self.tlb_select();
    }

    /// After a write to CR0 or CR4 (bits that changed given): invalidates what the manual asks for and selects the
    /// context. Permissions of the fast look-up are derived anew.
    pub fn tlb_controls_written(&mut self, cr0_changed: u64, cr4_changed: u64) {
        let all = cr0_changed & cr0::PG != 0
            || cr4_changed & (cr4::PGE | cr4::PAE | cr4::PSE | cr4::LA57) != 0
            || cr4_changed & self.cr4 & cr4::SMEP != 0
            || cr4_changed & !self.cr4 & cr4::PCIDE != 0;
        if all {
            self.retire_vpid();
        }
        if cr0_changed & (cr0::WP | cr0::PG) != 0 || cr4_changed & (cr4::SMEP | cr4::SMAP) != 0 || all {
            self.mmu.clear_fast();
        }
        self.tlb_select();
    }

    /// INVLPG: the page of `linear` in the current PCID, and global translations of it.
    pub fn tlb_invlpg(&mut self, linear: u64) {
        self.mmu.count.page_invalidations += 1;
        if self.mmu.fractured.covers(linear) {
            self.retire(self.space_of(self.cr3));
            self.retire(Space::Global);
            self.tlb_select();
        } else {
            self.tlb_remove(linear, false);
            self.tlb_remove(linear, true);
        }
        self.clear_structure_caches();
    }

    /// INVPCID, operands checked.
    pub fn tlb_invpcid(&mut self, what: Invpcid) {
        match what {
            Invpcid::Individual { pcid, linear } => {
                self.mmu.count.page_invalidations += 1;
                let key = self.key(Space::Pcid(pcid));
                self.remove_where(linear, |k| *k == key);
                self.clear_structure_caches();
            }
            Invpcid::SingleContext { pcid } => self.retire(Space::Pcid(pcid)),
            Invpcid::AllIncludingGlobal => self.retire_vpid(),
            Invpcid::AllRetainingGlobal => {
                let vpid = self.vmx.controls.vpid;
                self.mmu.count.flushes += 1;
                self.mmu.contexts.retire_where(|k| k.vpid == vpid && matches!(k.space, Space::Pcid(_)));
            }
        }
        self.tlb_select();
    }

    /// INVVPID, operands checked.
    pub fn tlb_invvpid(&mut self, what: Invvpid) {
        self.mmu.count.flushes += 1;
        let not_nested = |k: &ContextKey| k.space != Space::Nested;
        let contexts = &mut self.mmu.contexts;
        match what {
            // Of every address space of the VPID, global translations included.
            Invvpid::Individual { vpid, linear } => {
                self.remove_where(linear, |k| k.vpid == vpid && not_nested(k));
                self.clear_structure_caches();
            }
            Invvpid::SingleContext { vpid } => contexts.retire_where(|k| k.vpid == vpid && not_nested(k)),
            Invvpid::AllContexts => contexts.retire_where(|k| k.vpid != 0 && not_nested(k)),
            Invvpid::SingleContextRetainingGlobal { vpid } => {
                contexts.retire_where(|k| k.vpid == vpid && not_nested(k) && k.space != Space::Global);
            }
        }
        self.tlb_select();
    }

    /// INVEPT, operands checked.
    pub fn tlb_invept(&mut self, what: Invept) {
        self.mmu.count.flushes += 1;
        match what {
            Invept::SingleContext { eptp } => {
                let root = eptp & !0xfff;
                self.mmu.contexts.retire_where(|k| k.eptp & !0xfff == root);
            }
            Invept::Global => self.mmu.contexts.retire_where(|k| k.eptp != 0),
        }
        self.tlb_select();
    }

    /// VM-entry and VM-exit without VPIDs invalidate all translations of VPID 0.
    pub fn tlb_world_switch(&mut self) {
        if self.vmx.controls.vpid == 0 {
            self.retire_vpid();
        }
        self.tlb_select();
    }

    /// Removes one page from the contexts that satisfy `matches`: whole contexts where it may be there in pieces.
    fn remove_where(&mut self, linear: u64, matches: impl Fn(&ContextKey) -> bool) {
        if self.mmu.fractured.covers(linear) {
            self.mmu.contexts.retire_where(matches);
            return;
        }
        for id in self.mmu.contexts.ids_where(matches) {
            self.tlb_remove_tagged(linear, id.0, false);
            self.tlb_remove_tagged(linear, id.0, true);
        }
    }

    fn key(&self, space: Space) -> ContextKey {
        ContextKey { vpid: self.vmx.controls.vpid, eptp: self.vmx.controls.eptp, space }
    }

    fn retire(&mut self, space: Space) {
        self.mmu.count.flushes += 1;
        let key = self.key(space);
        self.mmu.contexts.retire(key);
    }

    /// Retires everything of the current VPID, global entries included.
    fn retire_vpid(&mut self) {
        self.mmu.count.flushes += 1;
        let vpid = self.vmx.controls.vpid;
        self.mmu.contexts.retire_where(|k| k.vpid == vpid && k.space != Space::Nested);
    }

    /// What the paging-structure caches have for `linear`: a fault of the address voids it.
    pub(super) fn drop_structures(&mut self, linear: u64) {
        let space = self.mmu.space.0;
        self.mmu.pde.remove(linear, space);
        self.mmu.pdpte.remove(linear, space);
    }

    /// Everything cached for `linear` in the current context: an EPT violation voids it.
    pub(super) fn drop_linear(&mut self, linear: u64) {
        self.tlb_remove(linear, false);
        self.tlb_remove(linear, true);
        self.drop_structures(linear);
    }

    fn clear_structure_caches(&mut self) {
        self.mmu.pde.clear();
        self.mmu.pdpte.clear();
    }
}

/// What a MOV to CR3 keeps of the new PCID's translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    Everything,
}
