//! Checks on guest control registers, debug registers and MSRs.

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::entry;

use super::{GUEST, protected, restricted, rules, set, toggle};

const NOT_CANONICAL: u64 = 1 << 47;

rules! {
    RULES {
        GUEST, "The guest CR0 must not have a bit set to a value not supported in VMX operation (fixed to 1)"
            => "CR0: a fixed", |c| c.vmwrite(Field::GuestCr0, cr0::PE | cr0::PG);
        GUEST, "The guest CR0 must not have a bit set to a value not supported in VMX operation (fixed to 0)"
            => "CR0: a fixed", |c| c.vmwrite(Field::GuestCr0, cr0::PE | cr0::PG | cr0::NE | 1 << 40);
        GUEST, "Without \"unrestricted guest\", PE and PG of the guest CR0 must be 1"
            => "CR0: a fixed", |c| restricted(c, &[(Field::GuestCr0, cr0::PE | cr0::NE)]);
        GUEST, "If bit 31 (PG) of the guest CR0 is 1, bit 0 (PE) must be 1"
            => "PG without PE", |c| c.vmwrite(Field::GuestCr0, cr0::PG | cr0::NE);
        GUEST, "The guest CR4 must not have a bit set to a value not supported in VMX operation (fixed to 1)"
            => "CR4: a fixed", |c| c.vmwrite(Field::GuestCr4, cr4::PAE);
        GUEST, "The guest CR4 must not have a bit set to a value not supported in VMX operation (fixed to 0)"
            => "CR4: a fixed", |c| c.vmwrite(Field::GuestCr4, cr4::PAE | cr4::VMXE | 1 << 40);
        GUEST, "If \"load debug controls\" is 1, reserved bits of IA32_DEBUGCTL must be 0"
            => "DEBUGCTL", |c| c.vmwrite(Field::GuestDebugctl, 1 << 5);
        GUEST, "If \"IA-32e mode guest\" is 1, bit 31 (PG) of the guest CR0 must be 1"
            => "IA-32e mode guest without", |c| set(c, &[(Field::GuestCr0, cr0::PE | cr0::NE)]);
        GUEST, "If \"IA-32e mode guest\" is 1, bit 5 (PAE) of the guest CR4 must be 1"
            => "IA-32e mode guest without", |c| c.vmwrite(Field::GuestCr4, cr4::VMXE);
        GUEST, "If \"IA-32e mode guest\" is 0, bit 17 (PCIDE) of the guest CR4 must be 0"
            => "PCIDE", |c| {
                protected(c);
                c.vmwrite(Field::GuestCr4, cr4::VMXE | cr4::PCIDE);
            };
        GUEST, "Bits of the guest CR3 beyond the physical-address width must be 0"
            => "CR3", |c| c.vmwrite(Field::GuestCr3, 1 << 46);
        GUEST, "If \"load debug controls\" is 1, bits 63:32 of the guest DR7 must be 0"
            => "DR7", |c| c.vmwrite(Field::GuestDr7, 1 << 32);
        GUEST, "The guest IA32_SYSENTER_ESP must be canonical"
            => "SYSENTER", |c| c.vmwrite(Field::GuestSysenterEsp, NOT_CANONICAL);
        GUEST, "The guest IA32_SYSENTER_EIP must be canonical"
            => "SYSENTER", |c| c.vmwrite(Field::GuestSysenterEip, NOT_CANONICAL);
        GUEST, "If \"load IA32_PAT\" is 1, each byte of the guest IA32_PAT must be 0, 1, 4, 5, 6 or 7"
            => "PAT", |c| c.vmwrite(Field::GuestPat, 3);
        GUEST, "If \"load IA32_EFER\" is 1, reserved bits of the guest IA32_EFER must be 0"
            => "EFER: a reserved", |c| c.vmwrite(Field::GuestEfer, efer::LMA | efer::LME | 1 << 9);
        GUEST, "If \"load IA32_EFER\" is 1, LMA of the guest IA32_EFER must be \"IA-32e mode guest\""
            => "LMA differs from the IA-32e", |c| c.vmwrite(Field::GuestEfer, 0);
        GUEST, "If \"load IA32_EFER\" is 1 and CR0.PG is 1, LMA and LME of the guest IA32_EFER must be equal"
            => "LMA differs from LME", |c| c.vmwrite(Field::GuestEfer, efer::LMA);
    }
}

#[test]
fn what_is_not_loaded_is_not_checked() {
    let mut core = crate::vmx::testing::guest();
    set(&mut core, &[(Field::GuestDebugctl, 1 << 5), (Field::GuestPat, 3), (Field::GuestEfer, 1 << 9)]);
    toggle(&mut core, Field::EntryControls, entry::LOAD_DEBUG_CONTROLS | entry::LOAD_PAT | entry::LOAD_EFER);
    assert!(core.vmlaunch().is_ok());
}
