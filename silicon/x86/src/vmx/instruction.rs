//! VMX instructions as their user sees them: operands checked, and VMfail where the manual says so ("VMX Instruction
//! Reference", "Conventions").
//!
//! A VMCS is a Rust value that VMPTRLD takes over, so failures that speak of physical addresses (misaligned, beyond the
//! physical-address width, the VMXON region's) cannot occur. VM-entry has an error of its own,
//! [`EntryFailure`](super::EntryFailure). [`Core::vmread`] and [`Core::vmwrite`] are the short forms for fields that the
//! caller knows to exist.

use x86_defs::vmx::capability::ept_vpid;
use x86_defs::vmx::{Field, InstructionError, Kind, Part};

use super::Vmcs;
use super::capability::{self, EPT_VPID};
use super::vmcs::{REVISION, SHADOW};
use crate::Core;
use crate::mem::{Invept, Invvpid};

/// VMfail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmFail {
    /// VMfailInvalid (CF): there is no current VMCS to hold an error number.
    #[error("VMfailInvalid: no VMCS is current")]
    Invalid,
    /// VMfailValid (ZF): the number is also in the VM-instruction error field.
    #[error("VMfailValid({}): {}", .0.number(), .0.text())]
    Valid(InstructionError),
}

impl Core {
    /// Records the error number in the current VMCS, if there is one.
    #[cold]
    fn vm_fail(&mut self, error: InstructionError) -> VmFail {
        if !self.has_current_vmcs() {
            return VmFail::Invalid;
        }
        self.vmcs_mut().set(Field::VmInstructionError, u64::from(error.number()));
        VmFail::Valid(error)
    }

    /// VMPTRLD with its check of the revision identifier: [`Core::vmptrld`] where that fits.
    ///
    /// # Errors
    /// VMfail(11), and the VMCS back: another revision, or a shadow VMCS, which a processor without VMCS shadowing
    /// refuses.
    pub fn vmptrld_checked(&mut self, vmcs: Box<Vmcs>) -> Result<Option<Box<Vmcs>>, (VmFail, Box<Vmcs>)> {
        if vmcs.revision() != REVISION {
            return Err((self.vm_fail(InstructionError::VmptrldIncorrectRevision), vmcs));
        }
        Ok(self.vmptrld(vmcs))
    }

    /// The field and part that an encoding in a register names, if this processor has it.
    fn component(&mut self, encoding: u64) -> Result<(Field, Part), VmFail> {
        if !self.has_current_vmcs() {
            return Err(VmFail::Invalid);
        }
        u32::try_from(encoding)
            .ok()
            .and_then(Field::from_encoding)
            .filter(|&(field, _)| capability::has_field(&self.model, field))
            .ok_or_else(|| self.vm_fail(InstructionError::UnsupportedComponent))
    }

    /// VMREAD of the component with this encoding.
    ///
    /// # Errors
    /// VMfailInvalid without a current VMCS; VMfailValid(12) where the processor has no such component.
    pub fn vmread_encoding(&mut self, encoding: u64) -> Result<u64, VmFail> {
        let (field, part) = self.component(encoding)?;
        let value = self.vmread(field);
        Ok(if part == Part::High { value >> 32 } else { value })
    }

    /// VMWRITE of the component with this encoding. Read-only data fields can be written, as IA32_VMX_MISC says.
    ///
    /// # Errors
    /// As for [`Core::vmread_encoding`].
    pub fn vmwrite_encoding(&mut self, encoding: u64, value: u64) -> Result<(), VmFail> {
        let (field, part) = self.component(encoding)?;
        debug_assert!(
            field.kind() != Kind::ReadOnlyData
                || capability::MISC & x86_defs::vmx::capability::misc::VMWRITE_READ_ONLY != 0
        );
        let value = match part {
            Part::Full => value,
            Part::High => (self.vmread(field) & 0xffff_ffff) | value << 32,
        };
        self.vmwrite(field, value);
        Ok(())
    }

