use super::{EN, EXTD};
use irqchip::{
    Claim, EoiBroadcast, Features, IrqStatus, Irqchip, IrqchipConfig, Level, Lvt, Msi, MsiDestination, MsiError, Now,
    PendingInterrupt, PitReinjection, PvEoiFlag, Route, Routing, SetIrqError, Signal, TimerDeadline, VcpuSignal,
};

const T0: Now = super::T0;
const IOAPIC: u64 = 0xfec0_0000;
const LAPIC: u64 = 0xfee0_0000;

/// With all local APICs enabled, and the 8259 pair masked.
fn irqchip(vcpus: u32) -> Irqchip {
    let mut irqchip = Irqchip::new(IrqchipConfig::default());
    for port in [0x21, 0xa1] {
        out(&mut irqchip, port, 0xff, T0);
    }
    for id in 0..vcpus {
        let vcpu = irqchip.add_vcpu(id);
        write(&mut irqchip, vcpu, LAPIC + 0xf0, 0x1ff);
    }
    irqchip
}

fn write(irqchip: &mut Irqchip, vcpu: usize, address: u64, value: u32) {
    assert_eq!(irqchip.mmio_write(vcpu, address, &value.to_le_bytes(), T0), Claim::Claimed);
}

fn write_ioapic(irqchip: &mut Irqchip, pin: u32, entry: u32) {
    write(irqchip, 0, IOAPIC, 0x10 + 2 * pin);
    write(irqchip, 0, IOAPIC + 0x10, entry);
}

fn out(irqchip: &mut Irqchip, port: u16, value: u8, now: Now) {
    assert_eq!(irqchip.port_write(port, &[value], now), Claim::Claimed);
}

fn open_pic(irqchip: &mut Irqchip) {
    for (port, value) in [(0x20, 0x11), (0x21, 0x30), (0x21, 4), (0x21, 1), (0x21, 0)] {
        out(irqchip, port, value, T0);
    }
}

fn start_pit(irqchip: &mut Irqchip, count: u16) {
    out(irqchip, 0x43, 0x34, T0);
    for byte in count.to_le_bytes() {
        out(irqchip, 0x40, byte, T0);
    }
}

fn end(irqchip: &mut Irqchip, vcpu: usize) {
    write(irqchip, vcpu, LAPIC + 0xb0, 0);
}

#[test]
fn a_level_line_interrupts_until_the_device_is_served() {
    let mut irqchip = irqchip(2);
    write_ioapic(&mut irqchip, 10, 0x51 | 1 << 15);
    assert_eq!(irqchip.set_irq_line(10, Level::High), Ok(IrqStatus::Delivered(1)));
    let signal = VcpuSignal { vcpu: 0, signal: Signal::Fixed };
    assert_eq!(irqchip.take_signals(), [signal]);
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x51));
    end(&mut irqchip, 0);
    assert_eq!(irqchip.take_signals(), [signal], "still asserted");
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x51));
    irqchip.set_irq_line(10, Level::Low).unwrap();
    end(&mut irqchip, 0);
    assert!(!irqchip.has_signals());
    assert_eq!(irqchip.lapic(0).accepted_by_vector()[0x51], 2);
}

fn suppressing(broadcast: EoiBroadcast) -> Irqchip {
    let features = Features { eoi_broadcast: broadcast, ..Features::default() };
    let mut irqchip = Irqchip::new(IrqchipConfig { features, ..IrqchipConfig::default() });
    for port in [0x21, 0xa1] {
        out(&mut irqchip, port, 0xff, T0);
    }
    irqchip.add_vcpu(0);
    // Enabled, spurious vector 0xff, and no broadcast of ends.
    write(&mut irqchip, 0, LAPIC + 0xf0, 0x11ff);
    irqchip
}

fn read(irqchip: &mut Irqchip, address: u64) -> u32 {
    let mut data = [0; 4];
    assert_eq!(irqchip.mmio_read(0, address, &mut data, T0), Claim::Claimed);
    u32::from_le_bytes(data)
}

