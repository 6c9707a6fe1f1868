//! Checks on control fields ("Checks on VMX Controls").

use silicon_memory::{HostPhysical, PhysicalMemory};
use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::vmx::Field;
use x86_defs::vmx::capability::ept_vpid;
use x86_defs::vmx::controls::{exit, interruption, pin, primary, secondary};

use super::Vmcs;
use super::capability::{self, EPT_VPID};
use super::entry::{Checked, rule};
use crate::model::Model;

/// VTPR in the virtual-APIC page.
const VTPR: u64 = 0x80;
/// VM-function controls.
const EPTP_SWITCHING: u64 = 1;

/// The secondary controls in effect.
pub(super) fn secondary_of(vmcs: &Vmcs) -> u32 {
    let active = vmcs.get(Field::PrimaryControls) as u32 & primary::ACTIVATE_SECONDARY_CONTROLS != 0;
    if active { vmcs.get(Field::SecondaryControls) as u32 } else { 0 }
}

pub(super) fn check(vmcs: &Vmcs, model: &Model) -> Checked {
    check_execution(vmcs, model)?;
    check_apic(vmcs, model)?;
    check_vm_functions(vmcs, model)?;
    check_exit(vmcs, model)?;
    check_entry(vmcs, model)
}

/// "VM-Execution Control Fields"
fn check_execution(vmcs: &Vmcs, model: &Model) -> Checked {
    let pin = vmcs.get(Field::PinBasedControls) as u32;
    let primary = vmcs.get(Field::PrimaryControls) as u32;
    let secondary = secondary_of(vmcs);
    rule(capability::PIN.permits(pin), "pin-based controls: a reserved bit")?;
    rule(capability::PRIMARY.permits(primary), "primary processor-based controls: a reserved bit")?;
    rule(capability::secondary(model).permits(secondary), "secondary processor-based controls: a reserved bit")?;
    rule(vmcs.get(Field::Cr3TargetCount) <= capability::CR3_TARGETS, "CR3-target count above 4")?;
    if primary & primary::USE_IO_BITMAPS != 0 {
        rule(page(vmcs, Field::IoBitmapA, model), "I/O bitmap A: address not a page of the physical address space")?;
        rule(page(vmcs, Field::IoBitmapB, model), "I/O bitmap B: address not a page of the physical address space")?;
    }
    if primary & primary::USE_MSR_BITMAPS != 0 {
        rule(page(vmcs, Field::MsrBitmaps, model), "MSR bitmaps: address not a page of the physical address space")?;
    }
    rule(pin & pin::NMI_EXITING != 0 || pin & pin::VIRTUAL_NMIS == 0, "virtual NMIs without NMI exiting")?;
    rule(
        pin & pin::VIRTUAL_NMIS != 0 || primary & primary::NMI_WINDOW_EXITING == 0,
        "NMI-window exiting without virtual NMIs",
    )?;
    if secondary & secondary::ENABLE_VPID != 0 {
        rule(vmcs.get(Field::VirtualProcessorIdentifier) != 0, "VPID 0 is the host's")?;
    }
    if secondary & secondary::USE_TSC_SCALING != 0 {
        rule(vmcs.get(Field::TscMultiplier) != 0, "TSC multiplier is zero")?;
    }
    if secondary & secondary::ENABLE_EPT != 0 {
        check_eptp(vmcs.get(Field::EptPointer), model)?;
    }
    if secondary & secondary::ENABLE_PML != 0 {
        rule(secondary & secondary::ENABLE_EPT != 0, "page-modification logging without EPT")?;
        rule(page(vmcs, Field::PmlAddress, model), "PML address: not a page of the physical address space")?;
    }
    rule(
        secondary & secondary::MODE_BASED_EXECUTE == 0 || secondary & secondary::ENABLE_EPT != 0,
        "mode-based execute control without EPT",
    )?;
    rule(
        secondary & secondary::UNRESTRICTED_GUEST == 0 || secondary & secondary::ENABLE_EPT != 0,
        "unrestricted guest without EPT",
    )?;
    rule(
        secondary & secondary::MODE_BASED_EXECUTE == 0 || secondary & secondary::ENABLE_EPT != 0,
        "mode-based execute control without EPT",
    )?;
    if secondary & secondary::ENABLE_PML != 0 {
        rule(secondary & secondary::ENABLE_EPT != 0, "PML without EPT")?;
        rule(page(vmcs, Field::PmlAddress, model), "PML address not a page of the physical address space")?;
    }
    Ok(())
}

