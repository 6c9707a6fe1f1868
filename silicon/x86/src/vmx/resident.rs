//! Guest-state fields that live in the processor while the VMCS is current ("Guest-State Area").

use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{exit, interruptibility};

use super::Dirty;
use crate::Core;

/// Encodings of the first (ES) of the eight segment registers' fields; the others follow in steps of two.
const SELECTOR: u16 = Field::GuestEsSelector as u16;
const SELECTOR_LAST: u16 = Field::GuestTrSelector as u16;
const LIMIT: u16 = Field::GuestEsLimit as u16;
const LIMIT_LAST: u16 = Field::GuestTrLimit as u16;
const RIGHTS: u16 = Field::GuestEsRights as u16;
const RIGHTS_LAST: u16 = Field::GuestTrRights as u16;
const BASE: u16 = Field::GuestEsBase as u16;
const BASE_LAST: u16 = Field::GuestTrBase as u16;

#[inline(always)]
fn segment(encoding: u16, first: u16) -> usize {
    usize::from((encoding - first) >> 1) & 7
}

impl Core {
    /// The value of a guest-state field that the processor holds; `None` where the VMCS has it.
    #[inline]
    pub(super) fn resident(&self, field: Field) -> Option<u64> {
        let dirty = self.vmx.dirty;
        let saved = self.vmx.controls.exit;
        Some(match field {
            Field::GuestRip => self.rip,
            Field::GuestRsp => self.gpr[4],
            Field::GuestRflags if !dirty.any(Dirty::RFLAGS) => self.rflags(),
            Field::GuestCr0 => self.cr0,
            Field::GuestCr3 => self.cr3,
            Field::GuestCr4 => self.cr4,
            Field::GuestInterruptibility if !dirty.any(Dirty::INTERRUPTIBILITY) => self.interruptibility(),
            Field::GuestActivity => u64::from(self.vmx.activity),
            Field::GuestPendingDebugExceptions => self.vmx.pending_debug,
            Field::GuestInterruptStatus => self.vmx.apic.status(),
            Field::GuestGdtrBase => self.gdtr.base,
            Field::GuestGdtrLimit if !dirty.any(Dirty::GDTR_LIMIT) => u64::from(self.gdtr.limit),
            Field::GuestIdtrBase => self.idtr.base,
            Field::GuestIdtrLimit if !dirty.any(Dirty::IDTR_LIMIT) => u64::from(self.idtr.limit),
            Field::GuestSysenterCs => self.msrs.sysenter_cs,
            Field::GuestSysenterEsp => self.msrs.sysenter_esp,
            Field::GuestSysenterEip => self.msrs.sysenter_eip,
            Field::GuestPdpte0 => self.vmx.pdptes[0],
            Field::GuestPdpte1 => self.vmx.pdptes[1],
            Field::GuestPdpte2 => self.vmx.pdptes[2],
            Field::GuestPdpte3 => self.vmx.pdptes[3],
            // VM-exits save these only when a control says so; otherwise the VMCS keeps what it had.
            Field::GuestDr7 if saved & exit::SAVE_DEBUG_CONTROLS != 0 => self.dr[7],
            Field::GuestDebugctl if saved & exit::SAVE_DEBUG_CONTROLS != 0 => self.msrs.debugctl,
            Field::GuestPat if saved & exit::SAVE_PAT != 0 => self.msrs.pat,
            Field::GuestEfer if saved & exit::SAVE_EFER != 0 => self.efer,
            _ => {
                let e = field as u16;
                match e {
                    SELECTOR..=SELECTOR_LAST => u64::from(self.seg[segment(e, SELECTOR)].selector),
                    LIMIT..=LIMIT_LAST => u64::from(self.seg[segment(e, LIMIT)].limit),
                    RIGHTS..=RIGHTS_LAST => u64::from(self.seg[segment(e, RIGHTS)].rights),
                    BASE..=BASE_LAST => self.seg[segment(e, BASE)].base,
                    _ => return None,
                }
            }
        })
    }

