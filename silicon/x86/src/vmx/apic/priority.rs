//! Priorities, and the life of a virtual interrupt ("Evaluation and Delivery of Virtual Interrupts", "Virtualizing
//! CR8-Based TPR Accesses" and the sections on TPR, PPR, EOI and self-IPI virtualization).

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{activity, primary, secondary};

use super::page::offset;
use crate::event::{EventKind, Injection};
use crate::{Core, Leave};

/// The priority class of a vector or of a TPR value.
const fn class(vector: u8) -> u8 {
    vector >> 4
}

impl Core {
    /// VTPR.
    pub(super) fn vtpr(&self) -> u8 {
        self.vapic(offset::TPR) as u8
    }

    /// TPR virtualization, after VTPR has been written.
    pub(super) fn virtualize_tpr(&mut self) {
        if self.has_secondary(secondary::VIRTUAL_INTERRUPT_DELIVERY) {
            self.virtualize_ppr();
            self.evaluate_virtual_interrupts();
        } else {
            self.check_tpr_threshold();
        }
    }

    /// A TPR below the threshold exits.
    pub(super) fn check_tpr_threshold(&mut self) {
        if class(self.vtpr()) < self.vmx.apic.tpr_threshold {
            self.exit_after_instruction(ExitReason::TprBelowThreshold, 0);
        }
    }

    /// PPR virtualization.
    pub(super) fn virtualize_ppr(&mut self) {
        let (vtpr, svi) = (self.vtpr(), self.vmx.apic.svi);
        let ppr = if class(vtpr) >= class(svi) { vtpr } else { svi & 0xf0 };
        self.set_vapic(offset::PPR, ppr.into());
    }

    /// Evaluation of pending virtual interrupts.
    pub(super) fn evaluate_virtual_interrupts(&mut self) {
        let window = self.vmx.controls.primary & primary::INTERRUPT_WINDOW_EXITING != 0;
        let above = class(self.vmx.apic.rvi) > class(self.vapic(offset::PPR) as u8);
        self.vmx.apic.recognized = !window && above;
        self.events.attention |= self.vmx.apic.recognized;
    }

    /// EOI virtualization.
    pub(super) fn virtualize_eoi(&mut self) {
        let vector = self.vmx.apic.svi;
        self.clear_vector(offset::ISR, vector);
        self.vmx.apic.svi = self.highest_vector(offset::ISR);
        self.virtualize_ppr();
        if self.vmx.apic.eoi_exit[usize::from(vector >> 6)] >> (vector & 63) & 1 != 0 {
            self.exit_after_instruction(ExitReason::VirtualizedEoi, vector.into());
        } else {
            self.evaluate_virtual_interrupts();
        }
    }

    /// Self-IPI virtualization.
    pub(super) fn virtualize_self_ipi(&mut self, vector: u8) {
        self.set_vector(offset::IRR, vector);
        self.vmx.apic.rvi = self.vmx.apic.rvi.max(vector);
        self.evaluate_virtual_interrupts();
    }

    /// Whether a virtual interrupt is to be delivered at this instruction boundary.
    #[inline]
    pub(crate) fn virtual_interrupt_deliverable(&self) -> bool {
        self.vmx.apic.recognized
            && self.interrupts_open()
            && matches!(self.vmx.activity, activity::ACTIVE | activity::HLT)
            && self.vmx.controls.primary & primary::INTERRUPT_WINDOW_EXITING == 0
    }

    /// Virtual-interrupt delivery.
    ///
    /// # Errors
    /// A VM-exit during the delivery.
    #[cold]
    pub(crate) fn deliver_virtual_interrupt(&mut self) -> Result<(), Leave> {
        let vector = self.vmx.apic.rvi;
        self.set_vector(offset::ISR, vector);
        self.vmx.apic.svi = vector;
        self.set_vapic(offset::PPR, (vector & 0xf0).into());
        self.clear_vector(offset::IRR, vector);
        self.vmx.apic.rvi = self.highest_vector(offset::IRR);
        self.vmx.apic.recognized = false;
        self.vmx.activity = activity::ACTIVE;
        self.inject(Injection { vector, kind: EventKind::External, error_code: None, instruction_length: 0 })
    }
}