/// Rules about APIC virtualization and posted interrupts.
fn check_apic(vmcs: &Vmcs, model: &Model) -> Checked {
    let pin = vmcs.get(Field::PinBasedControls) as u32;
    let secondary = secondary_of(vmcs);
    let has = |control| secondary & control != 0;
    let interrupts = has(secondary::VIRTUAL_INTERRUPT_DELIVERY);
    if vmcs.get(Field::PrimaryControls) as u32 & primary::USE_TPR_SHADOW != 0 {
        rule(
            page(vmcs, Field::VirtualApicAddress, model),
            "virtual-APIC address not a page of the physical address space",
        )?;
        rule(interrupts || vmcs.get(Field::TprThreshold) >> 4 == 0, "TPR threshold: a reserved bit")?;
    } else {
        rule(!has(secondary::VIRTUALIZE_X2APIC_MODE), "virtual x2APIC mode without TPR shadow")?;
        rule(!has(secondary::APIC_REGISTER_VIRTUALIZATION), "APIC-register virtualization without TPR shadow")?;
        rule(!interrupts, "virtual-interrupt delivery without TPR shadow")?;
    }
    if has(secondary::VIRTUALIZE_APIC_ACCESSES) {
        rule(
            page(vmcs, Field::ApicAccessAddress, model),
            "APIC-access address not a page of the physical address space",
        )?;
        rule(!has(secondary::VIRTUALIZE_X2APIC_MODE), "virtual APIC accesses in virtual x2APIC mode")?;
    }
    rule(
        !interrupts || pin & pin::EXTERNAL_INTERRUPT_EXITING != 0,
        "virtual-interrupt delivery without external-interrupt exiting",
    )?;
    if pin & pin::POSTED_INTERRUPTS == 0 {
        return Ok(());
    }
    rule(interrupts, "posted interrupts without virtual-interrupt delivery")?;
    let acknowledges = vmcs.get(Field::ExitControls) as u32 & exit::ACKNOWLEDGE_INTERRUPT != 0;
    rule(acknowledges, "posted interrupts without acknowledge interrupt on exit")?;
    let vector = vmcs.get(Field::PostedInterruptNotificationVector);
    rule(vector <= 0xff, "posted-interrupt notification vector above 255")?;
    let descriptor = vmcs.get(Field::PostedInterruptDescriptor);
    rule(descriptor & 0x3f == 0, "posted-interrupt descriptor not aligned to 64 bytes")?;
    rule(model.is_physical(descriptor), "posted-interrupt descriptor beyond the physical address width")
}

/// The TPR threshold against the TPR shadow, which is in use.
pub(super) fn check_vtpr(vmcs: &Vmcs, memory: &PhysicalMemory) -> Checked {
    const NOT_CHECKED: u32 = secondary::VIRTUAL_INTERRUPT_DELIVERY | secondary::VIRTUALIZE_APIC_ACCESSES;
    if secondary_of(vmcs) & NOT_CHECKED != 0 {
        return Ok(());
    }
    let page = memory.page(HostPhysical(vmcs.get(Field::VirtualApicAddress)));
    let vtpr = page.map_or(0, |(frame, _)| frame.load::<u8>(VTPR));
    rule(vmcs.get(Field::TprThreshold) <= u64::from(vtpr >> 4), "TPR threshold above the class of VTPR")
}

/// Rules about VM functions and virtualization exceptions.
fn check_vm_functions(vmcs: &Vmcs, model: &Model) -> Checked {
    let secondary = secondary_of(vmcs);
    if secondary & secondary::ENABLE_VM_FUNCTIONS != 0 {
        let functions = vmcs.get(Field::VmFunctionControls);
        rule(functions & !capability::VM_FUNCTIONS == 0, "VM-function controls: a reserved bit")?;
        if functions & EPTP_SWITCHING != 0 {
            rule(secondary & secondary::ENABLE_EPT != 0, "EPTP switching without EPT")?;
            rule(
                page(vmcs, Field::EptpListAddress, model),
                "EPTP list: address not a page of the physical address space",
            )?;
        }
    }
    rule(
        secondary & secondary::EPT_VIOLATION_VE == 0 || page(vmcs, Field::VirtualizationExceptionInformation, model),
        "virtualization-exception information: address not a page of the physical address space",
    )
}

