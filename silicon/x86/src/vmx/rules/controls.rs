//! Checks on control fields ("Checks on VMX Controls").

use x86_defs::control::cr0;
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{entry, exit, interruption, pin, primary, secondary};

use super::{CONTROLS, real, rules, set, toggle};
use crate::Core;
use crate::vmx::capability;

const VALID: u64 = interruption::VALID as u64;
const CODE: u64 = interruption::DELIVER_ERROR_CODE as u64;
/// Beyond the physical address width.
const FAR: u64 = 1 << 46;

fn event(kind: u32, vector: u64) -> u64 {
    VALID | u64::from(kind) | vector
}

fn inject(core: &mut Core, information: u64) {
    core.vmwrite(Field::EntryInterruptionInformation, information);
}

fn with_primary(core: &mut Core, bits: u32, changes: &[(Field, u64)]) {
    toggle(core, Field::PrimaryControls, bits);
    set(core, changes);
}

fn with_secondary(core: &mut Core, bits: u32, changes: &[(Field, u64)]) {
    toggle(core, Field::SecondaryControls, bits);
    set(core, changes);
}

/// A guest with a TPR shadow, virtual-interrupt delivery and posted interrupts.
fn posted(core: &mut Core, changes: &[(Field, u64)]) {
    toggle(core, Field::PinBasedControls, pin::EXTERNAL_INTERRUPT_EXITING | pin::POSTED_INTERRUPTS);
    toggle(core, Field::PrimaryControls, primary::USE_TPR_SHADOW);
    toggle(core, Field::SecondaryControls, secondary::VIRTUAL_INTERRUPT_DELIVERY);
    toggle(core, Field::ExitControls, exit::ACKNOWLEDGE_INTERRUPT);
    set(core, &[(Field::VirtualApicAddress, 0x7000), (Field::PostedInterruptDescriptor, 0x8040)]);
    set(core, changes);
}

/// Sets a control of [`Field::SecondaryControls`] that may not be there; then the rule about reserved bits answers.
fn optional(core: &mut Core, control: u32, changes: &[(Field, u64)]) {
    let there = capability::secondary(&core.model).one & control != 0;
    with_secondary(core, if there { control } else { 1 << 31 }, changes);
}

rules! {
    EXECUTION {
        CONTROLS, "Reserved bits in the pin-based VM-execution controls must be set properly (default1)"
            => "pin-based", |c| toggle(c, Field::PinBasedControls, 1_u32 << 1);
        CONTROLS, "Reserved bits in the pin-based VM-execution controls must be set properly (not supported)"
            => "pin-based", |c| toggle(c, Field::PinBasedControls, 1_u32 << 8);
        CONTROLS, "Reserved bits in the primary processor-based VM-execution controls must be set properly (default1)"
            => "primary", |c| toggle(c, Field::PrimaryControls, 1_u32 << 1);
        CONTROLS, "Reserved bits in the primary processor-based VM-execution controls must be set properly (not supported)"
            => "primary", |c| toggle(c, Field::PrimaryControls, 1_u32);
        CONTROLS, "If \"activate secondary controls\" is 1, reserved bits in the secondary controls must be cleared"
            => "secondary", |c| toggle(c, Field::SecondaryControls, secondary::VMCS_SHADOWING);
        CONTROLS, "The CR3-target count must not be greater than 4"
            => "CR3-target", |c| c.vmwrite(Field::Cr3TargetCount, 5);
        CONTROLS, "If \"use I/O bitmaps\" is 1, bits 11:0 of the address of I/O bitmap A must be 0"
            => "bitmap A", |c| with_primary(c, primary::USE_IO_BITMAPS, &[(Field::IoBitmapA, 0x1008)]);
        CONTROLS, "If \"use I/O bitmaps\" is 1, the address of I/O bitmap A must not exceed the physical-address width"
            => "bitmap A", |c| with_primary(c, primary::USE_IO_BITMAPS, &[(Field::IoBitmapA, FAR)]);
        CONTROLS, "If \"use I/O bitmaps\" is 1, bits 11:0 of the address of I/O bitmap B must be 0"
            => "bitmap B", |c| with_primary(c, primary::USE_IO_BITMAPS, &[(Field::IoBitmapB, 0x1008)]);
        CONTROLS, "If \"use I/O bitmaps\" is 1, the address of I/O bitmap B must not exceed the physical-address width"
            => "bitmap B", |c| with_primary(c, primary::USE_IO_BITMAPS, &[(Field::IoBitmapB, FAR)]);
        CONTROLS, "If \"use MSR bitmaps\" is 1, bits 11:0 of the MSR-bitmap address must be 0"
            => "MSR bitmaps", |c| with_primary(c, primary::USE_MSR_BITMAPS, &[(Field::MsrBitmaps, 0x1008)]);
        CONTROLS, "If \"use MSR bitmaps\" is 1, the MSR-bitmap address must not exceed the physical-address width"
            => "MSR bitmaps", |c| with_primary(c, primary::USE_MSR_BITMAPS, &[(Field::MsrBitmaps, FAR)]);
        CONTROLS, "If \"NMI exiting\" is 0, \"virtual NMIs\" must be 0"
            => "virtual NMIs without", |c| toggle(c, Field::PinBasedControls, pin::VIRTUAL_NMIS);
        CONTROLS, "If \"virtual NMIs\" is 0, \"NMI-window exiting\" must be 0"
            => "NMI-window", |c| toggle(c, Field::PrimaryControls, primary::NMI_WINDOW_EXITING);
        CONTROLS, "If \"use TSC scaling\" is 1, the TSC multiplier must not be 0"
            => "TSC multiplier", |c| with_secondary(c, secondary::USE_TSC_SCALING, &[]);
    }
}

