use x86_defs::segment::rights;

/// A segment register with its hidden part, in the form of the VMCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SegmentRegister {
    pub selector: u16,
    pub base: u64,
    /// In bytes, granularity applied.
    pub limit: u32,
    /// Access rights ([`rights`]).
    pub rights: u32,
}

impl SegmentRegister {
    #[inline(always)]
    #[must_use]
    pub fn has(&self, bits: u32) -> bool {
        self.rights & bits == bits
    }

    #[must_use]
    pub fn dpl(&self) -> u8 {
        ((self.rights & rights::DPL) >> rights::DPL_SHIFT) as u8
    }

    #[must_use]
    pub fn unusable(&self) -> bool {
        self.rights & rights::UNUSABLE != 0
    }
}

/// GDTR or IDTR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableRegister {
    pub base: u64,
    pub limit: u16,
}
