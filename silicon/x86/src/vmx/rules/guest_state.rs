//! Checks on guest RIP, RFLAGS, activity, interruptibility, pending debug exceptions, link pointer and PDPTEs.

use x86_defs::control::{cr0, cr4};
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{activity, interruptibility, interruption, pin, secondary};

use super::{Answer, GUEST, pae, protected, restricted, rules, set, toggle, virtual_8086};
use crate::Core;
use crate::vmx::vmcs::{REVISION, SHADOW};

const VALID: u64 = interruption::VALID as u64;
const EXTERNAL: (Field, u64) = (Field::EntryInterruptionInformation, VALID | 0x20);
const NMI: (Field, u64) = (Field::EntryInterruptionInformation, VALID | interruption::TYPE_NMI as u64 | 2);
const UD: (Field, u64) =
    (Field::EntryInterruptionInformation, VALID | interruption::TYPE_HARDWARE_EXCEPTION as u64 | 6);
/// RFLAGS with IF.
const OPEN: (Field, u64) = (Field::GuestRflags, 0x202);
/// RFLAGS with TF.
const STEP: (Field, u64) = (Field::GuestRflags, 0x102);
const BTF: (Field, u64) = (Field::GuestDebugctl, 2);
const BS: (Field, u64) = (Field::GuestPendingDebugExceptions, 1 << 14);

const fn state(value: u32) -> (Field, u64) {
    (Field::GuestActivity, value as u64)
}

const fn blocking(bits: u32) -> (Field, u64) {
    (Field::GuestInterruptibility, bits as u64)
}

const STI: u32 = interruptibility::BLOCKING_BY_STI;
const MOV_SS: u32 = interruptibility::BLOCKING_BY_MOV_SS;

fn link_to(core: &mut Core, revision: u32) {
    core.memory.page(silicon_memory::HostPhysical(0x3000)).unwrap().0.store(0, revision);
    core.vmwrite(Field::VmcsLinkPointer, 0x3000);
}

rules! {
    RIP_AND_RFLAGS {
        GUEST, "Bits 63:32 of RIP must be 0 if \"IA-32e mode guest\" is 0"
            => "RIP above", |c| {
                protected(c);
                c.vmwrite(Field::GuestRip, 1 << 32);
            };
        GUEST, "Bits 63:32 of RIP must be 0 if L of CS is 0"
            => "RIP above", |c| set(c, &[(Field::GuestCsRights, 0xc09b), (Field::GuestRip, 1 << 32)]);
        GUEST, "If the guest is in 64-bit mode, RIP must be canonical"
            => "RIP not canonical", |c| c.vmwrite(Field::GuestRip, 1 << 47);
        GUEST, "Reserved bits 63:22, 15, 5 and 3 of RFLAGS must be 0"
            => "RFLAGS: a reserved", |c| c.vmwrite(Field::GuestRflags, 2 | 1 << 15);
        GUEST, "Reserved bit 1 of RFLAGS must be 1"
            => "RFLAGS: a reserved", |c| c.vmwrite(Field::GuestRflags, 0);
        GUEST, "VM of RFLAGS must be 0 if \"IA-32e mode guest\" is 1"
            => "", |c| c.vmwrite(Field::GuestRflags, 0x2_0002);
        GUEST, "VM of RFLAGS must be 0 if CR0.PE is 0"
            => "VM set", |c| {
                virtual_8086(c);
                c.vmwrite(Field::GuestCr0, cr0::NE);
            };
        GUEST, "IF of RFLAGS must be 1 if an external interrupt is injected"
            => "RFLAGS.IF clear", |c| set(c, &[EXTERNAL]);
    }
}

