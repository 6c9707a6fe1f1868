//! XCR0, and KVM's structures of extended control registers and of x87, SSE, AVX and PKRU state.
//!
//! VMX has no field for XCR0. KVM loads the guest's around each VM-entry; here nothing but the guest ever runs on the
//! vCPU's processor, so its XCR0 is always the guest's. The same goes for IA32_XSS.

use kvm_bindings::{kvm_xcr, kvm_xcrs, kvm_xsave};
use silicon_x86::exec::sse::xsave::{Image, InvalidImage};

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

    /// `KVM_GET_XSAVE`: all state components of the model in the standard format.
    #[must_use]
    pub fn xsave(&self) -> kvm_xsave {
        let image = self.processor.core.xsave_image();
        let mut xsave = kvm_xsave::default();
        for (word, bytes) in xsave.region.iter_mut().zip(image.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        xsave
    }

    /// `KVM_SET_XSAVE`.
    ///
    /// # Errors
    /// The area is not one that the processor could load.
    pub fn set_xsave(&mut self, xsave: &kvm_xsave) -> Result<(), InvalidImage> {
        let mut image: Image = [0; size_of::<Image>()];
        for (bytes, word) in image.as_chunks_mut().0.iter_mut().zip(xsave.region) {
            *bytes = word.to_le_bytes();
        }
        self.processor.core.set_xsave_image(&image)
    }
}
