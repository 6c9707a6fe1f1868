//! A processor with a VMCS that passes every check: a 64-bit guest with EPT.

use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;
use x86_defs::vmx::capability::default1;
use x86_defs::vmx::controls::{entry, exit, primary, secondary};

use super::Vmcs;
use crate::Core;
use crate::model::Model;

/// Two pages for intercept bitmaps.
pub const BITMAPS: u64 = 0x4000;
/// A page for MSR areas.
pub const LIST: u64 = 0x6000;

/// A processor without a current VMCS.
pub fn core() -> Core {
    let memory = PhysicalMemory::new();
    memory.add(HostPhysical(0), 0x10_0000).unwrap();
    Core::new(Arc::new(memory), Arc::new(Model::default()))
}

/// A VMCS for a 64-bit guest.
pub fn vmcs() -> Box<Vmcs> {
    let mut vmcs = Vmcs::new();
    vmcs.set_nominal_host_state();
    for (field, value) in [
        (Field::PinBasedControls, u64::from(default1::PIN)),
        (
            Field::PrimaryControls,
            u64::from(
                (default1::PRIMARY & !(primary::CR3_LOAD_EXITING | primary::CR3_STORE_EXITING))
                    | primary::ACTIVATE_SECONDARY_CONTROLS,
            ),
        ),
        (Field::SecondaryControls, u64::from(secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST)),
        (Field::EptPointer, 0x1000 | 6 | 3 << 3),
        (
            Field::ExitControls,
            u64::from(
                default1::EXIT
                    | exit::HOST_ADDRESS_SPACE_SIZE
                    | exit::SAVE_EFER
                    | exit::LOAD_EFER
                    | exit::SAVE_PAT
                    | exit::LOAD_PAT,
            ),
        ),
        (
            Field::EntryControls,
            u64::from(default1::ENTRY | entry::IA32E_MODE_GUEST | entry::LOAD_EFER | entry::LOAD_PAT),
        ),
        (Field::GuestCr0, cr0::PE | cr0::ET | cr0::NE | cr0::PG),
        (Field::GuestCr3, 0x2000),
        (Field::GuestCr4, cr4::PAE | cr4::VMXE),
        (Field::GuestEfer, efer::LME | efer::LMA | efer::NXE),
        (Field::GuestPat, 0x0007_0406_0007_0406),
        (Field::GuestDr7, 0x400),
        (Field::GuestCsSelector, 0x08),
        (Field::GuestCsLimit, 0xffff_ffff),
        (Field::GuestCsRights, 0xa09b),
        (Field::GuestSsSelector, 0x10),
        (Field::GuestSsLimit, 0xffff_ffff),
        (Field::GuestSsRights, 0xc093),
        (Field::GuestDsRights, 0x1_0000),
        (Field::GuestEsRights, 0x1_0000),
        (Field::GuestFsRights, 0x1_0000),
        (Field::GuestGsRights, 0x1_0000),
        (Field::GuestLdtrRights, 0x1_0000),
        (Field::GuestTrSelector, 0x18),
        (Field::GuestTrLimit, 0x67),
        (Field::GuestTrRights, 0x8b),
        (Field::GuestGdtrLimit, 0x7f),
        (Field::GuestIdtrLimit, 0xfff),
        (Field::GuestRip, 0x10_0000),
        (Field::GuestRsp, 0x8000),
        (Field::GuestRflags, 2),
        (Field::VmcsLinkPointer, u64::MAX),
    ] {
        vmcs.set(field, value);
    }
    vmcs
}

/// A processor with that VMCS current.
pub fn guest() -> Core {
    let mut core = core();
    assert!(core.vmptrld(vmcs()).is_none());
    core
}
