//! VM-entry ("VM Entries").

use x86_defs::control::{cr0, efer};
use x86_defs::vmx::controls::{entry, exit, interruption, primary, secondary};
use x86_defs::vmx::{ExitReason, Field, InstructionError};

use super::intercept::Bitmaps;
use super::{Controls, Dirty, ExitInfo, LaunchState, TSC_MULTIPLIER_ONE, Vmcs};
use super::{check_controls, check_host};
use crate::Core;

/// A rule of VM-entry that was broken. Hardware does not tell which; the modelled machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    /// Exit qualification of a failed VM-entry ("VM-Entry Failures During or After Loading Guest State").
    pub qualification: u64,
}

pub(super) type Checked = Result<(), Violation>;

/// Requires `holds`; `broken` says what is wrong otherwise.
#[inline(always)]
pub(super) fn rule(holds: bool, broken: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(Violation { rule: broken, qualification: 0 }) }
}

/// Why VMLAUNCH or VMRESUME did not enter the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryFailure {
    /// VMfailInvalid: no VMCS is current.
    #[error("no VMCS is current: load one with VMPTRLD")]
    FailInvalid,
    /// VMfailValid: the number is in the VM-instruction error field.
    #[error("VM-instruction error {}: {}{}{rule}", .error.number(), .error.text(), if .rule.is_empty() { "" } else { ": " })]
    FailValid { error: InstructionError, rule: &'static str },
    /// A VM-exit: reason with bit 31 set, and qualification, are in the exit information.
    #[error("{}: {rule}", .reason.name())]
    Exit { reason: ExitReason, rule: &'static str },
}

/// The event that VM-entry injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    pub vector: u8,
    /// One of [`interruption`]`::TYPE_*`.
    pub kind: u32,
    pub error_code: Option<u32>,
    /// Software events: added to RIP for the return address.
    pub instruction_length: u32,
}

/// A VM-entry that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Entered {
    /// The guest goes on at its RIP.
    Guest,
    /// The guest's first act is the delivery of this event.
    Deliver(Injected),
}

impl Core {
    /// VMLAUNCH: the first entry with a clear VMCS.
    ///
    /// # Errors
    /// See [`EntryFailure`].
    pub fn vmlaunch(&mut self) -> Result<Entered, EntryFailure> {
        self.enter(LaunchState::Clear, InstructionError::VmlaunchNonClear)
    }

    /// VMRESUME: another entry with a launched VMCS.
    ///
    /// # Errors
    /// See [`EntryFailure`].
    #[inline]
    pub fn vmresume(&mut self) -> Result<Entered, EntryFailure> {
        self.enter(LaunchState::Launched, InstructionError::VmresumeNonLaunched)
    }

    #[inline]
    fn enter(&mut self, wanted: LaunchState, wrong_state: InstructionError) -> Result<Entered, EntryFailure> {
        let Some(vmcs) = self.vmx.current.as_deref() else { return Err(EntryFailure::FailInvalid) };
        if vmcs.launch != wanted {
            return Err(self.fail_valid(wrong_state, ""));
        }
        let information = vmcs.get(Field::EntryInterruptionInformation) as u32;
        let injects = information & interruption::VALID != 0;
        let dirty = self.vmx.dirty;
        if injects || dirty.any(Dirty::CONTROLS.with(Dirty::HOST)) {
            self.check_controls_and_host(information)?;
        }
        if self.vmcs().get(Field::PrimaryControls) as u32 & primary::USE_TPR_SHADOW != 0 {
            // In memory, so that it can change without VMWRITE.
            check_controls::check_vtpr(self.vmcs(), &self.memory)
                .map_err(|v| self.fail_valid(InstructionError::EntryInvalidControls, v.rule))?;
        }
        if dirty.any(Dirty::DECODE) {
            self.decode_controls();
        }
        // Decoding adds what the changed controls imply.
        let dirty = self.vmx.dirty;
        if let Err(violation) = self.check_guest(information) {
            return Err(self.fail_entry(ExitReason::EntryFailureGuestState, violation));
        }
        self.load_guest_state(dirty);
        if self.vmcs().get(Field::EntryMsrLoadCount) != 0
            && let Err(violation) = self.load_entry_msrs()
        {
            return Err(self.fail_entry(ExitReason::EntryFailureMsrLoading, violation));
        }
        self.vmx.dirty = Dirty::NONE;
        self.vmcs_mut().launch = LaunchState::Launched;
        self.start_preemption_timer();
        if self.vmx.controls.primary & primary::USE_TPR_SHADOW != 0 {
            self.enter_apic();
        }
        Ok(if injects { self.injected(information) } else { Entered::Guest })
    }

