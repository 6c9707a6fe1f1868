//! One small test a rule of the manuals, and properties over random traffic.

mod apic_base;
mod destination;
mod facade;
mod ioapic;
mod ipi;
mod pic;
mod pit;
mod priority;
mod properties;
mod registers;
mod timer;

use irqchip::lapic::{Lint0AtReset, Role};
use irqchip::{Features, LocalApic, Now};

/// IA32_APIC_BASE.
const APIC_BASE: u32 = 0x1b;
/// Bits of IA32_APIC_BASE: enabled, x2APIC mode.
const EN: u64 = 1 << 11;
const EXTD: u64 = 1 << 10;

const T0: Now = Now { vm_ns: 0, guest_tsc: 0 };

/// A local APIC as it is after power-up.
fn cold(id: u32) -> LocalApic {
    let role = if id == 0 { Role::Bootstrap } else { Role::Application };
    LocalApic::new(id, role, Features::default(), Lint0AtReset::ExtInt)
}

/// In xAPIC mode, enabled by software, spurious vector 0xff.
fn enabled(id: u32) -> LocalApic {
    let mut apic = cold(id);
    write(&mut apic, 0xf0, 0x1ff);
    apic
}

/// In x2APIC mode, enabled by software.
fn x2apic(id: u32) -> LocalApic {
    let mut apic = enabled(id);
    let base = apic.apic_base();
    apic.write_apic_base(base | EXTD).expect("a legal change of mode");
    apic
}

fn write(apic: &mut LocalApic, offset: u16, value: u32) -> irqchip::lapic::Effect {
    apic.mmio_write(0, offset, &value.to_le_bytes(), T0)
}

fn write_at(apic: &mut LocalApic, offset: u16, value: u32, vm_ns: u64) {
    apic.mmio_write(0, offset, &value.to_le_bytes(), Now::at_ns(vm_ns));
}

fn read_at(apic: &mut LocalApic, offset: u16, vm_ns: u64) -> u32 {
    let mut data = [0; 4];
    apic.mmio_read(offset, &mut data, Now::at_ns(vm_ns));
    u32::from_le_bytes(data)
}

fn read(apic: &mut LocalApic, offset: u16) -> u32 {
    read_at(apic, offset, 0)
}
