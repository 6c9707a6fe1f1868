//! Checks on the host-state area.

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::exit;

use super::{HOST, rules, toggle};

const NOT_CANONICAL: u64 = 1 << 47;

rules! {
    RULES {
        HOST, "The host CR0 must not have a bit set to a value not supported in VMX operation (fixed to 1)"
            => "host CR0", |c| c.vmwrite(Field::HostCr0, cr0::PE | cr0::PG);
        HOST, "The host CR0 must not have a bit set to a value not supported in VMX operation (fixed to 0)"
            => "host CR0", |c| c.vmwrite(Field::HostCr0, 1 << 32 | cr0::PE | cr0::NE | cr0::PG);
        HOST, "The host CR4 must not have a bit set to a value not supported in VMX operation (fixed to 1)"
            => "host CR4", |c| c.vmwrite(Field::HostCr4, cr4::PAE);
        HOST, "The host CR4 must not have a bit set to a value not supported in VMX operation (fixed to 0)"
            => "host CR4", |c| c.vmwrite(Field::HostCr4, cr4::PAE | cr4::VMXE | 1 << 40);
        HOST, "Bits of the host CR3 beyond the physical-address width must be 0"
            => "host CR3", |c| c.vmwrite(Field::HostCr3, 1 << 46);
        HOST, "The host IA32_SYSENTER_ESP must be canonical"
            => "SYSENTER", |c| c.vmwrite(Field::HostSysenterEsp, NOT_CANONICAL);
        HOST, "The host IA32_SYSENTER_EIP must be canonical"
            => "SYSENTER", |c| c.vmwrite(Field::HostSysenterEip, NOT_CANONICAL);
        HOST, "If \"load IA32_PAT\" is 1, each byte of the host IA32_PAT must be 0, 1, 4, 5, 6 or 7"
            => "PAT", |c| c.vmwrite(Field::HostPat, 2);
        HOST, "If \"load IA32_EFER\" is 1, reserved bits of the host IA32_EFER must be 0"
            => "EFER: a reserved", |c| c.vmwrite(Field::HostEfer, efer::LMA | efer::LME | 2);
        HOST, "If \"load IA32_EFER\" is 1, LMA of the host IA32_EFER must be \"host address-space size\""
            => "IA-32e", |c| c.vmwrite(Field::HostEfer, efer::LME);
        HOST, "If \"load IA32_EFER\" is 1, LME of the host IA32_EFER must be \"host address-space size\""
            => "IA-32e", |c| c.vmwrite(Field::HostEfer, efer::LMA);
        HOST, "RPL and TI of the host CS selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostCsSelector, 0x13);
        HOST, "RPL and TI of the host SS selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostSsSelector, 4);
        HOST, "RPL and TI of the host DS selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostDsSelector, 3);
        HOST, "RPL and TI of the host ES selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostEsSelector, 1);
        HOST, "RPL and TI of the host FS selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostFsSelector, 2);
        HOST, "RPL and TI of the host GS selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostGsSelector, 4);
        HOST, "RPL and TI of the host TR selector must be 0"
            => "RPL", |c| c.vmwrite(Field::HostTrSelector, 0x44);
        HOST, "The host CS selector must not be 0000H"
            => "CS selector is null", |c| c.vmwrite(Field::HostCsSelector, 0);
        HOST, "The host TR selector must not be 0000H"
            => "TR selector is null", |c| c.vmwrite(Field::HostTrSelector, 0);
        HOST, "The host FS base must be canonical"
            => "base", |c| c.vmwrite(Field::HostFsBase, NOT_CANONICAL);
        HOST, "The host GS base must be canonical"
            => "base", |c| c.vmwrite(Field::HostGsBase, NOT_CANONICAL);
        HOST, "The host GDTR base must be canonical"
            => "base", |c| c.vmwrite(Field::HostGdtrBase, NOT_CANONICAL);
        HOST, "The host IDTR base must be canonical"
            => "base", |c| c.vmwrite(Field::HostIdtrBase, NOT_CANONICAL);
        HOST, "The host TR base must be canonical"
            => "base", |c| c.vmwrite(Field::HostTrBase, NOT_CANONICAL);
        HOST, "If the processor is in IA-32e mode, \"host address-space size\" must be 1"
            => "address-space size", |c| {
                // So that EFER, which is looked at first, agrees.
                toggle(c, Field::ExitControls, exit::HOST_ADDRESS_SPACE_SIZE | exit::LOAD_EFER);
            };
        HOST, "If \"host address-space size\" is 1, CR4.PAE must be 1"
            => "PAE", |c| c.vmwrite(Field::HostCr4, cr4::VMXE);
        HOST, "If \"host address-space size\" is 1, the host RIP must be canonical"
            => "RIP", |c| c.vmwrite(Field::HostRip, NOT_CANONICAL);
    }
}
