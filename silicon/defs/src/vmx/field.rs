//! VMCS fields ("Field Encoding in VMCS").
//!
//! An encoding says everything about a field: bit 0 access type (high half of a 64-bit field), bits 9:1 index,
//! bits 11:10 kind, bits 14:13 width.

/// Width of a field, bits 14:13 of its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    Bits16,
    Bits64,
    Bits32,
    /// 64 bits on a processor with Intel 64.
    Natural,
}

impl Width {
    /// The bits that a field of this width holds.
    #[must_use]
    pub const fn mask(self) -> u64 {
        match self {
            Self::Bits16 => 0xffff,
            Self::Bits32 => 0xffff_ffff,
            Self::Bits64 | Self::Natural => u64::MAX,
        }
    }
}

/// Kind of a field, bits 11:10 of its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Control,
    /// VM-exit information.
    ReadOnlyData,
    GuestState,
    HostState,
}

/// The part of a field that an encoding names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Full,
    /// Bits 63:32 of a 64-bit field.
    High,
}

macro_rules! fields {
    ($($variant:ident = $encoding:literal, $name:literal;)*) => {
        /// A VMCS field; the discriminant is its encoding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Field {
            $(#[doc = $name] $variant = $encoding,)*
        }

        impl Field {
            /// Every field, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The manual's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The identifier of the field in this crate.
            #[must_use]
            pub const fn identifier(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }
    };
}

fields! {
    // 16-bit control fields
    VirtualProcessorIdentifier = 0x0000, "virtual-processor identifier (VPID)";
    PostedInterruptNotificationVector = 0x0002, "posted-interrupt notification vector";
    EptpIndex = 0x0004, "EPTP index";
    HlatPrefixSize = 0x0006, "HLAT prefix size";
    LastPidPointerIndex = 0x0008, "last PID-pointer index";
    // 16-bit guest-state fields
    GuestEsSelector = 0x0800, "guest ES selector";
    GuestCsSelector = 0x0802, "guest CS selector";
    GuestSsSelector = 0x0804, "guest SS selector";
    GuestDsSelector = 0x0806, "guest DS selector";
    GuestFsSelector = 0x0808, "guest FS selector";
    GuestGsSelector = 0x080a, "guest GS selector";
    GuestLdtrSelector = 0x080c, "guest LDTR selector";
    GuestTrSelector = 0x080e, "guest TR selector";
    GuestInterruptStatus = 0x0810, "guest interrupt status";
    PmlIndex = 0x0812, "PML index";
    GuestUinv = 0x0814, "guest UINV";
    // 16-bit host-state fields
    HostEsSelector = 0x0c00, "host ES selector";
    HostCsSelector = 0x0c02, "host CS selector";
    HostSsSelector = 0x0c04, "host SS selector";
    HostDsSelector = 0x0c06, "host DS selector";
    HostFsSelector = 0x0c08, "host FS selector";
    HostGsSelector = 0x0c0a, "host GS selector";
    HostTrSelector = 0x0c0c, "host TR selector";
    // 64-bit control fields
    IoBitmapA = 0x2000, "address of I/O bitmap A";
    IoBitmapB = 0x2002, "address of I/O bitmap B";
    MsrBitmaps = 0x2004, "address of MSR bitmaps";
    ExitMsrStoreAddress = 0x2006, "VM-exit MSR-store address";
    ExitMsrLoadAddress = 0x2008, "VM-exit MSR-load address";
    EntryMsrLoadAddress = 0x200a, "VM-entry MSR-load address";
    ExecutiveVmcsPointer = 0x200c, "executive-VMCS pointer";
    PmlAddress = 0x200e, "PML address";
    TscOffset = 0x2010, "TSC offset";
    VirtualApicAddress = 0x2012, "virtual-APIC address";
    ApicAccessAddress = 0x2014, "APIC-access address";
    PostedInterruptDescriptor = 0x2016, "posted-interrupt descriptor address";
    VmFunctionControls = 0x2018, "VM-function controls";
    EptPointer = 0x201a, "EPT pointer (EPTP)";
    EoiExitBitmap0 = 0x201c, "EOI-exit bitmap 0";
    EoiExitBitmap1 = 0x201e, "EOI-exit bitmap 1";
    EoiExitBitmap2 = 0x2020, "EOI-exit bitmap 2";
    EoiExitBitmap3 = 0x2022, "EOI-exit bitmap 3";
    EptpListAddress = 0x2024, "EPTP-list address";
    VmreadBitmap = 0x2026, "VMREAD-bitmap address";
    VmwriteBitmap = 0x2028, "VMWRITE-bitmap address";
    VirtualizationExceptionInformation = 0x202a, "virtualization-exception information address";
    XssExitingBitmap = 0x202c, "XSS-exiting bitmap";
    EnclsExitingBitmap = 0x202e, "ENCLS-exiting bitmap";
    SubPagePermissionTablePointer = 0x2030, "sub-page-permission-table pointer";
    TscMultiplier = 0x2032, "TSC multiplier";
    TertiaryControls = 0x2034, "tertiary processor-based VM-execution controls";
    EnclvExitingBitmap = 0x2036, "ENCLV-exiting bitmap";
    LowPasidDirectory = 0x2038, "low PASID directory address";
    HighPasidDirectory = 0x203a, "high PASID directory address";
    SharedEptPointer = 0x203c, "shared EPT pointer";
    PconfigExitingBitmap = 0x203e, "PCONFIG-exiting bitmap";
    HlatPointer = 0x2040, "hypervisor-managed linear-address translation pointer";
    PidPointerTable = 0x2042, "PID-pointer table address";
    SecondaryExitControls = 0x2044, "secondary VM-exit controls";
    SpecCtrlMask = 0x204a, "IA32_SPEC_CTRL mask";
    SpecCtrlShadow = 0x204c, "IA32_SPEC_CTRL shadow";
    InjectedEventData = 0x2052, "injected-event data";
    // 64-bit read-only data fields
    GuestPhysicalAddress = 0x2400, "guest-physical address";
    OriginalEventData = 0x2404, "original-event data";
    // 64-bit guest-state fields
    VmcsLinkPointer = 0x2800, "VMCS link pointer";
    GuestDebugctl = 0x2802, "guest IA32_DEBUGCTL";
    GuestPat = 0x2804, "guest IA32_PAT";
    GuestEfer = 0x2806, "guest IA32_EFER";
    GuestPerfGlobalCtrl = 0x2808, "guest IA32_PERF_GLOBAL_CTRL";
    GuestPdpte0 = 0x280a, "guest PDPTE0";
    GuestPdpte1 = 0x280c, "guest PDPTE1";
    GuestPdpte2 = 0x280e, "guest PDPTE2";
    GuestPdpte3 = 0x2810, "guest PDPTE3";
    GuestBndcfgs = 0x2812, "guest IA32_BNDCFGS";
    GuestRtitCtl = 0x2814, "guest IA32_RTIT_CTL";
    GuestLbrCtl = 0x2816, "guest IA32_LBR_CTL";
    GuestPkrs = 0x2818, "guest IA32_PKRS";
    GuestFredConfig = 0x281a, "guest IA32_FRED_CONFIG";
    GuestFredRsp1 = 0x281c, "guest IA32_FRED_RSP1";
    GuestFredRsp2 = 0x281e, "guest IA32_FRED_RSP2";
    GuestFredRsp3 = 0x2820, "guest IA32_FRED_RSP3";
    GuestFredStkLvls = 0x2822, "guest IA32_FRED_STKLVLS";
    GuestFredSsp1 = 0x2824, "guest IA32_FRED_SSP1";
    GuestFredSsp2 = 0x2826, "guest IA32_FRED_SSP2";
    GuestFredSsp3 = 0x2828, "guest IA32_FRED_SSP3";
    // 64-bit host-state fields
    HostPat = 0x2c00, "host IA32_PAT";
    HostEfer = 0x2c02, "host IA32_EFER";
    HostPerfGlobalCtrl = 0x2c04, "host IA32_PERF_GLOBAL_CTRL";
    HostPkrs = 0x2c06, "host IA32_PKRS";
    HostFredConfig = 0x2c08, "host IA32_FRED_CONFIG";
    HostFredRsp1 = 0x2c0a, "host IA32_FRED_RSP1";
    HostFredRsp2 = 0x2c0c, "host IA32_FRED_RSP2";
    HostFredRsp3 = 0x2c0e, "host IA32_FRED_RSP3";
    HostFredStkLvls = 0x2c10, "host IA32_FRED_STKLVLS";
    HostFredSsp1 = 0x2c12, "host IA32_FRED_SSP1";
    HostFredSsp2 = 0x2c14, "host IA32_FRED_SSP2";
    HostFredSsp3 = 0x2c16, "host IA32_FRED_SSP3";
    // 32-bit control fields
    PinBasedControls = 0x4000, "pin-based VM-execution controls";
    PrimaryControls = 0x4002, "primary processor-based VM-execution controls";
    ExceptionBitmap = 0x4004, "exception bitmap";
    PageFaultErrorCodeMask = 0x4006, "page-fault error-code mask";
    PageFaultErrorCodeMatch = 0x4008, "page-fault error-code match";
    Cr3TargetCount = 0x400a, "CR3-target count";
    ExitControls = 0x400c, "primary VM-exit controls";
    ExitMsrStoreCount = 0x400e, "VM-exit MSR-store count";
    ExitMsrLoadCount = 0x4010, "VM-exit MSR-load count";
    EntryControls = 0x4012, "VM-entry controls";
    EntryMsrLoadCount = 0x4014, "VM-entry MSR-load count";
    EntryInterruptionInformation = 0x4016, "VM-entry interruption-information field";
    EntryExceptionErrorCode = 0x4018, "VM-entry exception error code";
    EntryInstructionLength = 0x401a, "VM-entry instruction length";
    TprThreshold = 0x401c, "TPR threshold";
    SecondaryControls = 0x401e, "secondary processor-based VM-execution controls";
    PleGap = 0x4020, "PLE_Gap";
    PleWindow = 0x4022, "PLE_Window";
    InstructionTimeout = 0x4024, "instruction-timeout control";
    // 32-bit read-only data fields
    VmInstructionError = 0x4400, "VM-instruction error";
    ExitReason = 0x4402, "exit reason";
    ExitInterruptionInformation = 0x4404, "VM-exit interruption information";
    ExitInterruptionErrorCode = 0x4406, "VM-exit interruption error code";
    IdtVectoringInformation = 0x4408, "IDT-vectoring information field";
    IdtVectoringErrorCode = 0x440a, "IDT-vectoring error code";
    ExitInstructionLength = 0x440c, "VM-exit instruction length";
    ExitInstructionInformation = 0x440e, "VM-exit instruction information";
    // 32-bit guest-state fields
    GuestEsLimit = 0x4800, "guest ES limit";
    GuestCsLimit = 0x4802, "guest CS limit";
    GuestSsLimit = 0x4804, "guest SS limit";
    GuestDsLimit = 0x4806, "guest DS limit";
    GuestFsLimit = 0x4808, "guest FS limit";
    GuestGsLimit = 0x480a, "guest GS limit";
    GuestLdtrLimit = 0x480c, "guest LDTR limit";
    GuestTrLimit = 0x480e, "guest TR limit";
    GuestGdtrLimit = 0x4810, "guest GDTR limit";
    GuestIdtrLimit = 0x4812, "guest IDTR limit";
    GuestEsRights = 0x4814, "guest ES access rights";
    GuestCsRights = 0x4816, "guest CS access rights";
    GuestSsRights = 0x4818, "guest SS access rights";
    GuestDsRights = 0x481a, "guest DS access rights";
    GuestFsRights = 0x481c, "guest FS access rights";
    GuestGsRights = 0x481e, "guest GS access rights";
    GuestLdtrRights = 0x4820, "guest LDTR access rights";
    GuestTrRights = 0x4822, "guest TR access rights";
    GuestInterruptibility = 0x4824, "guest interruptibility state";
    GuestActivity = 0x4826, "guest activity state";
    GuestSmbase = 0x4828, "guest SMBASE";
    GuestSysenterCs = 0x482a, "guest IA32_SYSENTER_CS";
    PreemptionTimerValue = 0x482e, "VMX-preemption timer value";
    // 32-bit host-state field
    HostSysenterCs = 0x4c00, "host IA32_SYSENTER_CS";
    // natural-width control fields
    Cr0Mask = 0x6000, "CR0 guest/host mask";
    Cr4Mask = 0x6002, "CR4 guest/host mask";
    Cr0Shadow = 0x6004, "CR0 read shadow";
    Cr4Shadow = 0x6006, "CR4 read shadow";
    Cr3Target0 = 0x6008, "CR3-target value 0";
    Cr3Target1 = 0x600a, "CR3-target value 1";
    Cr3Target2 = 0x600c, "CR3-target value 2";
    Cr3Target3 = 0x600e, "CR3-target value 3";
    // natural-width read-only data fields
    ExitQualification = 0x6400, "exit qualification";
    IoRcx = 0x6402, "I/O RCX";
    IoRsi = 0x6404, "I/O RSI";
    IoRdi = 0x6406, "I/O RDI";
    IoRip = 0x6408, "I/O RIP";
    GuestLinearAddress = 0x640a, "guest-linear address";
    // natural-width guest-state fields
    GuestCr0 = 0x6800, "guest CR0";
    GuestCr3 = 0x6802, "guest CR3";
    GuestCr4 = 0x6804, "guest CR4";
    GuestEsBase = 0x6806, "guest ES base";
    GuestCsBase = 0x6808, "guest CS base";
    GuestSsBase = 0x680a, "guest SS base";
    GuestDsBase = 0x680c, "guest DS base";
    GuestFsBase = 0x680e, "guest FS base";
    GuestGsBase = 0x6810, "guest GS base";
    GuestLdtrBase = 0x6812, "guest LDTR base";
    GuestTrBase = 0x6814, "guest TR base";
    GuestGdtrBase = 0x6816, "guest GDTR base";
    GuestIdtrBase = 0x6818, "guest IDTR base";
    GuestDr7 = 0x681a, "guest DR7";
    GuestRsp = 0x681c, "guest RSP";
    GuestRip = 0x681e, "guest RIP";
    GuestRflags = 0x6820, "guest RFLAGS";
    GuestPendingDebugExceptions = 0x6822, "guest pending debug exceptions";
    GuestSysenterEsp = 0x6824, "guest IA32_SYSENTER_ESP";
    GuestSysenterEip = 0x6826, "guest IA32_SYSENTER_EIP";
    GuestSCet = 0x6828, "guest IA32_S_CET";
    GuestSsp = 0x682a, "guest SSP";
    GuestInterruptSspTable = 0x682c, "guest IA32_INTERRUPT_SSP_TABLE_ADDR";
    // natural-width host-state fields
    HostCr0 = 0x6c00, "host CR0";
    HostCr3 = 0x6c02, "host CR3";
    HostCr4 = 0x6c04, "host CR4";
    HostFsBase = 0x6c06, "host FS base";
    HostGsBase = 0x6c08, "host GS base";
    HostTrBase = 0x6c0a, "host TR base";
    HostGdtrBase = 0x6c0c, "host GDTR base";
    HostIdtrBase = 0x6c0e, "host IDTR base";
    HostSysenterEsp = 0x6c10, "host IA32_SYSENTER_ESP";
    HostSysenterEip = 0x6c12, "host IA32_SYSENTER_EIP";
    HostRsp = 0x6c14, "host RSP";
    HostRip = 0x6c16, "host RIP";
    HostSCet = 0x6c18, "host IA32_S_CET";
    HostSsp = 0x6c1a, "host SSP";
    HostInterruptSspTable = 0x6c1c, "host IA32_INTERRUPT_SSP_TABLE_ADDR";
}

/// Indices that the encodings of one width and kind may have.
const GROUP: usize = 64;

/// The field of each dense index.
static BY_INDEX: [Option<Field>; Field::DENSE_INDICES] = {
    let mut table = [None; Field::DENSE_INDICES];
    let mut i = 0;
    while i < Field::ALL.len() {
        table[Field::ALL[i].dense_index()] = Some(Field::ALL[i]);
        i += 1;
    }
    table
};

impl Field {
    /// One more than the largest [`Field::dense_index`].
    pub const DENSE_INDICES: usize = 16 * GROUP;

    /// The encoding of the whole field.
    #[must_use]
    pub const fn encoding(self) -> u32 {
        self as u32
    }

    /// Bits 14:13 of the encoding.
    #[must_use]
    pub const fn width(self) -> Width {
        match (self as u16 >> 13) & 3 {
            0 => Width::Bits16,
            1 => Width::Bits64,
            2 => Width::Bits32,
            _ => Width::Natural,
        }
    }

    /// Bits 11:10 of the encoding.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match (self as u16 >> 10) & 3 {
            0 => Kind::Control,
            1 => Kind::ReadOnlyData,
            2 => Kind::GuestState,
            _ => Kind::HostState,
        }
    }

    /// A small number computed from width, kind and index: the field's place in a table of [`Field::DENSE_INDICES`].
    #[inline]
    #[must_use]
    pub const fn dense_index(self) -> usize {
        let encoding = self as usize;
        ((encoding >> 13) & 3) * 4 * GROUP + ((encoding >> 10) & 3) * GROUP + ((encoding >> 1) & (GROUP - 1))
    }

    /// The field that an encoding names, and which part of it. `None`: an unsupported VMCS component.
    #[must_use]
    pub fn from_encoding(encoding: u32) -> Option<(Self, Part)> {
        let high = encoding & 1 != 0;
        let group = (((encoding >> 13) & 3) * 4 + ((encoding >> 10) & 3)) as usize;
        let index = ((encoding >> 1) & 0x1ff) as usize;
        if encoding & !0x6fff != 0 || index >= GROUP {
            return None;
        }
        let field = BY_INDEX[group * GROUP + index]?;
        match (high, field.width()) {
            (false, _) => Some((field, Part::Full)),
            (true, Width::Bits64) => Some((field, Part::High)),
            (true, _) => None,
        }
    }

    /// The field with this manual name or identifier, whatever the case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|f| f.name().eq_ignore_ascii_case(name) || f.identifier().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_follow_the_table_of_the_manual() {
        for (field, encoding) in [
            (Field::GuestCsSelector, 0x802),
            (Field::HostTrSelector, 0xc0c),
            (Field::EptPointer, 0x201a),
            (Field::TscMultiplier, 0x2032),
            (Field::GuestPhysicalAddress, 0x2400),
            (Field::HostEfer, 0x2c02),
            (Field::ExitReason, 0x4402),
            (Field::PreemptionTimerValue, 0x482e),
            (Field::ExitQualification, 0x6400),
            (Field::GuestRip, 0x681e),
            (Field::HostRip, 0x6c16),
        ] {
            assert_eq!(field.encoding(), encoding, "{field:?}");
        }
    }

    #[test]
    fn names_agree_with_the_width_and_kind_of_the_encoding() {
        for &f in Field::ALL {
            assert_eq!(f.name().starts_with("host "), f.kind() == Kind::HostState, "{f:?}");
            if f.name().starts_with("guest ") && !matches!(f, Field::GuestPhysicalAddress) {
                assert!(f.kind() == Kind::GuestState || f == Field::GuestLinearAddress, "{f:?}");
            }
            for (suffix, width) in [
                (" selector", Width::Bits16),
                (" limit", Width::Bits32),
                (" access rights", Width::Bits32),
                (" base", Width::Natural),
            ] {
                assert!(!f.name().ends_with(suffix) || f.width() == width, "{f:?}");
            }
        }
    }

    #[test]
    fn every_field_is_found_by_encoding_and_by_name_and_has_an_index_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for &f in Field::ALL {
            assert_eq!(Field::from_encoding(f.encoding()), Some((f, Part::Full)));
            assert_eq!(Field::from_name(f.name()), Some(f));
            assert_eq!(Field::from_name(f.identifier()), Some(f));
            assert!(f.dense_index() < Field::DENSE_INDICES && seen.insert(f.dense_index()), "{f:?}");
        }
    }

    #[test]
    fn high_halves_exist_for_64_bit_fields_only() {
        assert_eq!(Field::from_encoding(0x2011), Some((Field::TscOffset, Part::High)));
        assert_eq!(Field::from_encoding(0x681f), None);
        assert_eq!(Field::from_encoding(0x482d), None);
    }

    #[test]
    fn encodings_that_name_nothing_are_unsupported_components() {
        for encoding in [0x482c, 0x7fff_ffff, 0x1000, 0x8000_681e, 0x2080, 0x0200, 0x4024 + 2] {
            assert_eq!(Field::from_encoding(encoding), None, "{encoding:#x}");
        }
    }
}
