//! Recording and completing a VM-exit ("VM Exits").

use x86_defs::control::efer;
use x86_defs::vmx::controls::{entry, interruption};
use x86_defs::vmx::{ExitReason, Field};

use crate::model::Feature;
use crate::{Core, Leave, Op};

/// The VM-exit information fields ("VM-Exit Information Fields").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// Basic exit reason; `None` before the first exit.
    pub reason: Option<ExitReason>,
    /// The exit is a failed VM-entry (bit 31 of the reason).
    pub entry_failure: bool,
    pub qualification: u64,
    pub guest_linear: u64,
    pub guest_physical: u64,
    /// VM-exit interruption information and error code.
    pub interruption: u32,
    pub interruption_error: u32,
    /// IDT-vectoring information and error code.
    pub idt_vectoring: u32,
    pub idt_vectoring_error: u32,
    pub instruction_length: u32,
    pub instruction_info: u32,
}

/// Bit 31 of the exit reason: VM-entry failure.
const ENTRY_FAILURE: u64 = 1 << 31;

impl ExitInfo {
    /// The exit-reason field.
    #[must_use]
    pub fn reason_field(&self) -> u64 {
        self.reason.map_or(0, |r| r as u64) | if self.entry_failure { ENTRY_FAILURE } else { 0 }
    }

    /// VM-exit interruption information of an event, `kind` being one of [`interruption`]`::TYPE_*`.
    #[must_use]
    pub const fn event(reason: ExitReason, kind: u32, vector: u8, error_code: Option<u32>) -> Self {
        let (deliver, error) = match error_code {
            Some(code) => (interruption::DELIVER_ERROR_CODE, code),
            None => (0, 0),
        };
        Self {
            reason: Some(reason),
            entry_failure: false,
            qualification: 0,
            guest_linear: 0,
            guest_physical: 0,
            interruption: interruption::VALID | deliver | kind | vector as u32,
            interruption_error: error,
            idt_vectoring: 0,
            idt_vectoring_error: 0,
            instruction_length: 0,
            instruction_info: 0,
        }
    }

    /// A read-only data field; `None` where the VMCS has it.
    #[inline]
    pub(super) fn get(&self, field: Field) -> Option<u64> {
        Some(match field {
            Field::ExitReason => self.reason_field(),
            Field::ExitQualification => self.qualification,
            Field::GuestLinearAddress => self.guest_linear,
            Field::GuestPhysicalAddress => self.guest_physical,
            Field::ExitInterruptionInformation => self.interruption.into(),
            Field::ExitInterruptionErrorCode => self.interruption_error.into(),
            Field::IdtVectoringInformation => self.idt_vectoring.into(),
            Field::IdtVectoringErrorCode => self.idt_vectoring_error.into(),
            Field::ExitInstructionLength => self.instruction_length.into(),
            Field::ExitInstructionInformation => self.instruction_info.into(),
            _ => return None,
        })
    }

    pub(super) fn set(&mut self, field: Field, value: u64) {
        match field {
            Field::ExitReason => {
                self.reason = if value == 0 { None } else { ExitReason::from_number(value as u16) };
                self.entry_failure = value & ENTRY_FAILURE != 0;
            }
            Field::ExitQualification => self.qualification = value,
            Field::GuestLinearAddress => self.guest_linear = value,
            Field::GuestPhysicalAddress => self.guest_physical = value,
            Field::ExitInterruptionInformation => self.interruption = value as u32,
            Field::ExitInterruptionErrorCode => self.interruption_error = value as u32,
            Field::IdtVectoringInformation => self.idt_vectoring = value as u32,
            Field::IdtVectoringErrorCode => self.idt_vectoring_error = value as u32,
            Field::ExitInstructionLength => self.instruction_length = value as u32,
            Field::ExitInstructionInformation => self.instruction_info = value as u32,
            _ => {}
        }
    }
}

/// A VM-exit that could not be completed ("VMX Aborts").
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmxAbort {
    /// Abort 1.
    #[error("VMX abort 1: entry {entry} of the VM-exit MSR-store area could not be saved")]
    SavingGuestMsrs { entry: u64 },
    /// Abort 4.
    #[error("VMX abort 4: entry {entry} of the VM-exit MSR-load area could not be loaded")]
    LoadingHostMsrs { entry: u64 },
}