rules! {
    APIC {
        CONTROLS, "If \"use TPR shadow\" is 1, bits 11:0 of the virtual-APIC address must be 0"
            => "virtual-APIC address", |c| with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x10)]);
        CONTROLS, "If \"use TPR shadow\" is 1, the virtual-APIC address must not exceed the physical-address width"
            => "virtual-APIC address", |c| with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, FAR)]);
        CONTROLS, "If \"use TPR shadow\" is 1 and \"virtual-interrupt delivery\" is 0, bits 31:4 of the TPR threshold must be 0"
            => "TPR threshold: a reserved", |c| {
                with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x7000), (Field::TprThreshold, 16)]);
            };
        CONTROLS, "If \"use TPR shadow\" is 1 and \"virtualize APIC accesses\" and \"virtual-interrupt delivery\" are 0, bits \
            3:0 of the TPR threshold must not be greater than bits 7:4 of VTPR"
            => "above the class", |c| {
                with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x7000), (Field::TprThreshold, 1)]);
            };
        CONTROLS, "If \"use TPR shadow\" is 0, \"virtualize x2APIC mode\" must be 0"
            => "x2APIC mode without", |c| with_secondary(c, secondary::VIRTUALIZE_X2APIC_MODE, &[]);
        CONTROLS, "If \"use TPR shadow\" is 0, \"APIC-register virtualization\" must be 0"
            => "APIC-register", |c| with_secondary(c, secondary::APIC_REGISTER_VIRTUALIZATION, &[]);
        CONTROLS, "If \"use TPR shadow\" is 0, \"virtual-interrupt delivery\" must be 0"
            => "delivery without TPR", |c| with_secondary(c, secondary::VIRTUAL_INTERRUPT_DELIVERY, &[]);
        CONTROLS, "If \"virtualize APIC accesses\" is 1, bits 11:0 of the APIC-access address must be 0"
            => "APIC-access", |c| with_secondary(c, secondary::VIRTUALIZE_APIC_ACCESSES, &[(Field::ApicAccessAddress, 0x10)]);
        CONTROLS, "If \"virtualize APIC accesses\" is 1, the APIC-access address must not exceed the physical-address width"
            => "APIC-access", |c| with_secondary(c, secondary::VIRTUALIZE_APIC_ACCESSES, &[(Field::ApicAccessAddress, FAR)]);
        CONTROLS, "If \"virtualize x2APIC mode\" is 1, \"virtualize APIC accesses\" must be 0"
            => "in virtual x2APIC", |c| {
                with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x7000)]);
                with_secondary(c, secondary::VIRTUALIZE_APIC_ACCESSES | secondary::VIRTUALIZE_X2APIC_MODE, &[]);
            };
        CONTROLS, "If \"virtual-interrupt delivery\" is 1, \"external-interrupt exiting\" must be 1"
            => "without external-interrupt", |c| {
                with_primary(c, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x7000)]);
                with_secondary(c, secondary::VIRTUAL_INTERRUPT_DELIVERY, &[]);
            };
        CONTROLS, "If \"process posted interrupts\" is 1, \"virtual-interrupt delivery\" must be 1"
            => "without virtual-interrupt", |c| {
                posted(c, &[]);
                toggle(c, Field::SecondaryControls, secondary::VIRTUAL_INTERRUPT_DELIVERY);
            };
        CONTROLS, "If \"process posted interrupts\" is 1, \"acknowledge interrupt on exit\" must be 1"
            => "without acknowledge", |c| {
                posted(c, &[]);
                toggle(c, Field::ExitControls, exit::ACKNOWLEDGE_INTERRUPT);
            };
        CONTROLS, "If \"process posted interrupts\" is 1, bits 15:8 of the notification vector must be 0"
            => "vector above", |c| posted(c, &[(Field::PostedInterruptNotificationVector, 0x100)]);
        CONTROLS, "If \"process posted interrupts\" is 1, bits 5:0 of the posted-interrupt descriptor address must be 0"
            => "not aligned", |c| posted(c, &[(Field::PostedInterruptDescriptor, 0x8020)]);
        CONTROLS, "If \"process posted interrupts\" is 1, the posted-interrupt descriptor address must not exceed the \
            physical-address width"
            => "descriptor beyond", |c| posted(c, &[(Field::PostedInterruptDescriptor, FAR)]);
    }
}