#[test]
fn where_the_guest_suppresses_the_broadcast_it_ends_a_level_at_the_ioapic() {
    let mut irqchip = suppressing(EoiBroadcast::Suppressible);
    assert_eq!(read(&mut irqchip, LAPIC + 0x30), 0x0105_0014);
    assert_eq!(read(&mut irqchip, LAPIC + 0xf0), 0x11ff);
    write(&mut irqchip, 0, IOAPIC, 1);
    assert_eq!(read(&mut irqchip, IOAPIC + 0x10), 0x0017_0020);
    write_ioapic(&mut irqchip, 10, 0x51 | 1 << 15);
    write_ioapic(&mut irqchip, 11, 0x52 | 1 << 15);
    for gsi in [10, 11] {
        irqchip.set_irq_line(gsi, Level::High).unwrap();
    }
    for vector in [0x52, 0x51] {
        assert_eq!(irqchip.acknowledge_interrupt(0), Some(vector));
        end(&mut irqchip, 0);
    }
    assert!(!irqchip.lapic(0).requested(0x51) && !irqchip.lapic(0).in_service(0x51));
    assert!(irqchip.ioapic().entry(10).unwrap().remote_irr(), "the I/O APIC was not told");
    write(&mut irqchip, 0, IOAPIC + 0x40, 0x51);
    assert!(irqchip.lapic(0).requested(0x51), "still asserted, so it comes again");
    assert!(!irqchip.lapic(0).requested(0x52), "the other vector waits for its own end");
}

#[test]
fn where_the_broadcast_cannot_be_suppressed_the_bit_and_the_register_do_not_exist() {
    let mut irqchip = suppressing(EoiBroadcast::Always);
    assert_eq!(read(&mut irqchip, LAPIC + 0xf0), 0x1ff);
    write_ioapic(&mut irqchip, 10, 0x51 | 1 << 15);
    irqchip.set_irq_line(10, Level::High).unwrap();
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x51));
    write(&mut irqchip, 0, IOAPIC + 0x40, 0x51);
    assert!(irqchip.ioapic().entry(10).unwrap().remote_irr());
    end(&mut irqchip, 0);
    assert!(irqchip.lapic(0).requested(0x51));
}

#[test]
fn before_the_guest_sets_up_its_apics_the_8259_pair_interrupts_the_bootstrap_processor() {
    let mut irqchip = irqchip(2);
    open_pic(&mut irqchip);
    irqchip.set_irq_line(4, Level::High).unwrap();
    assert_eq!(irqchip.take_signals(), [VcpuSignal { vcpu: 0, signal: Signal::ExtInt }]);
    assert_eq!(irqchip.pending_interrupt(0), Some(PendingInterrupt::ExtInt));
    assert_eq!(irqchip.pending_interrupt(1), None);
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x34));
    assert_eq!(irqchip.acknowledge_interrupt(0), None);
}

#[test]
fn a_masked_lint0_shuts_the_8259_pair_out() {
    let mut irqchip = irqchip(1);
    open_pic(&mut irqchip);
    write(&mut irqchip, 0, LAPIC + 0x350, 0x1_0700);
    irqchip.set_irq_line(4, Level::High).unwrap();
    assert_eq!(irqchip.pending_interrupt(0), None);
    write(&mut irqchip, 0, LAPIC + 0x350, 0x0700);
    assert_eq!(irqchip.pending_interrupt(0), Some(PendingInterrupt::ExtInt));
}

#[test]
fn a_fixed_lint0_is_a_virtual_wire() {
    let mut irqchip = irqchip(1);
    open_pic(&mut irqchip);
    write(&mut irqchip, 0, LAPIC + 0x350, 0x40);
    irqchip.set_irq_line(4, Level::High).unwrap();
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x40));
}

#[test]
fn an_ipi_reaches_the_other_vcpu() {
    let mut irqchip = irqchip(2);
    write(&mut irqchip, 0, LAPIC + 0x310, 1 << 24);
    write(&mut irqchip, 0, LAPIC + 0x300, 0x4608);
    assert_eq!(irqchip.take_signals(), [VcpuSignal { vcpu: 1, signal: Signal::Sipi(8) }]);
}

#[test]
fn x2apic_msrs_work_per_vcpu() {
    let mut irqchip = irqchip(2);
    irqchip.msr_write(1, 0x1b, LAPIC | EN | EXTD, T0).unwrap();
    assert_eq!(irqchip.msr_read(1, 0x802, T0), Ok(1));
    assert!(irqchip.msr_read(0, 0x802, T0).is_err());
    irqchip.msr_write(1, 0x830, 0x0000_0000_0000_0055, T0).unwrap();
    assert_eq!(irqchip.pending_interrupt(0), Some(PendingInterrupt::Vector(0x55)));
}