    /// Writes a guest-state field to the processor where it holds it; says what the next VM-entry must look at.
    #[inline]
    pub(super) fn set_resident(&mut self, field: Field, value: u64) -> Dirty {
        const CONTROL_REGISTERS: Dirty = Dirty::REGISTERS
            .with(Dirty::SEGMENTS)
            .with(Dirty::PDPTES)
            .with(Dirty::MODE)
            .with(Dirty::PERMISSIONS)
            .with(Dirty::TRANSLATION);
        const SEGMENTS: Dirty = Dirty::SEGMENTS.with(Dirty::MODE);
        match field {
            Field::GuestRip => self.rip = value,
            Field::GuestRsp => self.gpr[4] = value,
            Field::GuestRflags => {
                let before = self.rflags_rest;
                self.set_rflags(value);
                self.vmx.dirty.assign(Dirty::RFLAGS, self.rflags() != value);
                let vm = (before ^ self.rflags_rest) & x86_defs::rflags::VM != 0;
                return if vm { SEGMENTS } else { Dirty::NONE };
            }
            Field::GuestCr0 => {
                self.cr0 = value;
                return CONTROL_REGISTERS;
            }
            Field::GuestCr3 => {
                self.cr3 = value;
                return Dirty::REGISTERS.with(Dirty::PDPTES).with(Dirty::TRANSLATION);
            }
            Field::GuestCr4 => {
                self.cr4 = value;
                return CONTROL_REGISTERS;
            }
            Field::GuestEfer => {
                self.efer = value;
                return CONTROL_REGISTERS;
            }
            Field::GuestInterruptibility => {
                self.set_interruptibility(value);
                self.vmx.dirty.assign(Dirty::INTERRUPTIBILITY, self.interruptibility() != value);
            }
            Field::GuestActivity => self.vmx.activity = value as u32,
            Field::GuestPendingDebugExceptions => self.vmx.pending_debug = value,
            Field::GuestInterruptStatus => self.vmx.apic.set_status(value),
            Field::GuestGdtrBase => {
                self.gdtr.base = value;
                return Dirty::SEGMENTS;
            }
            Field::GuestGdtrLimit => {
                self.gdtr.limit = value as u16;
                self.vmx.dirty.assign(Dirty::GDTR_LIMIT, value > 0xffff);
                return Dirty::SEGMENTS;
            }
            Field::GuestIdtrBase => {
                self.idtr.base = value;
                return Dirty::SEGMENTS;
            }
            Field::GuestIdtrLimit => {
                self.idtr.limit = value as u16;
                self.vmx.dirty.assign(Dirty::IDTR_LIMIT, value > 0xffff);
                return Dirty::SEGMENTS;
            }
            Field::GuestSysenterCs => self.msrs.sysenter_cs = value,
            Field::GuestSysenterEsp => {
                self.msrs.sysenter_esp = value;
                return Dirty::REGISTERS;
            }
            Field::GuestSysenterEip => {
                self.msrs.sysenter_eip = value;
                return Dirty::REGISTERS;
            }
            Field::GuestPdpte0 => return self.set_pdpte(0, value),
            Field::GuestPdpte1 => return self.set_pdpte(1, value),
            Field::GuestPdpte2 => return self.set_pdpte(2, value),
            Field::GuestPdpte3 => return self.set_pdpte(3, value),
            Field::GuestDr7 => {
                self.dr[7] = value;
                return Dirty::REGISTERS;
            }
            Field::GuestDebugctl => {
                self.msrs.debugctl = value;
                return Dirty::REGISTERS;
            }
            Field::GuestPat => {
                self.msrs.pat = value;
                return Dirty::REGISTERS;
            }
            Field::GuestPkrs => return Dirty::REGISTERS,
            Field::VmcsLinkPointer => return Dirty::LINK_POINTER,
            _ => {
                let e = field as u16;
                match e {
                    SELECTOR..=SELECTOR_LAST => self.seg[segment(e, SELECTOR)].selector = value as u16,
                    LIMIT..=LIMIT_LAST => self.seg[segment(e, LIMIT)].limit = value as u32,
                    RIGHTS..=RIGHTS_LAST => self.seg[segment(e, RIGHTS)].rights = value as u32,
                    BASE..=BASE_LAST => self.seg[segment(e, BASE)].base = value,
                    _ => return Dirty::NONE,
                }
                return SEGMENTS;
            }
        }
        Dirty::NONE
    }

    fn set_pdpte(&mut self, index: usize, value: u64) -> Dirty {
        self.vmx.pdptes[index] = value;
        Dirty::PDPTES.with(Dirty::TRANSLATION)
    }

    /// Guest interruptibility state of the processor.
    #[inline]
    fn interruptibility(&self) -> u64 {
        let mut bits = 0;
        if self.events.sti_shadow {
            bits |= interruptibility::BLOCKING_BY_STI;
        }
        if self.events.mov_ss_shadow {
            bits |= interruptibility::BLOCKING_BY_MOV_SS;
        }
        if self.events.nmi_blocked {
            bits |= interruptibility::BLOCKING_BY_NMI;
        }
        u64::from(bits)
    }

    #[inline]
    fn set_interruptibility(&mut self, value: u64) {
        let value = value as u32;
        self.events.sti_shadow = value & interruptibility::BLOCKING_BY_STI != 0;
        self.events.mov_ss_shadow = value & interruptibility::BLOCKING_BY_MOV_SS != 0;
        self.events.nmi_blocked = value & interruptibility::BLOCKING_BY_NMI != 0;
    }
}