rules! {
    TRANSLATION {
        CONTROLS, "If \"enable VPID\" is 1, the VPID must not be 0000H"
            => "VPID 0", |c| with_secondary(c, secondary::ENABLE_VPID, &[]);
        CONTROLS, "If \"enable EPT\" is 1, the EPT memory type must be one that IA32_VMX_EPT_VPID_CAP supports"
            => "memory type", |c| c.vmwrite(Field::EptPointer, 0x1000 | 1 | 3 << 3);
        CONTROLS, "If \"enable EPT\" is 1, bits 5:3 of the EPTP must be 1 less than a supported page-walk length"
            => "walk length", |c| c.vmwrite(Field::EptPointer, 0x1000 | 6 | 2 << 3);
        CONTROLS, "If \"enable EPT\" is 1, reserved bits 11:8 of the EPTP must be 0"
            => "EPTP: a reserved", |c| c.vmwrite(Field::EptPointer, 0x1000 | 6 | 3 << 3 | 1 << 8);
        CONTROLS, "If \"enable EPT\" is 1, the EPTP must not exceed the physical-address width"
            => "EPTP: a reserved", |c| c.vmwrite(Field::EptPointer, FAR | 6 | 3 << 3);
        CONTROLS, "If \"unrestricted guest\" is 1, \"enable EPT\" must be 1"
            => "without EPT", |c| toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT);
        CONTROLS, "If \"enable PML\" is 1, bits 11:0 of the PML address must be 0"
            => "", |c| optional(c, secondary::ENABLE_PML, &[(Field::PmlAddress, 0x10)]);
        CONTROLS, "If \"enable PML\" is 1, the PML address must not exceed the physical-address width"
            => "", |c| optional(c, secondary::ENABLE_PML, &[(Field::PmlAddress, FAR)]);
        CONTROLS, "If \"enable PML\" is 1, \"enable EPT\" must be 1"
            => "", |c| {
                optional(c, secondary::ENABLE_PML, &[(Field::PmlAddress, 0x7000)]);
                toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST);
            };
        CONTROLS, "If \"mode-based execute control for EPT\" is 1, \"enable EPT\" must be 1"
            => "", |c| {
                optional(c, secondary::MODE_BASED_EXECUTE, &[]);
                toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST);
            };
        CONTROLS, "If \"enable VM functions\" is 1, reserved bits in the VM-function controls must be clear"
            => "VM-function controls", |c| with_secondary(c, secondary::ENABLE_VM_FUNCTIONS, &[(Field::VmFunctionControls, 2)]);
        CONTROLS, "If \"EPTP switching\" is 1, \"enable EPT\" must be 1"
            => "switching without", |c| {
                with_secondary(c, secondary::ENABLE_VM_FUNCTIONS, &[(Field::VmFunctionControls, 1)]);
                toggle(c, Field::SecondaryControls, secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST);
            };
        CONTROLS, "If \"EPTP switching\" is 1, bits 11:0 of the EPTP-list address must be 0"
            => "EPTP list", |c| {
                set(c, &[(Field::VmFunctionControls, 1), (Field::EptpListAddress, 8)]);
                with_secondary(c, secondary::ENABLE_VM_FUNCTIONS, &[]);
            };
        CONTROLS, "If \"EPTP switching\" is 1, the EPTP-list address must not exceed the physical-address width"
            => "EPTP list", |c| {
                set(c, &[(Field::VmFunctionControls, 1), (Field::EptpListAddress, FAR)]);
                with_secondary(c, secondary::ENABLE_VM_FUNCTIONS, &[]);
            };
        CONTROLS, "If \"EPT-violation #VE\" is 1, bits 11:0 of the virtualization-exception information address must be 0"
            => "exception information", |c| {
                with_secondary(c, secondary::EPT_VIOLATION_VE, &[(Field::VirtualizationExceptionInformation, 8)]);
            };
        CONTROLS, "If \"EPT-violation #VE\" is 1, the virtualization-exception information address must not exceed the \
            physical-address width"
            => "exception information", |c| {
                with_secondary(c, secondary::EPT_VIOLATION_VE, &[(Field::VirtualizationExceptionInformation, FAR)]);
            };
    }
}

