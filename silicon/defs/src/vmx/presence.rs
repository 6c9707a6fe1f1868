//! On which processors a VMCS field exists (the footnotes of "Field Encoding in VMCS").

use super::{Field, Group};

/// What a processor must be able to do for a field to exist: any of these controls, `(field, bit)`. An empty list: the
/// field always exists.
pub type Needs = &'static [(Group, u8)];

/// The bit that no processor modelled here has: for fields of extensions without a control in the tables.
const NEVER: Needs = &[(Group::Tertiary, 63)];

impl Field {
    /// The controls of which a processor must support the 1-setting of at least one for the field to exist.
    #[must_use]
    pub const fn needs(self) -> Needs {
        use Group::{Entry, Exit, Pin, Primary, Secondary, SecondaryExit, Tertiary, VmFunction};
        match self {
            Self::VirtualProcessorIdentifier => &[(Secondary, 5)],
            Self::PostedInterruptNotificationVector | Self::PostedInterruptDescriptor => &[(Pin, 7)],
            Self::PreemptionTimerValue => &[(Pin, 6)],
            Self::EptpIndex | Self::VirtualizationExceptionInformation => &[(Secondary, 18)],
            Self::HlatPrefixSize | Self::HlatPointer => &[(Tertiary, 1)],
            Self::LastPidPointerIndex | Self::PidPointerTable => &[(Tertiary, 4)],
            Self::GuestInterruptStatus
            | Self::EoiExitBitmap0
            | Self::EoiExitBitmap1
            | Self::EoiExitBitmap2
            | Self::EoiExitBitmap3 => &[(Secondary, 9)],
            Self::PmlIndex | Self::PmlAddress => &[(Secondary, 17)],
            Self::GuestUinv => &[(Entry, 19), (Exit, 27)],
            Self::MsrBitmaps => &[(Primary, 28)],
            Self::VirtualApicAddress | Self::TprThreshold => &[(Primary, 21)],
            Self::ApicAccessAddress => &[(Secondary, 0)],
            Self::VmFunctionControls => &[(Secondary, 13)],
            Self::EptPointer
            | Self::GuestPhysicalAddress
            | Self::GuestPdpte0
            | Self::GuestPdpte1
            | Self::GuestPdpte2
            | Self::GuestPdpte3 => &[(Secondary, 1)],
            Self::EptpListAddress => &[(VmFunction, 0)],
            Self::VmreadBitmap | Self::VmwriteBitmap => &[(Secondary, 14)],
            Self::XssExitingBitmap => &[(Secondary, 20)],
            Self::EnclsExitingBitmap => &[(Secondary, 15)],
            Self::SubPagePermissionTablePointer => &[(Secondary, 23)],
            Self::TscMultiplier => &[(Secondary, 25)],
            Self::TertiaryControls => &[(Primary, 17)],
            Self::EnclvExitingBitmap => &[(Secondary, 28)],
            Self::LowPasidDirectory | Self::HighPasidDirectory => &[(Secondary, 21)],
            Self::SharedEptPointer => NEVER,
            Self::PconfigExitingBitmap => &[(Secondary, 27)],
            Self::SecondaryExitControls => &[(Exit, 31)],
            Self::SpecCtrlMask | Self::SpecCtrlShadow => &[(Tertiary, 7)],
            Self::GuestPat => &[(Entry, 14), (Exit, 18)],
            Self::HostPat => &[(Exit, 19)],
            Self::GuestEfer => &[(Entry, 15), (Exit, 20)],
            Self::HostEfer => &[(Exit, 21)],
            Self::GuestPerfGlobalCtrl => &[(Entry, 13), (Exit, 30)],
            Self::HostPerfGlobalCtrl => &[(Exit, 12)],
            Self::GuestBndcfgs => &[(Entry, 16), (Exit, 23)],
            Self::GuestRtitCtl => &[(Entry, 18), (Exit, 25)],
            Self::GuestLbrCtl => &[(Entry, 21), (Exit, 26)],
            Self::GuestPkrs => &[(Entry, 22)],
            Self::HostPkrs => &[(Exit, 29)],
            Self::GuestSCet | Self::GuestSsp | Self::GuestInterruptSspTable => &[(Entry, 20)],
            Self::HostSCet | Self::HostSsp | Self::HostInterruptSspTable => &[(Exit, 28)],
            Self::GuestFredConfig
            | Self::GuestFredRsp1
            | Self::GuestFredRsp2
            | Self::GuestFredRsp3
            | Self::GuestFredStkLvls
            | Self::GuestFredSsp1
            | Self::GuestFredSsp2
            | Self::GuestFredSsp3
            | Self::InjectedEventData
            | Self::OriginalEventData => &[(Entry, 23), (SecondaryExit, 0)],
            Self::HostFredConfig
            | Self::HostFredRsp1
            | Self::HostFredRsp2
            | Self::HostFredRsp3
            | Self::HostFredStkLvls
            | Self::HostFredSsp1
            | Self::HostFredSsp2
            | Self::HostFredSsp3 => &[(SecondaryExit, 1)],
            Self::SecondaryControls => &[(Primary, 31)],
            Self::PleGap | Self::PleWindow => &[(Secondary, 10)],
            Self::InstructionTimeout => &[(Secondary, 31)],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::Control;

    #[test]
    fn the_controls_that_fields_need_are_in_the_table() {
        for field in Field::ALL {
            for &(group, bit) in field.needs() {
                assert!(field.needs() == NEVER || Control::at(group, bit).is_some(), "{field:?}: {group:?} {bit}");
            }
        }
    }
}