/// "Extended-Page-Table Pointer (EPTP)"
pub(super) fn check_eptp(eptp: u64, model: &Model) -> Checked {
    rule(matches!(eptp & 7, 0 | 6), "EPTP: memory type neither uncacheable nor write-back")?;
    rule((eptp >> 3) & 7 == 3, "EPTP: page-walk length not 4")?;
    rule(eptp & 1 << 6 == 0 || EPT_VPID & ept_vpid::ACCESSED_DIRTY != 0, "EPTP: accessed and dirty flags")?;
    rule(eptp & 0xf80 == 0 && model.is_physical(eptp), "EPTP: a reserved bit")
}

/// "VM-Exit Control Fields"
fn check_exit(vmcs: &Vmcs, model: &Model) -> Checked {
    let controls = vmcs.get(Field::ExitControls) as u32;
    rule(capability::exit(model).permits(controls), "VM-exit controls: a reserved bit")?;
    rule(
        controls & exit::SAVE_PREEMPTION_TIMER == 0
            || vmcs.get(Field::PinBasedControls) as u32 & pin::PREEMPTION_TIMER != 0,
        "save VMX-preemption timer value without the timer",
    )?;
    rule(
        msr_list(vmcs, Field::ExitMsrStoreCount, Field::ExitMsrStoreAddress, model),
        "VM-exit MSR-store area: address unaligned or outside of the physical address space",
    )?;
    rule(
        msr_list(vmcs, Field::ExitMsrLoadCount, Field::ExitMsrLoadAddress, model),
        "VM-exit MSR-load area: address unaligned or outside of the physical address space",
    )
}

/// "VM-Entry Control Fields", without event injection.
fn check_entry(vmcs: &Vmcs, model: &Model) -> Checked {
    let controls = vmcs.get(Field::EntryControls) as u32;
    rule(capability::entry(model).permits(controls), "VM-entry controls: a reserved bit")?;
    rule(
        msr_list(vmcs, Field::EntryMsrLoadCount, Field::EntryMsrLoadAddress, model),
        "VM-entry MSR-load area: address unaligned or outside of the physical address space",
    )
}

/// The event to inject ("VM-Entry Controls for Event Injection"); `information` has its valid bit set.
pub(super) fn check_event(vmcs: &Vmcs, information: u32, guest_cr0: u64) -> Checked {
    let kind = information & interruption::TYPE;
    let vector = (information & interruption::VECTOR) as u8;
    let delivers_code = information & interruption::DELIVER_ERROR_CODE != 0;
    rule(information & 0x7fff_f000 == 0, "VM-entry interruption information: a reserved bit")?;
    rule(kind != 1 << 8, "VM-entry interruption information: reserved type")?;
    rule(
        match kind {
            interruption::TYPE_NMI => vector == vector::NMI,
            interruption::TYPE_HARDWARE_EXCEPTION => vector <= 31,
            interruption::TYPE_OTHER => vector == 0,
            _ => true,
        },
        "VM-entry interruption information: the vector does not fit the type",
    )?;
    let unrestricted = secondary_of(vmcs) & secondary::UNRESTRICTED_GUEST != 0;
    let protected = guest_cr0 & cr0::PE != 0 || !unrestricted;
    let has_code = kind == interruption::TYPE_HARDWARE_EXCEPTION
        && protected
        && matches!(
            vector,
            vector::DF | vector::TS | vector::NP | vector::SS | vector::GP | vector::PF | vector::AC | vector::CP
        );
    rule(delivers_code == has_code, "VM-entry interruption information: error code does not fit type and vector")?;
    if delivers_code {
        let code = vmcs.get(Field::EntryExceptionErrorCode);
        rule(code >> 16 == 0, "VM-entry exception error code: a reserved bit")?;
    }
    if matches!(
        kind,
        interruption::TYPE_SOFTWARE_INTERRUPT
            | interruption::TYPE_PRIVILEGED_SOFTWARE_EXCEPTION
            | interruption::TYPE_SOFTWARE_EXCEPTION
    ) {
        rule(vmcs.get(Field::EntryInstructionLength) <= 15, "VM-entry instruction length above 15")?;
    }
    Ok(())
}

fn page(vmcs: &Vmcs, field: Field, model: &Model) -> bool {
    let address = vmcs.get(field);
    address & 0xfff == 0 && model.is_physical(address)
}

/// Whether an MSR area is empty, or aligned and wholly inside of the physical address space.
fn msr_list(vmcs: &Vmcs, count: Field, address: Field, model: &Model) -> bool {
    let (count, address) = (vmcs.get(count), vmcs.get(address));
    count == 0 || address & 0xf == 0 && address.checked_add(count * 16 - 1).is_some_and(|last| model.is_physical(last))
}