    #[cold]
    fn check_controls_and_host(&mut self, information: u32) -> Result<(), EntryFailure> {
        use InstructionError::{EntryInvalidControls, EntryInvalidHostState};
        let vmcs = self.vmcs();
        let mut controls = Ok(());
        if self.vmx.dirty.any(Dirty::CONTROLS) {
            controls = check_controls::check(vmcs, &self.model);
        }
        if information & interruption::VALID != 0 {
            controls = controls.and_then(|()| check_controls::check_event(vmcs, information, self.cr0));
        }
        let host = if self.vmx.dirty.any(Dirty::HOST.with(Dirty::CONTROLS)) {
            check_host::check(vmcs, &self.model)
        } else {
            Ok(())
        };
        controls.map_err(|v| self.fail_valid(EntryInvalidControls, v.rule))?;
        host.map_err(|v| self.fail_valid(EntryInvalidHostState, v.rule))
    }

    #[cold]
    fn fail_valid(&mut self, error: InstructionError, rule: &'static str) -> EntryFailure {
        self.vmcs_mut().set(Field::VmInstructionError, u64::from(error.number()));
        EntryFailure::FailValid { error, rule }
    }

    #[cold]
    fn fail_entry(&mut self, reason: ExitReason, violation: Violation) -> EntryFailure {
        self.vmx.exit = ExitInfo {
            reason: Some(reason),
            entry_failure: true,
            qualification: violation.qualification,
            // Other exit information keeps its values ("VM-Entry Failures During or After Loading Guest State").
            ..self.vmx.exit
        };
        EntryFailure::Exit { reason, rule: violation.rule }
    }

    /// Derives [`Controls`] from the VMCS, and finds the intercept bitmaps.
    fn decode_controls(&mut self) {
        let old = self.vmx.controls;
        let before = old.exit;
        let controls = Controls::decode(self.vmcs());
        if (old.secondary, old.entry) != (controls.secondary, controls.entry) {
            self.vmx.dirty.set(Dirty::GUEST.with(Dirty::MODE));
        }
        if (old.vpid, old.eptp) != (controls.vpid, controls.eptp) {
            self.vmx.dirty.set(Dirty::TRANSLATION);
        }
        // Where a VM-exit no longer saves a field, the VMCS keeps the value of the last VM-exit that did.
        let unsaved = before & !controls.exit;
        let (dr7, debugctl, pat, efer) = (self.dr[7], self.msrs.debugctl, self.msrs.pat, self.efer);
        for (control, field, value) in [
            (exit::SAVE_DEBUG_CONTROLS, Field::GuestDr7, dr7),
            (exit::SAVE_DEBUG_CONTROLS, Field::GuestDebugctl, debugctl),
            (exit::SAVE_PAT, Field::GuestPat, pat),
            (exit::SAVE_EFER, Field::GuestEfer, efer),
        ] {
            if unsaved & control != 0 {
                self.vmcs_mut().set(field, value);
            }
        }
        if self.vmx.dirty.any(Dirty::CONTROLS) {
            self.vmx.bitmaps = Bitmaps::find(self.vmcs(), controls.primary, &self.memory);
            self.configure_apic(&controls);
        }
        self.vmx.controls = controls;
    }

    fn configure_apic(&mut self, controls: &Controls) {
        let before = self.vmx.apic.access_page();
        let mut apic = std::mem::take(&mut self.vmx.apic);
        apic.configure(self.vmcs(), controls, &self.memory);
        self.vmx.apic = apic;
        if self.vmx.apic.access_page() != before {
            // The page must not be in the fast look-up.
            self.vmx.dirty.set(Dirty::PERMISSIONS);
        }
    }

    /// "Loading Guest State", which is the processor's already: what the fields imply.
    #[inline]
    fn load_guest_state(&mut self, dirty: Dirty) {
        let c = self.vmx.controls;
        // A field that VM-exits do not save is loaded from the VMCS each time; one that is not loaded has the value
        // that the last VM-exit set.
        let debug = c.exit & exit::SAVE_DEBUG_CONTROLS != 0 && c.entry & entry::LOAD_DEBUG_CONTROLS != 0;
        let pat = c.exit & exit::SAVE_PAT != 0 || c.entry & entry::LOAD_PAT == 0;
        let efer = c.exit & exit::SAVE_EFER != 0 && c.entry & entry::LOAD_EFER != 0;
        if !(debug && pat && efer) {
            self.load_unsaved_state();
        }
        if c.entry & entry::LOAD_PKRS != 0 {
            let rights = self.vmcs().get(Field::GuestPkrs) as u32;
            self.set_pkrs(rights);
        }
        if dirty.any(Dirty::MODE) || !efer {
            self.update_mode();
        }
        if dirty.any(Dirty::PERMISSIONS) {
            // No invalidation, but what CR0.WP, CR4.SMEP, CR4.SMAP and EFER.NXE permit must be derived again.
            self.tlb_controls_written(cr0::WP, 0);
        }
        if c.vpid == 0 || dirty.any(Dirty::TRANSLATION) {
            self.tlb_world_switch();
        }
    }

