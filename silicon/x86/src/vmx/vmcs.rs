//! The virtual-machine control structure, and the instructions that manage it.

use x86_defs::vmx::{Field, Kind};

use super::apic::Apic;
use super::{Controls, Dirty, ExitInfo};
use crate::Core;

/// VMCS revision identifier that IA32_VMX_BASIC reports.
pub const REVISION: u32 = 0x4756_0001;
/// Shadow-VMCS indicator, bit 31 of the first word of a VMCS region.
pub const SHADOW: u32 = 1 << 31;

/// Launch state ("Virtual-Machine Control Structures: Overview"): VMLAUNCH wants clear, VMRESUME launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchState {
    #[default]
    Clear,
    Launched,
}

/// A VMCS. What it holds of guest state and exit information is valid only while it is not current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vmcs {
    revision: u32,
    /// VMX-abort indicator: zero, or the number of the abort that its VM-exit ended in.
    pub(super) abort: u32,
    pub(super) launch: LaunchState,
    fields: [u64; Field::DENSE_INDICES],
}

impl Default for Vmcs {
    fn default() -> Self {
        Self { revision: REVISION, abort: 0, launch: LaunchState::Clear, fields: [0; Field::DENSE_INDICES] }
    }
}

impl Vmcs {
    /// A clear VMCS, all fields zero.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::default()
    }

    #[must_use]
    pub const fn revision(&self) -> u32 {
        self.revision
    }

    pub(super) const fn set_revision(&mut self, revision: u32) {
        self.revision = revision;
    }

    /// VMX-abort indicator ("VMX Aborts"): zero where there was none.
    #[must_use]
    pub const fn abort_indicator(&self) -> u32 {
        self.abort
    }

    #[must_use]
    pub const fn launch_state(&self) -> LaunchState {
        self.launch
    }

    /// VMCLEAR of a VMCS that is not current.
    pub const fn clear(&mut self) {
        self.launch = LaunchState::Clear;
    }

    /// The stored value of a field.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, field: Field) -> u64 {
        self.fields[field.dense_index()]
    }

    /// Stores a field, cut to its width.
    #[inline(always)]
    pub fn set(&mut self, field: Field, value: u64) {
        self.fields[field.dense_index()] = value & field.width().mask();
    }
}

impl Core {
    /// VMPTRLD: makes `vmcs` current, and gives back the one that was, its state stored and its launch state kept.
    pub fn vmptrld(&mut self, vmcs: Box<Vmcs>) -> Option<Box<Vmcs>> {
        let previous = self.store_current();
        self.vmx.dirty = Dirty::ALL;
        self.vmx.controls = Controls::default();
        self.vmx.exit = ExitInfo::default();
        self.vmx.apic = Apic::default();
        self.vmx.monitor_trap_pending = false;
        for &field in Field::ALL {
            match field.kind() {
                Kind::GuestState => {
                    self.set_resident(field, vmcs.get(field));
                }
                Kind::ReadOnlyData => self.vmx.exit.set(field, vmcs.get(field)),
                Kind::Control | Kind::HostState => {}
            }
        }
        self.vmx.current = Some(vmcs);
        previous
    }

    /// VMCLEAR of the current VMCS: gives it back with its state stored and its launch state clear. `None` if no VMCS
    /// is current.
    pub fn vmclear(&mut self) -> Option<Box<Vmcs>> {
        let mut vmcs = self.store_current()?;
        vmcs.clear();
        Some(vmcs)
    }

    /// Whether a VMCS is current.
    #[must_use]
    pub fn has_current_vmcs(&self) -> bool {
        self.vmx.current.is_some()
    }

    /// VMREAD from the current VMCS.
    ///
    /// # Panics
    /// Without a current VMCS (VMfailInvalid): a defect of the caller.
    #[inline]
    #[must_use]
    pub fn vmread(&self, field: Field) -> u64 {
        match field.kind() {
            Kind::GuestState => self.resident(field).unwrap_or_else(|| self.vmcs().get(field)),
            Kind::ReadOnlyData => self.vmx.exit.get(field).unwrap_or_else(|| self.vmcs().get(field)),
            Kind::Control | Kind::HostState => self.vmcs().get(field),
        }
    }

