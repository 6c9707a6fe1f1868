//! The APIC-access page ("Virtualizing Memory-Mapped APIC Accesses").
//!
//! An instruction that touches it is executed alone, so that what a write asks for comes right after the instruction.
//! The page is never in the fast look-up.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::Write;
use super::page::offset;
use crate::mem::{Access, AccessKind, Place};
use crate::vmx::ExitInfo;
use crate::{Core, Leave};

/// Access types of the exit qualification ("Exit Qualification for APIC-Access VM Exits from Linear Accesses and
/// Guest-Physical Accesses"), in bits 15:12.
mod access_type {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const FETCH: u64 = 2;
    pub const LINEAR_DURING_DELIVERY: u64 = 3;
    pub const GUEST_PHYSICAL_DURING_DELIVERY: u64 = 10;
    pub const GUEST_PHYSICAL: u64 = 15;
}

const TYPE_SHIFT: u32 = 12;

/// Registers that reads are virtualized for with APIC-register virtualization.
fn readable(at: u16) -> bool {
    use offset as o;
    matches!(
        at,
        o::ID
            | o::VERSION
            | o::TPR
            | o::EOI
            | o::LDR
            | o::DFR
            | o::SVR
            | o::ISR..=0x27f
            | o::ESR
            | o::ICR_LOW
            | o::ICR_HIGH
            | o::LVT_TIMER..=o::LVT_ERROR
            | o::INITIAL_COUNT
            | o::DIVIDE
    )
}

/// Registers that writes are virtualized for with APIC-register virtualization.
fn writable(at: u16) -> bool {
    use offset as o;
    readable(at) && !matches!(at, o::VERSION | o::ISR..=0x27f)
}

impl Core {
    /// A translated linear address in the APIC-access page, at guest-physical address `guest`.
    ///
    /// # Errors
    /// The APIC-access VM-exit; [`Leave::Refetch`] where the instruction must be executed alone.
    #[cold]
    pub(crate) fn apic_place(&mut self, linear: u64, guest: u64, access: Access) -> Result<Place, Leave> {
        if self.mmu.mmio.active {
            // The hypervisor emulates the instruction: to it, the page is a device.
            return Ok(Place::Device { guest });
        }
        if access.kind == AccessKind::Fetch {
            return Err(self.apic_access_exit(linear, access_type::FETCH));
        }
        if !self.has_tpr_shadow() {
            return Err(self.apic_access_exit(linear, type_of(access.kind)));
        }
        if !self.self_modify {
            return Err(Leave::Refetch);
        }
        Ok(Place::Apic { linear })
    }

    /// Loads from the APIC-access page. For a load that a store to the same place follows, both must be virtualized.
    pub(crate) fn apic_load(&mut self, linear: u64, bytes: u64, access: Access) -> Result<u64, Leave> {
        self.check_apic_access(linear, bytes, access)?;
        let page = self.vapic((linear & 0xffc) as u16) >> ((linear & 3) * 8);
        Ok(u64::from(page) & (u64::MAX >> (64 - bytes * 8)))
    }

    /// Stores to the APIC-access page.
    pub(crate) fn apic_store(&mut self, linear: u64, bytes: u64, access: Access, value: u64) -> Result<(), Leave> {
        self.check_apic_access(linear, bytes, access)?;
        let (at, shift) = ((linear & 0xffc) as u16, (linear & 3) * 8);
        let mask = (u64::MAX >> (64 - bytes * 8) << shift) as u32;
        let old = self.vapic(at);
        self.set_vapic(at, (old & !mask) | ((value << shift) as u32 & mask));
        self.vmx.apic.write = Some(Write { offset: (linear & 0xfff) as u16, bytes: bytes as u8 });
        self.events.attention = true;
        Ok(())
    }