    /// INVEPT of type `kind` with the 128-bit descriptor given.
    ///
    /// # Errors
    /// VMfail(28): a type that the processor lacks, or an EPTP that VM-entry would refuse.
    pub fn invept(&mut self, kind: u64, descriptor: [u64; 2]) -> Result<(), VmFail> {
        let supported = |bit: u64| EPT_VPID & bit != 0;
        let what = match kind {
            1 if supported(ept_vpid::INVEPT_SINGLE_CONTEXT)
                && super::check_controls::check_eptp(descriptor[0], &self.model).is_ok() =>
            {
                Invept::SingleContext { eptp: descriptor[0] }
            }
            2 if supported(ept_vpid::INVEPT_ALL_CONTEXT) => Invept::Global,
            _ => return Err(self.vm_fail(InstructionError::InvalidOperandToInveptInvvpid)),
        };
        self.tlb_invept(what);
        Ok(())
    }

    /// INVVPID of type `kind` with the 128-bit descriptor given: VPID in bits 15:0, linear address in bits 127:64.
    ///
    /// # Errors
    /// VMfail(28): a type that the processor lacks, reserved bits, VPID 0 where one is named, or a linear address that is
    /// not canonical.
    pub fn invvpid(&mut self, kind: u64, descriptor: [u64; 2]) -> Result<(), VmFail> {
        let supported = |bit: u64| EPT_VPID & bit != 0;
        let [low, linear] = descriptor;
        let vpid = (low & 0xffff) as u16;
        let what = match kind {
            0 if supported(ept_vpid::INVVPID_INDIVIDUAL_ADDRESS) && self.model.is_canonical(linear) && vpid != 0 => {
                Some(Invvpid::Individual { vpid, linear })
            }
            1 if supported(ept_vpid::INVVPID_SINGLE_CONTEXT) && vpid != 0 => Some(Invvpid::SingleContext { vpid }),
            2 if supported(ept_vpid::INVVPID_ALL_CONTEXT) => Some(Invvpid::AllContexts),
            3 if supported(ept_vpid::INVVPID_SINGLE_CONTEXT_RETAINING_GLOBALS) && vpid != 0 => {
                Some(Invvpid::SingleContextRetainingGlobal { vpid })
            }
            _ => None,
        };
        match what.filter(|_| low >> 16 == 0) {
            Some(what) => {
                self.tlb_invvpid(what);
                Ok(())
            }
            None => Err(self.vm_fail(InstructionError::InvalidOperandToInveptInvvpid)),
        }
    }
}

impl Vmcs {
    /// A clear VMCS whose region says `revision` (bit 31: shadow-VMCS indicator), as software has written it.
    #[must_use]
    pub fn with_revision(revision: u32) -> Box<Self> {
        let mut vmcs = Self::new();
        vmcs.set_revision(revision);
        vmcs
    }

    /// Whether it is a shadow VMCS.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.revision() & SHADOW != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::testing::{core, guest, vmcs};

    fn error(core: &mut Core) -> u64 {
        core.vmread(Field::VmInstructionError)
    }

    #[test]
    fn without_a_current_vmcs_every_failure_is_vmfail_invalid() {
        let mut core = core();
        assert_eq!(core.vmread_encoding(0x681e), Err(VmFail::Invalid));
        assert_eq!(core.vmwrite_encoding(0x681e, 0), Err(VmFail::Invalid));
        assert_eq!(core.invept(7, [0; 2]), Err(VmFail::Invalid));
        let (fail, back) = core.vmptrld_checked(Vmcs::with_revision(1)).unwrap_err();
        assert_eq!((fail, back.revision()), (VmFail::Invalid, 1));
    }

    #[test]
    fn vmptrld_refuses_another_revision_and_a_shadow_vmcs() {
        let mut core = guest();
        let shadow = Vmcs::with_revision(REVISION | SHADOW);
        assert!(shadow.is_shadow());
        for vmcs in [Vmcs::with_revision(REVISION + 1), shadow] {
            let (fail, _) = core.vmptrld_checked(vmcs).unwrap_err();
            assert_eq!(fail, VmFail::Valid(InstructionError::VmptrldIncorrectRevision));
            assert_eq!(error(&mut core), 11);
        }
        assert!(core.vmptrld_checked(vmcs()).unwrap().is_some());
    }