#[test]
fn messages_are_delivered_where_they_say() {
    let mut irqchip = irqchip(3);
    let msi = Msi { address: 0xfee0_2000, data: 0x61 };
    irqchip.send_msi(msi).unwrap();
    assert_eq!(irqchip.pending_interrupt(2), Some(PendingInterrupt::Vector(0x61)));
    assert_eq!(irqchip.pending_interrupt(0), None);
}

#[test]
fn wide_message_destinations_use_the_high_half() {
    let msi = Msi { address: 0x0000_0100_fee0_2000, data: 0x61 };
    assert_eq!(msi.message(MsiDestination::Bits32).unwrap().destination, 0x102);
    assert_eq!(msi.message(MsiDestination::Bits8).unwrap().destination, 0x02);
    let reserved = Msi { address: 0x1_fee0_0000, data: 0 };
    assert_eq!(reserved.message(MsiDestination::Bits32), Err(MsiError::ReservedAddressBits { address: 0x1_fee0_0000 }));
}

#[test]
fn routes_can_be_replaced_by_messages() {
    let mut irqchip = irqchip(1);
    let msi = Msi { address: 0xfee0_0000, data: 0x62 };
    assert_eq!(irqchip.set_irq_line(24, Level::High), Err(SetIrqError::NoRoute { gsi: 24 }));
    irqchip.routing_mut().set(24, vec![Route::Msi(msi)]);
    irqchip.set_irq_line(24, Level::High).unwrap();
    irqchip.set_irq_line(24, Level::Low).unwrap();
    assert_eq!(irqchip.lapic(0).accepted_by_vector()[0x62], 1);
}

#[test]
fn default_routes_are_those_of_a_pc() {
    let routing = Routing::pc();
    assert_eq!(routing.get(0).len(), 2);
    assert_eq!(routing.get(0)[1], Route::Ioapic(2));
    assert_eq!(routing.get(9)[1], Route::Ioapic(9));
    assert_eq!(routing.get(23), [Route::Ioapic(23)]);
    assert_eq!(Routing::kvm_create_irqchip().get(0)[1], Route::Ioapic(0));
}

#[test]
fn the_8254_ticks_through_the_ioapic() {
    let mut irqchip = irqchip(1);
    write_ioapic(&mut irqchip, 2, 0x30);
    start_pit(&mut irqchip, 10_000);
    let mut ticks = 0;
    for _ in 0..5 {
        let at = irqchip.next_timer_event().unwrap();
        irqchip.advance(Now::at_ns(at));
        while ticks < 100 && irqchip.acknowledge_interrupt(0).is_some() {
            ticks += 1;
            end(&mut irqchip, 0);
        }
    }
    assert_eq!(ticks, 5);
}

#[test]
fn late_ticks_are_reinjected_or_discarded_as_told() {
    for (policy, expected) in [(PitReinjection::Reinject, 5), (PitReinjection::Discard, 1)] {
        let mut irqchip = irqchip(1);
        irqchip.set_pit_reinjection(policy);
        write_ioapic(&mut irqchip, 2, 0x30);
        start_pit(&mut irqchip, 10_000);
        for _ in 0..5 {
            let at = irqchip.next_timer_event().unwrap();
            irqchip.advance(Now::at_ns(at));
        }
        let mut ticks = 0;
        while ticks < 100 && irqchip.acknowledge_interrupt(0).is_some() {
            ticks += 1;
            end(&mut irqchip, 0);
        }
        assert_eq!(ticks, expected, "{policy:?}");
    }
}

#[test]
fn late_ticks_are_reinjected_through_the_8259_pair() {
    let mut irqchip = irqchip(1);
    open_pic(&mut irqchip);
    start_pit(&mut irqchip, 10_000);
    for _ in 0..3 {
        let at = irqchip.next_timer_event().unwrap();
        irqchip.advance(Now::at_ns(at));
    }
    let mut ticks = 0;
    while ticks < 100 && irqchip.acknowledge_interrupt(0).is_some() {
        ticks += 1;
        out(&mut irqchip, 0x20, 0x20, T0);
    }
    assert_eq!(ticks, 3);
}

#[test]
fn ticks_do_not_pile_up_while_masked() {
    let mut irqchip = irqchip(1);
    write_ioapic(&mut irqchip, 2, 0x1_0030);
    out(&mut irqchip, 0x21, 0xff, T0);
    start_pit(&mut irqchip, 10_000);
    for _ in 0..5 {
        let at = irqchip.next_timer_event().unwrap();
        irqchip.advance(Now::at_ns(at));
    }
    write_ioapic(&mut irqchip, 2, 0x30);
    let at = irqchip.next_timer_event().unwrap();
    irqchip.advance(Now::at_ns(at));
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x30));
    end(&mut irqchip, 0);
    assert_eq!(irqchip.acknowledge_interrupt(0), None);
}