    /// Whether an access is virtualized.
    ///
    /// # Errors
    /// The APIC-access VM-exit where it is not.
    pub(crate) fn check_apic_access(&mut self, linear: u64, bytes: u64, access: Access) -> Result<(), Leave> {
        let at = (linear & 0xfff) as u16;
        let register = at & 0xff0;
        let inside = bytes <= 4 && u64::from(at & 0xf) + bytes <= 4;
        let registers = self.has_secondary(secondary::APIC_REGISTER_VIRTUALIZATION);
        let interrupts = self.has_secondary(secondary::VIRTUAL_INTERRUPT_DELIVERY);
        let read = if registers { readable(register) } else { register == offset::TPR };
        let write = if registers {
            writable(register)
        } else {
            register == offset::TPR || interrupts && matches!(register, offset::EOI | offset::ICR_LOW)
        };
        // Without APIC-register virtualization the page offset itself decides.
        let exact = registers || at & 0xf == 0;
        let writes = access.kind == AccessKind::Write;
        let after_write = match self.vmx.apic.write {
            None => false,
            Some(w) if writes => (w.offset, u64::from(w.bytes)) != (at, bytes),
            Some(_) => true,
        };
        let virtualized = inside && exact && !after_write && if writes { write } else { read };
        if virtualized { Ok(()) } else { Err(self.apic_access_exit(linear, type_of(access.kind))) }
    }

    #[cold]
    fn apic_access_exit(&mut self, linear: u64, kind: u64) -> Leave {
        self.vmexit_with(ExitInfo {
            reason: Some(ExitReason::ApicAccess),
            qualification: (linear & 0xfff) | kind << TYPE_SHIFT,
            guest_linear: linear,
            ..ExitInfo::default()
        })
    }

    /// A page walk of the guest's tables led into the APIC-access page.
    #[cold]
    pub(crate) fn apic_guest_physical_exit(&mut self) -> Leave {
        self.vmexit_with(ExitInfo {
            reason: Some(ExitReason::ApicAccess),
            qualification: access_type::GUEST_PHYSICAL << TYPE_SHIFT,
            ..ExitInfo::default()
        })
    }

    /// The recorded VM-exit arose while an event was delivered: an APIC access says so.
    pub(crate) fn apic_access_during_delivery(&mut self) {
        let exit = &mut self.vmx.exit;
        if exit.reason == Some(ExitReason::ApicAccess) {
            let physical = exit.qualification >> TYPE_SHIFT == access_type::GUEST_PHYSICAL;
            let kind = if physical {
                access_type::GUEST_PHYSICAL_DURING_DELIVERY
            } else {
                access_type::LINEAR_DURING_DELIVERY
            };
            exit.qualification = (exit.qualification & 0xfff) | kind << TYPE_SHIFT;
        }
    }

    /// APIC-write emulation, after the instruction.
    pub(super) fn emulate_apic_write(&mut self, at: u16) {
        let interrupts = self.has_secondary(secondary::VIRTUAL_INTERRUPT_DELIVERY);
        match at & 0xffc {
            offset::TPR => {
                self.set_vapic(offset::TPR, self.vtpr().into());
                self.virtualize_tpr();
            }
            offset::EOI if interrupts => {
                self.set_vapic(offset::EOI, 0);
                self.virtualize_eoi();
            }
            offset::ICR_LOW if interrupts => match self_ipi(self.vapic(offset::ICR_LOW)) {
                Some(vector) => self.virtualize_self_ipi(vector),
                None => self.exit_after_instruction(ExitReason::ApicWrite, offset::ICR_LOW.into()),
            },
            offset::ICR_HIGH => self.set_vapic(offset::ICR_HIGH, self.vapic(offset::ICR_HIGH) & 0xff00_0000),
            _ => self.exit_after_instruction(ExitReason::ApicWrite, at.into()),
        }
    }
}

fn type_of(kind: AccessKind) -> u64 {
    match kind {
        AccessKind::Read => access_type::READ,
        AccessKind::Write => access_type::WRITE,
        AccessKind::Fetch => access_type::FETCH,
    }
}

/// The vector of an interrupt command that is a virtual self-IPI: fixed, edge, shorthand "self", vector above 15.
fn self_ipi(icr: u32) -> Option<u8> {
    const RESERVED_AND_STATUS: u32 = 0xfff3_3000;
    const TRIGGER_AND_DELIVERY: u32 = 1 << 15 | 7 << 8;
    const SHORTHAND: u32 = 3 << 18;
    const SELF: u32 = 1 << 18;
    let vector = icr as u8;
    (icr & (RESERVED_AND_STATUS | TRIGGER_AND_DELIVERY) == 0 && icr & SHORTHAND == SELF && vector >= 16)
        .then_some(vector)
}
