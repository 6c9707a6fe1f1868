/// What VMWRITE has changed since the last VM-entry, so that VM-entry checks and decodes no more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty(u32);

impl Dirty {
    pub const NONE: Self = Self(0);
    /// Controls that VM-entry checks.
    pub const CONTROLS: Self = Self(1 << 0);
    /// Controls that only have to be decoded: any value is valid.
    pub const DECODE: Self = Self(1 << 1);
    pub const HOST: Self = Self(1 << 2);
    /// Control registers, debug registers and MSRs.
    pub const REGISTERS: Self = Self(1 << 3);
    pub const SEGMENTS: Self = Self(1 << 4);
    /// Control registers, EFER, segments or flags: the mode must be derived again.
    pub const MODE: Self = Self(1 << 5);
    pub const LINK_POINTER: Self = Self(1 << 6);
    pub const PDPTES: Self = Self(1 << 7);
    /// CR0, CR4 or EFER: permissions in the fast look-up must be derived again.
    pub const PERMISSIONS: Self = Self(1 << 12);
    /// CR0, CR3, CR4, PDPTEs, VPID or EPTP: the translation context must be selected again.
    pub const TRANSLATION: Self = Self(1 << 13);
    // Fields with bits set for which the processor has no place: the VMCS has the value, and VM-entry will fail.
    pub const RFLAGS: Self = Self(1 << 8);
    pub const GDTR_LIMIT: Self = Self(1 << 9);
    pub const IDTR_LIMIT: Self = Self(1 << 10);
    pub const INTERRUPTIBILITY: Self = Self(1 << 11);
    pub const ALL: Self = Self(0x30ff);
    const CHECKED_BY_GUEST_CHECKS: u32 = Self::REGISTERS.0 | Self::SEGMENTS.0 | Self::LINK_POINTER.0 | Self::PDPTES.0;

    /// Everything that guest-state checks look at.
    pub const GUEST: Self = Self(Self::CHECKED_BY_GUEST_CHECKS);

    #[inline(always)]
    #[must_use]
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    #[inline(always)]
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    #[inline(always)]
    pub const fn set(&mut self, more: Self) {
        self.0 |= more.0;
    }

    #[inline(always)]
    pub const fn assign(&mut self, bits: Self, set: bool) {
        self.0 = if set { self.0 | bits.0 } else { self.0 & !bits.0 };
    }

    /// Whether guest state beyond RIP, RFLAGS and interruptibility must be checked.
    #[inline(always)]
    #[must_use]
    pub const fn guest(self) -> bool {
        self.0 & Self::CHECKED_BY_GUEST_CHECKS != 0
    }
}