    #[test]
    fn components_that_the_processor_lacks_are_vmfail_12_and_all_others_are_there() {
        for &field in Field::ALL {
            let mut core = guest();
            let there = capability::has_field(&core.model, field);
            let expected = if there { None } else { Some(VmFail::Valid(InstructionError::UnsupportedComponent)) };
            let encoding = u64::from(field.encoding());
            assert_eq!(core.vmread_encoding(encoding).err(), expected, "VMREAD {field:?}");
            assert_eq!(core.vmwrite_encoding(encoding, 0).err(), expected, "VMWRITE {field:?}");
            if field.width() == x86_defs::vmx::Width::Bits64 {
                assert_eq!(core.vmread_encoding(encoding | 1).err(), expected, "VMREAD of the high half of {field:?}");
            }
            assert_eq!(error(&mut core), if there { 0 } else { 12 });
        }
    }

    #[test]
    fn encodings_that_name_nothing_are_vmfail_12() {
        let mut core = guest();
        for encoding in [0x482c, 0x681f, 0x7fff_ffff, 1 << 32 | 0x681e, u64::MAX] {
            assert_eq!(
                core.vmread_encoding(encoding),
                Err(VmFail::Valid(InstructionError::UnsupportedComponent)),
                "{encoding:#x}"
            );
        }
    }

    #[test]
    fn a_field_follows_the_control_that_it_needs() {
        let mut core = guest();
        let model = core.model.clone();
        for (field, there) in [
            (Field::VirtualProcessorIdentifier, true),
            (Field::GuestInterruptStatus, true),
            (Field::PostedInterruptDescriptor, true),
            (Field::EptpListAddress, true),
            (Field::VmreadBitmap, false),
            (Field::TertiaryControls, false),
            (Field::GuestSsp, false),
            (Field::SharedEptPointer, false),
        ] {
            assert_eq!(capability::has_field(&model, field), there, "{field:?}");
        }
        assert!(core.vmread_encoding(0x2034).is_err());
    }

    #[test]
    fn the_high_half_of_a_64_bit_field_is_read_and_written_alone() {
        let mut core = guest();
        core.vmwrite_encoding(0x2010, 0x1111_2222_3333_4444).unwrap();
        core.vmwrite_encoding(0x2011, 0xaaaa_bbbb).unwrap();
        assert_eq!(core.vmread_encoding(0x2010), Ok(0xaaaa_bbbb_3333_4444));
        assert_eq!(core.vmread_encoding(0x2011), Ok(0xaaaa_bbbb));
    }

    #[test]
    fn invept_and_invvpid_check_type_and_descriptor() {
        const CANONICAL: u64 = 0xffff_8000_0000_0000;
        let eptp = 0x1000 | 6 | 3 << 3;
        let mut core = guest();
        for (kind, descriptor, good) in [
            (0, [eptp, 0], false),
            (1, [eptp, 0], true),
            (1, [eptp | 1 << 7, 0], false),
            (1, [0x1000 | 1 | 3 << 3, 0], false),
            (2, [u64::MAX, 0], true),
            (3, [eptp, 0], false),
        ] {
            assert_eq!(core.invept(kind, descriptor).is_ok(), good, "INVEPT {kind} {descriptor:x?}");
        }
        for (kind, descriptor, good) in [
            (0, [1, CANONICAL], true),
            (0, [1, 1 << 47], false),
            (0, [0, CANONICAL], false),
            (0, [1 << 16 | 1, 0], false),
            (1, [1, 1 << 47], true),
            (1, [0, 0], false),
            (2, [0, 0], true),
            (2, [1 << 16, 0], false),
            (3, [1, 0], true),
            (3, [0, 0], false),
            (4, [1, 0], false),
        ] {
            assert_eq!(core.invvpid(kind, descriptor).is_ok(), good, "INVVPID {kind} {descriptor:x?}");
        }
        assert_eq!(error(&mut core), 28);
    }
}
