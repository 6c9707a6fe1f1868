//! The virtual-machine control structure, and the instructions that manage it.

use x86_defs::vmx::{Field, Kind};

use super::{Controls, Dirty, ExitInfo};
use crate::Core;

/// VMCS revision identifier that IA32_VMX_BASIC reports.
pub const REVISION: u32 = 0x4756_0001;

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
    pub(super) launch: LaunchState,
    fields: [u64; Field::DENSE_INDICES],
}

impl Default for Vmcs {
    fn default() -> Self {
        Self { revision: REVISION, launch: LaunchState::Clear, fields: [0; Field::DENSE_INDICES] }
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
        self.vmx.controls = Controls::default();
        self.vmx.exit = ExitInfo::default();
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
        self.vmx.dirty = Dirty::ALL
            .with(Dirty::RFLAGS)
            .with(Dirty::GDTR_LIMIT)
            .with(Dirty::IDTR_LIMIT)
            .with(Dirty::INTERRUPTIBILITY);
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
        | Field::TscMultiplier
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
        | Field::PleWindow => Dirty::DECODE,
        _ if field.kind() == Kind::HostState => Dirty::HOST,
        _ => Dirty::CONTROLS.with(Dirty::DECODE),
    }
}
