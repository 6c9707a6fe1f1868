use super::{enabled, write, x2apic};
use irqchip::{DestinationMode, LocalApic, Message, Origin};

fn message(mode: DestinationMode, destination: u32, origin: Origin) -> Message {
    Message { destination_mode: mode, ..Message::from_icr(0x40, destination, origin) }
}

fn physical(apic: &LocalApic, destination: u32) -> bool {
    apic.is_destination(&message(DestinationMode::Physical, destination, Origin::Vcpu(0)))
}

fn logical(apic: &LocalApic, destination: u32) -> bool {
    apic.is_destination(&message(DestinationMode::Logical, destination, Origin::Vcpu(0)))
}

#[test]
fn physical_destinations_are_ids_and_broadcast() {
    let xapic = enabled(3);
    assert!(physical(&xapic, 3) && physical(&xapic, 0xff));
    assert!(!physical(&xapic, 4) && !physical(&xapic, 0x103));
    let x2apic = x2apic(3);
    assert!(physical(&x2apic, 3) && physical(&x2apic, u32::MAX));
    assert!(!physical(&x2apic, 0xff), "an ID like others");
}

#[test]
fn a_devices_eight_bit_broadcast_reaches_x2apic_mode() {
    let apic = x2apic(3);
    assert!(apic.is_destination(&message(DestinationMode::Physical, 0xff, Origin::Device)));
}

#[test]
fn a_processor_with_a_wide_id_hears_it_before_x2apic_mode() {
    let apic = enabled(0x103);
    assert!(physical(&apic, 0x103));
}

#[test]
fn flat_logical_destinations_are_bit_masks() {
    let mut apic = enabled(0);
    write(&mut apic, 0xd0, 0x0400_0000);
    assert!(logical(&apic, 0x04) && logical(&apic, 0x0c) && logical(&apic, 0xff));
    assert!(!logical(&apic, 0x0b) && !logical(&apic, 0));
}

#[test]
fn cluster_logical_destinations_are_a_cluster_and_a_mask() {
    let mut apic = enabled(0);
    write(&mut apic, 0xe0, 0);
    write(&mut apic, 0xd0, 0x2400_0000);
    assert!(logical(&apic, 0x24) && logical(&apic, 0x2f) && logical(&apic, 0xff));
    assert!(!logical(&apic, 0x23) && !logical(&apic, 0x34));
}

#[test]
fn x2apic_logical_destinations_are_a_cluster_and_a_mask() {
    let apic = x2apic(0x12);
    assert!(logical(&apic, 0x0001_0004) && logical(&apic, 0x0001_ffff) && logical(&apic, u32::MAX));
    assert!(!logical(&apic, 0x0001_0002) && !logical(&apic, 0x0002_0004));
}