rules! {
    EXIT {
        CONTROLS, "Reserved bits in the VM-exit controls must be set properly (default1)"
            => "VM-exit controls", |c| toggle(c, Field::ExitControls, 1_u32);
        CONTROLS, "Reserved bits in the VM-exit controls must be set properly (not supported)"
            => "VM-exit controls", |c| toggle(c, Field::ExitControls, exit::LOAD_PERF_GLOBAL_CTRL);
        CONTROLS, "If \"activate VMX-preemption timer\" is 0, \"save VMX-preemption timer value\" must be 0"
            => "without the timer", |c| toggle(c, Field::ExitControls, exit::SAVE_PREEMPTION_TIMER);
        CONTROLS, "If the VM-exit MSR-store count is not 0, bits 3:0 of the VM-exit MSR-store address must be 0"
            => "MSR-store area", |c| set(c, &[(Field::ExitMsrStoreCount, 1), (Field::ExitMsrStoreAddress, 8)]);
        CONTROLS, "If the VM-exit MSR-store count is not 0, the last byte of the area must not exceed the physical-address width"
            => "MSR-store area", |c| set(c, &[(Field::ExitMsrStoreCount, 2), (Field::ExitMsrStoreAddress, FAR - 16)]);
        CONTROLS, "If the VM-exit MSR-load count is not 0, bits 3:0 of the VM-exit MSR-load address must be 0"
            => "VM-exit MSR-load area", |c| set(c, &[(Field::ExitMsrLoadCount, 1), (Field::ExitMsrLoadAddress, 8)]);
        CONTROLS, "If the VM-exit MSR-load count is not 0, the last byte of the area must not exceed the physical-address width"
            => "VM-exit MSR-load area", |c| set(c, &[(Field::ExitMsrLoadCount, 2), (Field::ExitMsrLoadAddress, FAR - 16)]);
    }
}

