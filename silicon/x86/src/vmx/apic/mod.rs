//! APIC virtualization ("APIC Virtualization and Virtual Interrupts").
//!
//! | file | what |
//! |---|---|
//! | `page` | the virtual-APIC page and its registers |
//! | `priority` | TPR, PPR, EOI and self-IPI virtualization; evaluation and delivery of virtual interrupts |
//! | `access` | memory accesses to the APIC-access page, and the emulation of writes |
//! | `msr` | RDMSR and WRMSR in virtual x2APIC mode; CR8 |
//! | `posted` | posted-interrupt processing |
//!
//! What is to happen after an instruction (the emulation of a write, and VM-exits that are like traps) is kept here and
//! done at the next instruction boundary, before anything else.

mod access;
mod msr;
mod page;
mod posted;
mod priority;

use silicon_memory::{Frame, HostPhysical, PhysicalMemory};
use x86_defs::vmx::controls::{pin, primary, secondary};
use x86_defs::vmx::{ExitReason, Field};

use super::{Controls, Vmcs};
use crate::Core;

/// A write to the APIC-access page whose data is in the virtual-APIC page already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    offset: u16,
    bytes: u8,
}

/// A VM-exit that follows the instruction that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trap {
    reason: ExitReason,
    qualification: u64,
}

/// APIC virtualization of the running guest, found at VM-entry.
#[derive(Clone, Debug)]
pub struct Apic {
    /// The virtual-APIC page. `None` without "use TPR shadow", or where there is no memory.
    page: Option<(HostPhysical, Frame)>,
    /// Host-physical address of the APIC-access page; all ones where there is none.
    access: u64,
    eoi_exit: [u64; 4],
    tpr_threshold: u8,
    /// Requesting and servicing virtual interrupt: the guest interrupt status.
    rvi: u8,
    svi: u8,
    /// A virtual interrupt is pending.
    recognized: bool,
    write: Option<Write>,
    trap: Option<Trap>,
    /// Posted-interrupt descriptor, and the notification vector.
    descriptor: Option<(HostPhysical, Frame)>,
    notification: Option<u8>,
}

impl Default for Apic {
    fn default() -> Self {
        Self {
            page: None,
            access: u64::MAX,
            eoi_exit: [0; 4],
            tpr_threshold: 0,
            rvi: 0,
            svi: 0,
            recognized: false,
            write: None,
            trap: None,
            descriptor: None,
            notification: None,
        }
    }
}

impl Apic {
    /// Takes over what the controls and addresses of `vmcs` say; pending work stays.
    pub(super) fn configure(&mut self, vmcs: &Vmcs, controls: &Controls, memory: &PhysicalMemory) {
        let frame = |address: u64| memory.page(HostPhysical(address)).map(|(frame, _)| (HostPhysical(address), frame));
        let has = |control| controls.secondary & control != 0;
        let shadow = controls.primary & primary::USE_TPR_SHADOW != 0;
        self.page = shadow.then(|| frame(vmcs.get(Field::VirtualApicAddress))).flatten();
        self.access =
            if has(secondary::VIRTUALIZE_APIC_ACCESSES) { vmcs.get(Field::ApicAccessAddress) } else { u64::MAX };
        self.tpr_threshold = vmcs.get(Field::TprThreshold) as u8 & 0xf;
        self.eoi_exit = [Field::EoiExitBitmap0, Field::EoiExitBitmap1, Field::EoiExitBitmap2, Field::EoiExitBitmap3]
            .map(|field| vmcs.get(field));
        let posted = controls.pin & pin::POSTED_INTERRUPTS != 0;
        self.notification = posted.then(|| vmcs.get(Field::PostedInterruptNotificationVector) as u8);
        self.descriptor = posted.then(|| frame(vmcs.get(Field::PostedInterruptDescriptor))).flatten();
    }

    /// The guest-interrupt-status field.
    pub(super) const fn status(&self) -> u64 {
        self.rvi as u64 | (self.svi as u64) << 8
    }

    pub(super) const fn set_status(&mut self, value: u64) {
        self.rvi = value as u8;
        self.svi = (value >> 8) as u8;
    }

    /// Whether an instruction boundary has nothing to do with it.
    #[inline(always)]
    pub(crate) const fn is_idle(&self) -> bool {
        self.write.is_none() && self.trap.is_none() && !self.recognized
    }

    /// A VM-exit: pending virtual interrupts are evaluated anew at the next VM-entry.
    #[inline]
    pub(super) const fn left(&mut self) {
        self.recognized = false;
    }

    /// Whether `host`, the address of a page, is that of the APIC-access page.
    #[inline(always)]
    pub(crate) const fn is_access_page(&self, host: u64) -> bool {
        self.access == host
    }

    /// Host-physical address of the APIC-access page; all ones where there is none.
    pub(super) const fn access_page(&self) -> u64 {
        self.access
    }
}

impl Core {
    /// What follows VM-entry: the TPR threshold, and the evaluation of pending virtual interrupts ("VM-Entry and
    /// Virtual-Interrupt Delivery", "VM Exits Induced by the TPR Threshold").
    #[cold]
    pub(super) fn enter_apic(&mut self) {
        let secondary = self.vmx.controls.secondary;
        if secondary & secondary::VIRTUAL_INTERRUPT_DELIVERY != 0 {
            self.virtualize_ppr();
            self.evaluate_virtual_interrupts();
        } else if secondary & secondary::VIRTUALIZE_APIC_ACCESSES != 0 {
            self.check_tpr_threshold();
        }
    }

    /// Carries out what the last instruction left to be done.
    ///
    /// # Errors
    /// A VM-exit is recorded.
    #[inline]
    pub(crate) fn finish_apic_work(&mut self) -> Result<(), crate::Leave> {
        if self.vmx.apic.write.is_none() && self.vmx.apic.trap.is_none() { Ok(()) } else { self.finish_apic_work_now() }
    }

    #[cold]
    fn finish_apic_work_now(&mut self) -> Result<(), crate::Leave> {
        if let Some(write) = self.vmx.apic.write.take() {
            self.emulate_apic_write(write.offset);
        }
        match self.vmx.apic.trap.take() {
            None => Ok(()),
            Some(trap) => Err(self.vmexit_with(super::ExitInfo {
                reason: Some(trap.reason),
                qualification: trap.qualification,
                ..super::ExitInfo::default()
            })),
        }
    }

    /// A VM-exit after the present instruction.
    fn exit_after_instruction(&mut self, reason: ExitReason, qualification: u64) {
        self.vmx.apic.trap = Some(Trap { reason, qualification });
        self.events.attention = true;
    }

    fn has_secondary(&self, control: u32) -> bool {
        self.vmx.controls.secondary & control != 0
    }

    pub(crate) fn has_tpr_shadow(&self) -> bool {
        self.vmx.controls.primary & primary::USE_TPR_SHADOW != 0
    }
}
