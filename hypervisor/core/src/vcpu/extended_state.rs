//! XCR0, and KVM's structure of extended control registers.
//!
//! VMX has no field for XCR0. KVM loads the guest's around each VM-entry; here nothing but the guest ever runs on the
//! vCPU's processor, so its XCR0 is always the guest's. The same goes for IA32_XSS.

use kvm_bindings::{kvm_xcr, kvm_xcrs};

use super::Vcpu;

/// A value that the processor refuses: #GP(0) where a guest asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("XCR0 cannot be {value:#x} on this processor")]
pub struct InvalidXcr0 {
    pub value: u64,
}

impl Vcpu {
    /// Which state components XSAVE and vector instructions may use.
    #[must_use]
    pub fn xcr0(&self) -> u64 {
        self.processor.core.xcr0
    }

    /// Sets XCR0.
    ///
    /// # Errors
    /// The processor's model does not allow the value.
    pub fn set_xcr0(&mut self, value: u64) -> Result<(), InvalidXcr0> {
        let core = &mut self.processor.core;
        // A processor without XSAVE has the value of RESET for good.
        if value != 1 && !core.model.xcr0_is_valid(value) {
            return Err(InvalidXcr0 { value });
        }
        core.set_xcr0(value);
        Ok(())
    }

    /// `KVM_GET_XCRS`.
    #[must_use]
    pub fn xcrs(&self) -> kvm_xcrs {
        let mut xcrs = kvm_xcrs { nr_xcrs: 1, ..kvm_xcrs::default() };
        xcrs.xcrs[0] = kvm_xcr { xcr: 0, value: self.xcr0(), ..kvm_xcr::default() };
        xcrs
    }

    /// `KVM_SET_XCRS`: XCR0 is the only one, others are ignored as KVM does.
    ///
    /// # Errors
    /// The processor's model does not allow the value.
    pub fn set_xcrs(&mut self, xcrs: &kvm_xcrs) -> Result<(), InvalidXcr0> {
        let given = xcrs.xcrs.iter().take(xcrs.nr_xcrs as usize);
        match given.into_iter().find(|x| x.xcr == 0) {
            Some(x) => self.set_xcr0(x.value),
            None => Ok(()),
        }
    }
}
