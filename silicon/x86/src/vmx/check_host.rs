//! Checks on the host-state area ("Checks on Host Control Registers, MSRs, and SSP" and the sections after it).

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::exit;

use super::Vmcs;
use super::capability::{CR0_FIXED0, CR0_FIXED1, CR4_FIXED0, cr4_fixed1};
use super::entry::{Checked, rule};
use crate::model::Model;

/// Whether every byte of a PAT value is a memory type that exists.
pub(super) fn valid_pat(pat: u64) -> bool {
    pat.to_le_bytes().iter().all(|t| matches!(t, 0 | 1 | 4 | 5 | 6 | 7))
}

/// Bits of EFER that exist.
pub(super) const EFER_DEFINED: u64 = efer::SCE | efer::LME | efer::LMA | efer::NXE;

pub(super) fn check(vmcs: &Vmcs, model: &Model) -> Checked {
    let get = |field| vmcs.get(field);
    let controls = get(Field::ExitControls) as u32;

    let (cr0, cr4) = (get(Field::HostCr0), get(Field::HostCr4));
    rule(cr0 & CR0_FIXED0 == CR0_FIXED0 && cr0 & !CR0_FIXED1 == 0, "host CR0: a fixed bit")?;
    rule(cr4 & CR4_FIXED0 == CR4_FIXED0 && cr4 & !cr4_fixed1(model) == 0, "host CR4: a fixed bit")?;
    rule(model.is_physical(get(Field::HostCr3)), "host CR3: beyond the physical address width")?;
    rule(
        model.is_canonical(get(Field::HostSysenterEsp)) && model.is_canonical(get(Field::HostSysenterEip)),
        "host SYSENTER address not canonical",
    )?;
    if controls & exit::LOAD_PAT != 0 {
        rule(valid_pat(get(Field::HostPat)), "host PAT: a memory type that does not exist")?;
    }
    if controls & exit::LOAD_PKRS != 0 {
        rule(get(Field::HostPkrs) >> 32 == 0, "host IA32_PKRS: a bit above 31")?;
    }
    if controls & exit::LOAD_EFER != 0 {
        let efer = get(Field::HostEfer);
        let long = efer::LMA | efer::LME;
        rule(efer & !EFER_DEFINED == 0, "host EFER: a reserved bit")?;
        rule(efer & long == long, "host EFER: not in IA-32e mode")?;
    }

    for field in [
        Field::HostCsSelector,
        Field::HostSsSelector,
        Field::HostDsSelector,
        Field::HostEsSelector,
        Field::HostFsSelector,
        Field::HostGsSelector,
        Field::HostTrSelector,
    ] {
        rule(get(field) & 7 == 0, "host selector: RPL or TI not zero")?;
    }
    rule(get(Field::HostCsSelector) != 0, "host CS selector is null")?;
    rule(get(Field::HostTrSelector) != 0, "host TR selector is null")?;
    for field in [Field::HostFsBase, Field::HostGsBase, Field::HostGdtrBase, Field::HostIdtrBase, Field::HostTrBase] {
        rule(model.is_canonical(get(field)), "host segment or table base not canonical")?;
    }

    rule(controls & exit::HOST_ADDRESS_SPACE_SIZE != 0, "host address-space size clear on a 64-bit host")?;
    rule(cr4 & cr4::PAE != 0, "host CR4.PAE clear on a 64-bit host")?;
    rule(model.is_canonical(get(Field::HostRip)), "host RIP not canonical")
}

impl Vmcs {
    /// Fills in a host-state area that passes the checks, for a hypervisor that is native code.
    pub fn set_nominal_host_state(&mut self) {
        for (field, value) in [
            (Field::HostCr0, cr0::PE | cr0::MP | cr0::ET | cr0::NE | cr0::WP | cr0::PG),
            (Field::HostCr4, cr4::PAE | cr4::PSE | cr4::VMXE),
            (Field::HostEfer, efer::SCE | efer::LME | efer::LMA | efer::NXE),
            (Field::HostPat, 0x0007_0406_0007_0406),
            (Field::HostCsSelector, 0x10),
            (Field::HostSsSelector, 0x18),
            (Field::HostTrSelector, 0x40),
        ] {
            self.set(field, value);
        }
    }
}