rules! {
    NON_REGISTER {
        GUEST, "The activity state must be in the range 0-3 and supported by the processor"
            => "does not exist", |c| set(c, &[state(4)]);
        GUEST, "The activity state must not be HLT if the DPL of SS is not 0"
            => "HLT with SS.DPL", |c| {
                set(c, &[state(activity::HLT), (Field::GuestSsRights, 0xc0f3), (Field::GuestCsRights, 0xa0fb)]);
            };
        GUEST, "The activity state must be active if blocking by STI or by MOV SS is 1"
            => "inactive in", |c| set(c, &[OPEN, state(activity::HLT), blocking(STI)]);
        GUEST, "In HLT, only an external interrupt, an NMI, #DB, #MC or a pending MTF VM exit may be injected"
            => "does not take", |c| set(c, &[state(activity::HLT), UD]);
        GUEST, "In shutdown, only an NMI or #MC may be injected"
            => "does not take", |c| set(c, &[OPEN, state(activity::SHUTDOWN), EXTERNAL]);
        GUEST, "In wait-for-SIPI, no event may be injected"
            => "does not take", |c| set(c, &[state(activity::WAIT_FOR_SIPI), NMI]);
        GUEST, "Reserved bits 31:5 of the interruptibility state must be 0"
            => "interruptibility: a reserved", |c| set(c, &[blocking(1 << 5)]);
        GUEST, "Enclave interruption must be 0 on a processor without SGX"
            => "interruptibility: a reserved", |c| set(c, &[blocking(1 << 4)]);
        GUEST, "Blocking by STI and blocking by MOV SS must not both be 1"
            => "both STI and MOV SS", |c| set(c, &[OPEN, blocking(STI | MOV_SS)]);
        GUEST, "Blocking by STI must be 0 if IF of RFLAGS is 0"
            => "STI with RFLAGS.IF clear", |c| set(c, &[blocking(STI)]);
        GUEST, "Blocking by STI must be 0 if an external interrupt is injected"
            => "external interrupt in an STI", |c| set(c, &[OPEN, blocking(STI), EXTERNAL]);
        GUEST, "Blocking by MOV SS must be 0 if an external interrupt is injected"
            => "external interrupt in an STI", |c| set(c, &[OPEN, blocking(MOV_SS), EXTERNAL]);
        GUEST, "Blocking by MOV SS must be 0 if an NMI is injected"
            => "NMI in a MOV SS", |c| set(c, &[blocking(MOV_SS), NMI]);
        Answer::Exit(3), "Blocking by STI must be 0 if an NMI is injected"
            => "NMI in an STI", |c| set(c, &[OPEN, blocking(STI), NMI]);
        GUEST, "Blocking by SMI must be 0 outside of SMM"
            => "SMI", |c| set(c, &[blocking(interruptibility::BLOCKING_BY_SMI)]);
        GUEST, "Blocking by NMI must be 0 if \"virtual NMIs\" is 1 and an NMI is injected"
            => "virtual NMIs are blocked", |c| {
                toggle(c, Field::PinBasedControls, pin::NMI_EXITING | pin::VIRTUAL_NMIS);
                set(c, &[blocking(interruptibility::BLOCKING_BY_NMI), NMI]);
            };
        GUEST, "Reserved bits 11:4, 13 and 63:15 of the pending debug exceptions must be 0"
            => "pending debug exceptions: a reserved", |c| c.vmwrite(Field::GuestPendingDebugExceptions, 1 << 5);
        GUEST, "In an STI or MOV SS shadow or HLT, BS of the pending debug exceptions must be 1 if TF is 1 and BTF is 0"
            => "BS does not fit", |c| set(c, &[blocking(MOV_SS), STEP]);
        GUEST, "In an STI or MOV SS shadow or HLT, BS of the pending debug exceptions must be 0 if TF is 0"
            => "BS does not fit", |c| set(c, &[blocking(MOV_SS), BS]);
        GUEST, "In an STI or MOV SS shadow or HLT, BS of the pending debug exceptions must be 0 if BTF is 1"
            => "BS does not fit", |c| set(c, &[state(activity::HLT), STEP, BTF, BS]);
        Answer::Exit(4), "Bits 11:0 of the VMCS link pointer must be 0 if it is not FFFFFFFF_FFFFFFFFH"
            => "link pointer", |c| {
                link_to(c, REVISION);
                c.vmwrite(Field::VmcsLinkPointer, 0x3008);
            };
        Answer::Exit(4), "The VMCS link pointer must not exceed the physical-address width"
            => "link pointer", |c| c.vmwrite(Field::VmcsLinkPointer, 1 << 46);
        Answer::Exit(4), "The VMCS that the link pointer refers to must have the processor's revision identifier"
            => "link pointer", |c| link_to(c, REVISION + 1);
        Answer::Exit(4), "The shadow-VMCS indicator of the VMCS that the link pointer refers to must be \"VMCS shadowing\""
            => "link pointer", |c| link_to(c, REVISION | SHADOW);
    }
}

rules! {
    PDPTES {
        Answer::Exit(2), "With PAE paging and EPT, reserved bits of the present PDPTEs in the guest-state area must be 0"
            => "PDPTE", |c| {
                pae(c);
                c.vmwrite(Field::GuestPdpte2, 1 | 1 << 1);
            };
        Answer::Exit(2), "With PAE paging and EPT, bits of the present PDPTEs beyond the physical-address width must be 0"
            => "PDPTE", |c| {
                pae(c);
                c.vmwrite(Field::GuestPdpte0, 1 | 1 << 46);
            };
        Answer::Exit(2), "With PAE paging and without EPT, reserved bits of the present PDPTEs in memory at CR3 must be 0"
            => "PDPTE", |c| {
                pae(c);
                restricted(c, &[(Field::GuestCr3, 0x2020)]);
                toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT);
                c.memory.page(silicon_memory::HostPhysical(0x2000)).unwrap().0.store(0x38, 0x7021_u64);
            };
    }
}

#[test]
fn what_fits_the_rules_enters() {
    for changes in [
        &[blocking(MOV_SS), STEP, BTF][..],
        &[blocking(MOV_SS), STEP, BS],
        &[state(activity::HLT), OPEN, EXTERNAL],
        &[state(activity::HLT), NMI],
        &[state(activity::SHUTDOWN), NMI],
        &[state(activity::WAIT_FOR_SIPI)],
    ] {
        let mut core = crate::vmx::testing::guest();
        set(&mut core, changes);
        assert!(core.vmlaunch().is_ok(), "{changes:x?}");
    }
    let mut core = crate::vmx::testing::guest();
    link_to(&mut core, REVISION);
    assert!(core.vmlaunch().is_ok());
}

#[test]
fn pdptes_come_from_memory_without_ept() {
    let mut core = crate::vmx::testing::guest();
    pae(&mut core);
    core.vmwrite(Field::SecondaryControls, 0);
    set(&mut core, &[(Field::GuestCr4, cr4::VMXE | cr4::PAE), (Field::GuestCr3, 0x2020), (Field::GuestPdpte1, 0x1e7)]);
    core.memory.page(silicon_memory::HostPhysical(0x2000)).unwrap().0.store(0x28, 0x7001_u64);
    assert!(core.vmlaunch().is_ok());
    assert_eq!(core.vmx.pdptes, [0, 0x7001, 0, 0]);
}