rules! {
    ENTRY {
        CONTROLS, "Reserved bits in the VM-entry controls must be set properly (default1)"
            => "VM-entry controls", |c| toggle(c, Field::EntryControls, 1_u32);
        CONTROLS, "Reserved bits in the VM-entry controls must be set properly (not supported)"
            => "VM-entry controls", |c| toggle(c, Field::EntryControls, entry::LOAD_PERF_GLOBAL_CTRL);
        CONTROLS, "Outside of SMM, \"entry to SMM\" must be 0"
            => "VM-entry controls", |c| toggle(c, Field::EntryControls, entry::ENTRY_TO_SMM);
        CONTROLS, "Outside of SMM, \"deactivate dual-monitor treatment\" must be 0"
            => "VM-entry controls", |c| toggle(c, Field::EntryControls, entry::DEACTIVATE_DUAL_MONITOR);
        CONTROLS, "Interruption type must not be 1 (reserved)"
            => "reserved type", |c| inject(c, event(1 << 8, 0));
        CONTROLS, "If the interruption type is NMI, the vector must be 2"
            => "vector", |c| inject(c, event(interruption::TYPE_NMI, 3));
        CONTROLS, "If the interruption type is hardware exception, the vector must be at most 31"
            => "vector", |c| inject(c, event(interruption::TYPE_HARDWARE_EXCEPTION, 32));
        CONTROLS, "If the interruption type is other event, the vector must be 0 (pending MTF VM exit)"
            => "vector", |c| inject(c, event(interruption::TYPE_OTHER, 1));
        CONTROLS, "The deliver-error-code bit must be 1 for a hardware exception that has an error code, in protected mode"
            => "error code", |c| inject(c, event(interruption::TYPE_HARDWARE_EXCEPTION, 14));
        CONTROLS, "The deliver-error-code bit must be 0 for a hardware exception without error code"
            => "error code", |c| inject(c, event(interruption::TYPE_HARDWARE_EXCEPTION, 6) | CODE);
        CONTROLS, "The deliver-error-code bit must be 0 for events that are no hardware exceptions"
            => "error code", |c| inject(c, event(interruption::TYPE_EXTERNAL, 0x20) | CODE);
        CONTROLS, "The deliver-error-code bit must be 0 if CR0.PE in the guest-state area is 0 and the guest is unrestricted"
            => "error code", |c| {
                real(c);
                assert_eq!(c.cr0 & cr0::PE, 0);
                inject(c, event(interruption::TYPE_HARDWARE_EXCEPTION, 13) | CODE);
            };
        CONTROLS, "Reserved bits 30:12 of the VM-entry interruption-information field must be 0"
            => "reserved bit", |c| inject(c, event(interruption::TYPE_EXTERNAL, 0x20) | 1 << 12);
        CONTROLS, "If the deliver-error-code bit is 1, bits 31:16 of the VM-entry exception error code must be 0"
            => "exception error code", |c| {
                inject(c, event(interruption::TYPE_HARDWARE_EXCEPTION, 13) | CODE);
                c.vmwrite(Field::EntryExceptionErrorCode, 1 << 16);
            };
        CONTROLS, "If a software interrupt is injected, the VM-entry instruction length must be in the range 0-15"
            => "instruction length", |c| {
                inject(c, event(interruption::TYPE_SOFTWARE_INTERRUPT, 0x80));
                c.vmwrite(Field::EntryInstructionLength, 16);
            };
        CONTROLS, "If a privileged software exception is injected, the VM-entry instruction length must be in the range 0-15"
            => "instruction length", |c| {
                inject(c, event(interruption::TYPE_PRIVILEGED_SOFTWARE_EXCEPTION, 1));
                c.vmwrite(Field::EntryInstructionLength, 16);
            };
        CONTROLS, "If a software exception is injected, the VM-entry instruction length must be in the range 0-15"
            => "instruction length", |c| {
                inject(c, event(interruption::TYPE_SOFTWARE_EXCEPTION, 3));
                c.vmwrite(Field::EntryInstructionLength, u64::from(u32::MAX));
            };
        CONTROLS, "If the VM-entry MSR-load count is not 0, bits 3:0 of the VM-entry MSR-load address must be 0"
            => "VM-entry MSR-load area", |c| set(c, &[(Field::EntryMsrLoadCount, 1), (Field::EntryMsrLoadAddress, 8)]);
        CONTROLS, "If the VM-entry MSR-load count is not 0, the last byte of the area must not exceed the physical-address width"
            => "VM-entry MSR-load area", |c| set(c, &[(Field::EntryMsrLoadCount, 2), (Field::EntryMsrLoadAddress, FAR - 16)]);
    }
}

#[test]
fn a_valid_configuration_of_posted_interrupts_enters() {
    let mut core = crate::vmx::testing::guest();
    posted(&mut core, &[(Field::PostedInterruptNotificationVector, 0xf2)]);
    assert!(core.vmlaunch().is_ok());
}

#[test]
fn secondary_controls_do_not_count_unless_activated() {
    let mut core = crate::vmx::testing::guest();
    toggle(&mut core, Field::PrimaryControls, primary::ACTIVATE_SECONDARY_CONTROLS);
    core.vmwrite(Field::SecondaryControls, u64::MAX);
    assert!(core.vmlaunch().is_ok());
}

#[test]
fn the_tpr_is_checked_at_every_entry_as_it_is_in_memory() {
    use silicon_memory::HostPhysical;
    let mut core = crate::vmx::testing::guest();
    with_primary(&mut core, primary::USE_TPR_SHADOW, &[(Field::VirtualApicAddress, 0x7000), (Field::TprThreshold, 3)]);
    let page = core.memory.page(HostPhysical(0x7000)).unwrap().0;
    page.store(0x80, 0x30_u8);
    assert!(core.vmlaunch().is_ok());
    page.store(0x80, 0x2f_u8);
    assert!(core.vmresume().is_err());
    page.store(0x80, 0x40_u8);
    assert!(core.vmresume().is_ok());
}