#[test]
fn ticks_that_reached_nobody_do_not_stop_the_ones_after() {
    let mut irqchip = irqchip(1);
    write_ioapic(&mut irqchip, 2, 0x30);
    write(&mut irqchip, 0, IOAPIC, 0x15);
    write(&mut irqchip, 0, IOAPIC + 0x10, 99 << 24);
    start_pit(&mut irqchip, 10_000);
    let at = irqchip.next_timer_event().unwrap();
    irqchip.advance(Now::at_ns(at));
    assert_eq!(irqchip.acknowledge_interrupt(0), None);
    write(&mut irqchip, 0, IOAPIC + 0x10, 0);
    let at = irqchip.next_timer_event().unwrap();
    irqchip.advance(Now::at_ns(at));
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x30));
}

#[test]
fn the_paravirtual_end_is_not_offered_for_what_the_ioapic_waits_for() {
    let mut irqchip = irqchip(1);
    let msi = |data| Msi { address: 0xfee0_0000, data };
    write_ioapic(&mut irqchip, 10, 0x51 | 1 << 15 | 1 << 16);
    irqchip.send_msi(msi(0x51)).unwrap();
    irqchip.acknowledge_interrupt(0);
    assert!(!irqchip.pv_eoi_can_set(0));
    end(&mut irqchip, 0);
    irqchip.send_msi(msi(0x52)).unwrap();
    irqchip.acknowledge_interrupt(0);
    assert!(irqchip.pv_eoi_can_set(0));
    irqchip.lapic_mut(0).pv_eoi_set();
    irqchip.pv_eoi_clear(0, PvEoiFlag::Cleared);
    assert!(!irqchip.lapic(0).in_service(0x52));
}

#[test]
fn paravirtual_ipis_go_to_the_ids_in_the_bitmap() {
    let mut irqchip = irqchip(4);
    assert_eq!(irqchip.send_pv_ipi(0, 0b101, 1, 0x70), Ok(2));
    let hit: Vec<bool> = irqchip.lapics().iter().map(|l| l.requested(0x70)).collect();
    assert_eq!(hit, [false, true, false, true]);
    assert!(irqchip.send_pv_ipi(0, 1, 0, 0x4_0070).is_err());
}

#[test]
fn the_local_timer_signals_its_vcpu() {
    let mut irqchip = irqchip(1);
    write(&mut irqchip, 0, LAPIC + 0x320, 0x4_0040);
    irqchip.msr_write(0, 0x6e0, 77, T0).unwrap();
    assert_eq!(irqchip.lapic_timer(0), Some(TimerDeadline::Tsc(77)));
    let now = Now { vm_ns: 0, guest_tsc: 77 };
    irqchip.lapic_timer_expired(0, now);
    assert_eq!(irqchip.take_signals().len(), 1);
    assert_eq!(irqchip.acknowledge_interrupt(0), Some(0x40));
}

#[test]
fn a_local_nmi_line_signals_its_vcpu() {
    let mut irqchip = irqchip(1);
    write(&mut irqchip, 0, LAPIC + 0x360, 0x400);
    irqchip.local_interrupt(0, Lvt::Lint1);
    assert_eq!(irqchip.take_signals(), [VcpuSignal { vcpu: 0, signal: Signal::Nmi }]);
}

#[test]
fn addresses_and_ports_of_others_are_left_alone() {
    let mut irqchip = irqchip(1);
    let before = irqchip.clone();
    let mut byte = [0x5a];
    assert_eq!(irqchip.mmio_read(0, 0xfed0_0000, &mut byte, T0), Claim::Foreign);
    assert_eq!(irqchip.port_read(0x3f8, &mut byte, T0), Claim::Foreign);
    assert_eq!(irqchip.port_write(0x3f8, &[1], T0), Claim::Foreign);
    assert_eq!((byte, &irqchip), ([0x5a], &before));
}

#[test]
fn reset_brings_the_power_up_state_back() {
    let mut irqchip = irqchip(2);
    write_ioapic(&mut irqchip, 3, 0x99);
    open_pic(&mut irqchip);
    start_pit(&mut irqchip, 100);
    irqchip.reset();
    let mut fresh = Irqchip::new(IrqchipConfig::default());
    fresh.add_vcpu(0);
    fresh.add_vcpu(1);
    assert_eq!(irqchip, fresh);
}
