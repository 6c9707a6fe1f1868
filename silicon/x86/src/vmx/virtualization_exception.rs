//! Virtualization exceptions: EPT violations that become #VE of the guest ("Virtualization Exceptions").

use silicon_memory::HostPhysical;
use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::vmx::controls::{interruption, secondary};
use x86_defs::vmx::{ExitReason, Field};

use crate::Core;
use crate::core::Fault;

/// "Suppress #VE" in the EPT entry that decides.
const SUPPRESS: u64 = 1 << 63;
/// Read, write and execute permissions; none: not present.
const RIGHTS: u64 = 7;
/// Execute permission for user-mode addresses.
const USER_EXECUTE: u64 = 1 << 10;
const LARGE: u64 = 1 << 7;

/// Offsets in the virtualization-exception information area.
mod area {
    pub const REASON: u64 = 0;
    /// Not zero: the guest has not read the area yet, and violations exit.
    pub const BUSY: u64 = 4;
    pub const QUALIFICATION: u64 = 8;
    pub const LINEAR: u64 = 16;
    pub const PHYSICAL: u64 = 24;
    pub const EPTP_INDEX: u64 = 32;
}

impl Core {
    /// Turns the VM-exit that an instruction has just recorded into #VE in [`Core::fault`], if it is a violation that is to
    /// be one.
    #[inline]
    pub(crate) fn becomes_virtualization_exception(&mut self) -> bool {
        self.vmx.controls.secondary & secondary::EPT_VIOLATION_VE != 0 && self.convert_violation()
    }

    #[cold]
    fn convert_violation(&mut self) -> bool {
        let exit = self.vmx.exit;
        let delivering = exit.idt_vectoring & interruption::VALID != 0;
        if exit.reason != Some(ExitReason::EptViolation) || delivering || self.cr0 & cr0::PE == 0 {
            return false;
        }
        let address = HostPhysical(self.vmcs().get(Field::VirtualizationExceptionInformation));
        let Some((frame, _)) = self.memory.page(address) else { return false };
        if frame.load::<u32>(area::BUSY) != 0 || !self.is_convertible(exit.guest_physical) {
            return false;
        }
        frame.store(area::REASON, ExitReason::EptViolation as u32);
        frame.store(area::BUSY, u32::MAX);
        frame.store(area::QUALIFICATION, exit.qualification);
        frame.store(area::LINEAR, exit.guest_linear);
        frame.store(area::PHYSICAL, exit.guest_physical);
        frame.store(area::EPTP_INDEX, self.vmcs().get(Field::EptpIndex) as u16);
        self.fault = Fault { vector: vector::VE, error_code: None, address: 0 };
        true
    }

    /// Whether the EPT entry that ends the walk for `guest` (the first that is not present, or the leaf) allows #VE.
    fn is_convertible(&self, guest: u64) -> bool {
        let physical = self.model.physical_mask();
        if guest & !physical != 0 {
            return false;
        }
        let eptp = self.vmx.controls.eptp;
        let user_execute = self.vmx.controls.secondary & secondary::MODE_BASED_EXECUTE != 0;
        let present = RIGHTS | if user_execute { USER_EXECUTE } else { 0 };
        let mut table = eptp & physical & !0xfff;
        for level in (0..=(eptp >> 3) & 7).rev() {
            let Some((frame, _)) = self.memory.page(HostPhysical(table)) else { return false };
            let entry: u64 = frame.load((guest >> (12 + 9 * level) & 0x1ff) * 8);
            if entry & present == 0 || level == 0 || level < 3 && entry & LARGE != 0 {
                return entry & SUPPRESS == 0;
            }
            table = entry & physical & !0xfff;
        }
        false
    }
}