impl Core {
    /// Records the VM-exit that `op` causes instead of executing.
    #[cold]
    pub fn vmexit(&mut self, op: &Op, reason: ExitReason, qualification: u64) -> Leave {
        self.vmexit_with(ExitInfo {
            reason: Some(reason),
            qualification,
            instruction_length: u32::from(op.len),
            ..ExitInfo::default()
        })
    }

    /// Records a VM-exit.
    #[cold]
    pub fn vmexit_with(&mut self, info: ExitInfo) -> Leave {
        self.vmx.exit = info;
        Leave::Exit
    }

    /// Completes the recorded VM-exit: what hardware does between the guest's last instruction and the host's first.
    /// The engine calls it once for each VM-exit of a running guest, and not for a failed VM-entry.
    ///
    /// # Errors
    /// An MSR area that cannot be processed: the logical processor would shut down.
    #[inline]
    pub fn complete_exit(&mut self) -> Result<(), VmxAbort> {
        let lma = self.efer & efer::LMA != 0;
        let stored_lma = self.vmx.controls.entry & entry::IA32E_MODE_GUEST != 0;
        if lma != stored_lma {
            self.vmx.controls.entry ^= entry::IA32E_MODE_GUEST;
            let controls = self.vmx.controls.entry;
            self.vmcs_mut().set(Field::EntryControls, controls.into());
        }
        if self.model.has(Feature::Pks) {
            let rights = self.msrs.pkrs.into();
            self.vmcs_mut().set(Field::GuestPkrs, rights);
        }
        let vmcs = self.vmcs_mut();
        let event = vmcs.get(Field::EntryInterruptionInformation);
        vmcs.set(Field::EntryInterruptionInformation, event & !u64::from(interruption::VALID));
        let has_lists = vmcs.get(Field::ExitMsrStoreCount) | vmcs.get(Field::ExitMsrLoadCount) != 0;
        self.stop_preemption_timer();
        if self.vmx.controls.vpid == 0 {
            self.tlb_world_switch();
        }
        self.vmx.apic.left();
        if self.vmx.exit.reason.is_some() {
            // A monitor trap that something of higher priority preceded is gone with the VM-exit.
            self.vmx.monitor_trap_pending = false;
            self.vmx.forget_pause_loop();
        }
        if has_lists { self.exit_lists() } else { Ok(()) }
    }

    #[cold]
    fn exit_lists(&mut self) -> Result<(), VmxAbort> {
        let done = self.process_exit_msrs();
        if let Err(abort) = done {
            self.vmcs_mut().abort = abort.number();
        }
        done
    }
}

impl VmxAbort {
    /// The VMX-abort indicator.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::SavingGuestMsrs { .. } => 1,
            Self::LoadingHostMsrs { .. } => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::testing::guest;

    #[test]
    fn an_exit_reads_back_through_vmread_and_consumes_the_injected_event() {
        let mut core = guest();
        core.vmwrite(Field::EntryInterruptionInformation, u64::from(interruption::VALID | interruption::TYPE_NMI | 2));
        let _ = core.vmlaunch().unwrap();
        core.vmexit_with(ExitInfo {
            reason: Some(ExitReason::EptViolation),
            qualification: 0x181,
            guest_physical: 0xfee0_0000,
            ..ExitInfo::default()
        });
        core.complete_exit().unwrap();
        assert_eq!(core.vmread(Field::ExitReason), 48);
        assert_eq!(core.vmread(Field::ExitQualification), 0x181);
        assert_eq!(core.vmread(Field::GuestPhysicalAddress), 0xfee0_0000);
        assert_eq!(core.vmread(Field::EntryInterruptionInformation), 0x202);
    }

    #[test]
    fn an_exit_stores_lma_in_the_ia32e_mode_control() {
        let mut core = guest();
        let _ = core.vmlaunch().unwrap();
        core.efer &= !efer::LMA;
        core.vmexit_with(ExitInfo { reason: Some(ExitReason::Hlt), ..ExitInfo::default() });
        core.complete_exit().unwrap();
        assert_eq!(core.vmread(Field::EntryControls) as u32 & entry::IA32E_MODE_GUEST, 0);
    }

    #[test]
    fn event_information_has_the_layout_of_the_field() {
        let info = ExitInfo::event(ExitReason::ExceptionOrNmi, interruption::TYPE_HARDWARE_EXCEPTION, 14, Some(7));
        assert_eq!((info.interruption, info.interruption_error), (0x8000_0b0e, 7));
    }
}