    /// VMWRITE to the current VMCS; the value is cut to the field's width. Read-only data fields can be written too
    /// (IA32_VMX_MISC says so).
    ///
    /// # Panics
    /// Without a current VMCS (VMfailInvalid): a defect of the caller.
    #[inline]
    pub fn vmwrite(&mut self, field: Field, value: u64) {
        let value = value & field.width().mask();
        match field.kind() {
            Kind::GuestState => {
                // The VMCS keeps a copy: of fields without a place in the processor, and of those that it would cut.
                self.vmcs_mut().set(field, value);
                let dirty = self.set_resident(field, value);
                self.vmx.dirty.set(dirty);
            }
            Kind::ReadOnlyData => {
                self.vmcs_mut().set(field, value);
                self.vmx.exit.set(field, value);
            }
            Kind::Control | Kind::HostState => {
                let vmcs = self.vmcs_mut();
                if vmcs.get(field) != value {
                    vmcs.set(field, value);
                    self.vmx.dirty.set(dirty_of(field));
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn vmcs(&self) -> &Vmcs {
        self.vmx.current.as_deref().expect("no current VMCS")
    }

    #[inline(always)]
    pub(super) fn vmcs_mut(&mut self) -> &mut Vmcs {
        self.vmx.current.as_deref_mut().expect("no current VMCS")
    }

    /// Takes the current VMCS out, with guest state and exit information collected.
    fn store_current(&mut self) -> Option<Box<Vmcs>> {
        let mut vmcs = self.vmx.current.take()?;
        // `resident` reads what the processor lacks from the current VMCS, so it must be in place.
        let collected: Vec<_> = {
            self.vmx.current = Some(vmcs);
            Field::ALL
                .iter()
                .filter(|f| matches!(f.kind(), Kind::GuestState | Kind::ReadOnlyData))
                .map(|&f| (f, self.vmread(f)))
                .collect()
        };
        vmcs = self.vmx.current.take()?;
        for (field, value) in collected {
            vmcs.set(field, value);
        }
        Some(vmcs)
    }
}

/// What must be done again at the next VM-entry when a control or host field has changed.
fn dirty_of(field: Field) -> Dirty {
    match field {
        // Looked at by every VM-entry.
        Field::EntryInterruptionInformation | Field::EntryExceptionErrorCode | Field::EntryInstructionLength => {
            Dirty::NONE
        }
        Field::TscOffset
        | Field::ExceptionBitmap
        | Field::PageFaultErrorCodeMask
        | Field::PageFaultErrorCodeMatch
        | Field::Cr0Mask
        | Field::Cr0Shadow
        | Field::Cr4Mask
        | Field::Cr4Shadow
        | Field::Cr3Target0
        | Field::Cr3Target1
        | Field::Cr3Target2
        | Field::Cr3Target3
        | Field::PleGap
        | Field::PleWindow
        | Field::XssExitingBitmap => Dirty::DECODE,
        _ if field.kind() == Kind::HostState => Dirty::HOST,
        _ => Dirty::CONTROLS.with(Dirty::DECODE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::testing::{core, guest, vmcs};
    use x86_defs::vmx::ExitReason;
    use x86_defs::vmx::controls::{entry, exit};

    #[test]
    fn every_field_round_trips_through_a_current_vmcs() {
        let mut vmcs = Vmcs::new();
        for (i, &field) in Field::ALL.iter().enumerate() {
            let value = match field {
                // The modelled reasons are what an exit can have.
                Field::ExitReason => 0x8000_0021,
                Field::GuestRflags => 0x202,
                Field::GuestInterruptibility => 8,
                _ => 0x0101_0101_0101_0101_u64.wrapping_mul(i as u64 + 1),
            };
            vmcs.set(field, value);
        }
        let before = vmcs.clone();
        let mut core = core();
        core.vmptrld(vmcs);
        for &field in Field::ALL {
            assert_eq!(core.vmread(field), before.get(field), "{field:?} while current");
        }
        assert_eq!(core.vmclear().unwrap(), before);
        assert!(core.vmclear().is_none());
    }

    #[test]
    fn what_is_written_is_read_back_cut_to_the_width_of_the_field() {
        let mut core = guest();
        for &field in Field::ALL {
            if matches!(field, Field::ExitReason) {
                continue;
            }
            core.vmwrite(field, 0x1_2345_6789_abcd);
            assert_eq!(core.vmread(field), 0x1_2345_6789_abcd & field.width().mask(), "{field:?}");
        }
    }

    #[test]
    fn guest_state_is_the_processors_while_the_vmcs_is_current() {
        let mut core = guest();
        core.vmwrite(Field::GuestRip, 0x1234);
        core.vmwrite(Field::GuestTrBase, 0x5678);
        assert_eq!((core.rip, core.seg[7].base), (0x1234, 0x5678));
        core.rip = 0x4321;
        let _ = core.vmlaunch().unwrap();
        assert_eq!((core.vmread(Field::GuestRip), core.vmread(Field::GuestInterruptibility)), (0x4321, 0));
        core.events.nmi_blocked = true;
        assert_eq!(core.vmread(Field::GuestInterruptibility), 8);
    }

    #[test]
    fn switching_vmcss_keeps_each_guests_state_and_launch_state() {
        let mut core = guest();
        let _ = core.vmlaunch().unwrap();
        core.rip = 0x1111;
        core.cr3 = 0x7000;
        core.vmexit_with(ExitInfo { reason: Some(ExitReason::Cpuid), instruction_length: 2, ..ExitInfo::default() });
        let first = core.vmptrld(vmcs()).unwrap();
        assert_eq!(core.vmread(Field::GuestCr3), 0x2000);
        assert_eq!(core.vmread(Field::ExitReason), 0);
        let second = core.vmptrld(first).unwrap();
        assert_eq!((core.rip, core.cr3), (0x1111, 0x7000));
        assert_eq!((core.vmread(Field::ExitReason), core.vmread(Field::ExitInstructionLength)), (10, 2));
        assert_eq!(second.launch_state(), LaunchState::Clear);
        let _ = core.vmresume().unwrap();
    }

    #[test]
    fn efer_is_saved_by_exits_only_where_the_control_says_so() {
        let saved = |controls: u64| {
            let mut core = guest();
            core.vmwrite(Field::ExitControls, controls);
            let _ = core.vmlaunch().unwrap();
            core.efer |= 1;
            core.vmread(Field::GuestEfer) & 1
        };
        let controls = guest().vmread(Field::ExitControls);
        assert_eq!(saved(controls), 1);
        assert_eq!(saved(controls & !u64::from(exit::SAVE_EFER)), 0);
    }

    #[test]
    fn an_unsaved_register_is_loaded_anew_at_each_entry() {
        let mut core = guest();
        let controls = core.vmread(Field::ExitControls);
        core.vmwrite(Field::ExitControls, controls & !u64::from(exit::SAVE_PAT));
        let _ = core.vmlaunch().unwrap();
        core.msrs.pat = 0;
        let _ = core.vmresume().unwrap();
        assert_eq!(core.msrs.pat, 0x0007_0406_0007_0406);
    }

    #[test]
    fn debug_controls_that_are_not_loaded_have_their_value_after_a_vm_exit() {
        let mut core = guest();
        core.vmwrite(Field::GuestDr7, 0x401);
        let controls = core.vmread(Field::EntryControls);
        core.vmwrite(Field::EntryControls, controls & !u64::from(entry::LOAD_DEBUG_CONTROLS));
        let _ = core.vmlaunch().unwrap();
        assert_eq!(core.dr[7], 0x400);
    }

    #[test]
    fn a_tsc_offset_written_between_entries_is_in_effect_at_the_next() {
        let mut core = guest();
        let primary = core.vmread(Field::PrimaryControls);
        core.vmwrite(Field::PrimaryControls, primary | 1 << 3);
        let _ = core.vmlaunch().unwrap();
        core.vmwrite(Field::TscOffset, 77);
        let _ = core.vmresume().unwrap();
        assert_eq!(core.vmx.controls.tsc_offset, 77);
    }
}
