//! What the next VM-entry injects, in KVM's order: what was interrupted, exceptions, NMI, interrupts.

use irqchip::Irqchip;
use silicon_x86::event::debugctl;
use x86_defs::exception::vector;
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{interruption, primary};

use super::{QueuedException, Vcpu};

/// Bits of DR6 ("Debug Status Register (DR6)").
pub(crate) mod dr6 {
    pub const BREAKPOINTS: u64 = 0xf;
    /// An access to debug registers was detected.
    pub const BD: u64 = 1 << 13;
    /// Single step.
    pub const BS: u64 = 1 << 14;
    /// The T flag of a TSS.
    pub const BT: u64 = 1 << 15;
}

/// Bits of DR7 ("Debug Control Register (DR7)").
pub(crate) mod dr7 {
    /// General detect: accesses to debug registers are #DB.
    pub const GD: u64 = 1 << 13;
}

impl Vcpu {
    /// Queues #GP(0) for the guest.
    pub(crate) fn queue_gp(&mut self) {
        self.exception = Some(QueuedException { vector: vector::GP, error_code: Some(0), address: 0 });
    }

    /// Queues #DB for the guest, with what it finds in DR6 and DR7: injection changes neither.
    pub(crate) fn queue_db(&mut self, cause: u64) {
        let core = &mut self.processor.core;
        core.dr[6] = core.dr[6] & !dr6::BREAKPOINTS | cause;
        let dr7 = core.dr[7] & !dr7::GD;
        core.vmwrite(Field::GuestDr7, dr7);
        let debugctl = core.msrs.debugctl & !(debugctl::BTF | debugctl::LBR);
        core.vmwrite(Field::GuestDebugctl, debugctl);
        self.exception = Some(QueuedException { vector: vector::DB, error_code: None, address: 0 });
    }

    /// Queues #UD for the guest.
    pub(crate) fn queue_ud(&mut self) {
        self.exception = Some(QueuedException { vector: vector::UD, error_code: None, address: 0 });
    }

    /// After a VM-exit: an event whose delivery it interrupted is injected again.
    pub(crate) fn reinject(&mut self) {
        let c = &mut self.processor.core;
        let vectoring = c.vmx.exit.idt_vectoring;
        if vectoring & interruption::VALID == 0 {
            return;
        }
        if vectoring & interruption::TYPE == interruption::TYPE_NMI {
            // It has not been delivered, and must not block itself.
            c.events.nmi_blocked = false;
        }
        let error = c.vmx.exit.idt_vectoring_error;
        let length = c.vmx.exit.instruction_length;
        c.vmwrite(Field::EntryInterruptionInformation, u64::from(vectoring & !interruption::NMI_UNBLOCKING));
        if vectoring & interruption::DELIVER_ERROR_CODE != 0 {
            c.vmwrite(Field::EntryExceptionErrorCode, u64::from(error));
        }
        c.vmwrite(Field::EntryInstructionLength, u64::from(length));
    }

    /// Fills in the VM-entry event, and asks for a window where something has to wait.
    pub(crate) fn inject_next(&mut self, irqchip: &mut Irqchip) {
        let occupied =
            self.processor.core.vmread(Field::EntryInterruptionInformation) as u32 & interruption::VALID != 0;
        let mut free = !occupied;
        if free && let Some(exception) = self.exception.take() {
            self.inject_exception(exception);
            free = false;
        }
        let blocked = {
            let e = &self.processor.core.events;
            (e.nmi_blocked, e.sti_shadow || e.mov_ss_shadow)
        };
        if free && self.nmi_pending && !blocked.0 && !blocked.1 {
            self.nmi_pending = false;
            self.statistics.nmis += 1;
            self.write_event(u32::from(vector::NMI) | interruption::TYPE_NMI, None);
            free = false;
        }
        if free
            && irqchip.pending_interrupt(self.index).is_some()
            && self.processor.core.interrupts_open()
            && let Some(vector) = irqchip.acknowledge_interrupt(self.index)
        {
            *self.statistics.interrupts.entry(vector).or_default() += 1;
            self.write_event(u32::from(vector) | interruption::TYPE_EXTERNAL, None);
        }
        let mut window = 0;
        if irqchip.pending_interrupt(self.index).is_some() {
            window |= primary::INTERRUPT_WINDOW_EXITING;
        }
        if self.nmi_pending {
            window |= primary::NMI_WINDOW_EXITING;
        }
        self.set_windows(window);
    }

    fn set_windows(&mut self, window: u32) {
        const BOTH: u32 = primary::INTERRUPT_WINDOW_EXITING | primary::NMI_WINDOW_EXITING;
        if window == 0 && !self.window_requested {
            return;
        }
        self.window_requested = window != 0;
        let c = &mut self.processor.core;
        let before = c.vmread(Field::PrimaryControls) as u32;
        let after = before & !BOTH | window;
        if after != before {
            c.vmwrite(Field::PrimaryControls, u64::from(after));
        }
    }

    fn inject_exception(&mut self, exception: QueuedException) {
        self.statistics.exceptions_injected += 1;
        if exception.vector == vector::PF {
            self.processor.core.cr2 = exception.address;
        }
        // Exceptions have no error code in real-address mode.
        let protected = self.cr0() & x86_defs::control::cr0::PE != 0;
        let code = exception.error_code.filter(|_| protected);
        self.write_event(u32::from(exception.vector) | interruption::TYPE_HARDWARE_EXCEPTION, code);
    }

    fn write_event(&mut self, information: u32, error_code: Option<u32>) {
        let c = &mut self.processor.core;
        let mut information = information | interruption::VALID;
        if let Some(code) = error_code {
            information |= interruption::DELIVER_ERROR_CODE;
            c.vmwrite(Field::EntryExceptionErrorCode, u64::from(code));
        }
        c.vmwrite(Field::EntryInterruptionInformation, u64::from(information));
    }
}