    #[cold]
    fn load_unsaved_state(&mut self) {
        let c = self.vmx.controls;
        if c.entry & entry::LOAD_DEBUG_CONTROLS == 0 {
            self.dr[7] = 0x400;
            self.msrs.debugctl = 0;
        } else if c.exit & exit::SAVE_DEBUG_CONTROLS == 0 {
            self.dr[7] = self.vmcs().get(Field::GuestDr7);
            self.msrs.debugctl = self.vmcs().get(Field::GuestDebugctl);
        }
        if c.entry & entry::LOAD_PAT != 0 && c.exit & exit::SAVE_PAT == 0 {
            self.msrs.pat = self.vmcs().get(Field::GuestPat);
        }
        if c.entry & entry::LOAD_EFER == 0 {
            let long = c.entry & entry::IA32E_MODE_GUEST != 0;
            self.efer = (self.efer & !efer::LMA) | if long { efer::LMA } else { 0 };
            if self.cr0 & cr0::PG != 0 {
                self.efer = (self.efer & !efer::LME) | if long { efer::LME } else { 0 };
            }
        } else if c.exit & exit::SAVE_EFER == 0 {
            self.efer = self.vmcs().get(Field::GuestEfer);
        }
    }

    #[cold]
    fn injected(&mut self, information: u32) -> Entered {
        let vmcs = self.vmcs();
        let error_code = (information & interruption::DELIVER_ERROR_CODE != 0)
            .then(|| vmcs.get(Field::EntryExceptionErrorCode) as u32);
        let event = Injected {
            vector: (information & interruption::VECTOR) as u8,
            kind: information & interruption::TYPE,
            error_code,
            instruction_length: vmcs.get(Field::EntryInstructionLength) as u32,
        };
        if event.kind == interruption::TYPE_OTHER {
            self.vmx.monitor_trap_pending = true;
            return Entered::Guest;
        }
        Entered::Deliver(event)
    }
}

impl Controls {
    fn decode(vmcs: &Vmcs) -> Self {
        let get = |field| vmcs.get(field);
        let primary = get(Field::PrimaryControls) as u32;
        let secondary = check_controls::secondary_of(vmcs);
        let has = |control| secondary & control != 0;
        Self {
            pin: get(Field::PinBasedControls) as u32,
            primary,
            secondary,
            entry: get(Field::EntryControls) as u32,
            exit: get(Field::ExitControls) as u32,
            exception_bitmap: get(Field::ExceptionBitmap) as u32,
            page_fault_error_mask: get(Field::PageFaultErrorCodeMask) as u32,
            page_fault_error_match: get(Field::PageFaultErrorCodeMatch) as u32,
            cr0_mask: get(Field::Cr0Mask),
            cr0_shadow: get(Field::Cr0Shadow),
            cr4_mask: get(Field::Cr4Mask),
            cr4_shadow: get(Field::Cr4Shadow),
            cr3_targets: [
                get(Field::Cr3Target0),
                get(Field::Cr3Target1),
                get(Field::Cr3Target2),
                get(Field::Cr3Target3),
            ],
            cr3_target_count: get(Field::Cr3TargetCount) as u8,
            vpid: if has(secondary::ENABLE_VPID) { get(Field::VirtualProcessorIdentifier) as u16 } else { 0 },
            eptp: if has(secondary::ENABLE_EPT) { get(Field::EptPointer) } else { 0 },
            tsc_offset: if primary & primary::USE_TSC_OFFSETTING != 0 { get(Field::TscOffset) } else { 0 },
            tsc_multiplier: if has(secondary::USE_TSC_SCALING) && primary & primary::USE_TSC_OFFSETTING != 0 {
                get(Field::TscMultiplier)
            } else {
                TSC_MULTIPLIER_ONE
            },
            vm_functions: if has(secondary::ENABLE_VM_FUNCTIONS) { get(Field::VmFunctionControls) } else { 0 },
            ple_gap: get(Field::PleGap) as u32,
            ple_window: get(Field::PleWindow) as u32,
            xss_exiting: get(Field::XssExitingBitmap),
        }
    }
}
