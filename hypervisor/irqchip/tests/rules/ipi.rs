use super::{T0, enabled, x2apic};
use irqchip::lapic::Effect;
use irqchip::{LocalApic, Message, Origin, Signal, VcpuSignal, deliver};

/// Send from vCPU 1 of three with IDs 10, 11, 12; who got what.
fn send(apics: &mut [LocalApic], command: u32, destination: u32) -> Vec<(usize, Signal)> {
    let mut signals = Vec::new();
    let message = Message::from_icr(command, destination, Origin::Vcpu(1));
    deliver(&message, apics, &mut signals);
    signals.into_iter().map(|VcpuSignal { vcpu, signal }| (vcpu, signal)).collect()
}

fn three() -> Vec<LocalApic> {
    [10, 11, 12].map(enabled).into()
}

#[test]
fn shorthands_select_around_the_sender() {
    let fixed = |vcpus: &[usize]| vcpus.iter().map(|v| (*v, Signal::Fixed)).collect::<Vec<_>>();
    assert_eq!(send(&mut three(), 0x4_0040, 0), fixed(&[1]));
    assert_eq!(send(&mut three(), 0x8_0040, 0), fixed(&[0, 1, 2]));
    assert_eq!(send(&mut three(), 0xc_0040, 0), fixed(&[0, 2]));
    assert_eq!(send(&mut three(), 0x0_0040, 12), fixed(&[2]));
    assert_eq!(send(&mut three(), 0x0_0040, 99), fixed(&[]));
}

#[test]
fn each_delivery_mode_has_its_signal() {
    for (mode, signal) in [
        (0, Some(Signal::Fixed)),
        (1, Some(Signal::Fixed)),
        (2, Some(Signal::Smi)),
        (3, None),
        (4, Some(Signal::Nmi)),
        (5, Some(Signal::Init)),
        (6, Some(Signal::Sipi(0x9a))),
        (7, Some(Signal::ExtInt)),
    ] {
        let mut apics = three();
        let got = send(&mut apics, mode << 8 | 0x9a, 12);
        assert_eq!(got, signal.map(|signal| (2, signal)).into_iter().collect::<Vec<_>>());
        assert_eq!(apics[2].requested(0x9a), signal == Some(Signal::Fixed));
    }
}

#[test]
fn init_level_deassert_does_nothing() {
    assert_eq!(send(&mut three(), 0x8500, 12), []);
    assert_eq!(send(&mut three(), 0xc500, 12), [(2, Signal::Init)]);
}

#[test]
fn init_start_up_and_nmi_reach_a_local_apic_disabled_by_software() {
    let mut apics = vec![super::cold(10), super::cold(11)];
    assert_eq!(send(&mut apics, 0x500, 10), [(0, Signal::Init)]);
    assert_eq!(send(&mut apics, 0x608, 10), [(0, Signal::Sipi(8))]);
    assert_eq!(send(&mut apics, 0x400, 10), [(0, Signal::Nmi)]);
    assert_eq!(send(&mut apics, 0x040, 10), []);
}

#[test]
fn nothing_reaches_a_local_apic_disabled_by_hardware() {
    let mut apics = three();
    apics[2].write_apic_base(0xfee0_0000).unwrap();
    assert_eq!(send(&mut apics, 0x500, 12), []);
    assert_eq!(send(&mut apics, 0x8_0400, 0), [(0, Signal::Nmi), (1, Signal::Nmi)]);
}

#[test]
fn lowest_priority_picks_one_enabled_destination_by_the_vector() {
    let pick = |apics: &mut [LocalApic], vector: u32| send(apics, 0x100 | vector, 0xff);
    let mut apics = three();
    assert_eq!(pick(&mut apics, 0x41), [(0x41 % 3, Signal::Fixed)]);
    assert_eq!(pick(&mut apics, 0x42), [(0x42 % 3, Signal::Fixed)]);
    super::write(&mut apics[0], 0xf0, 0xff);
    assert_eq!(pick(&mut apics, 0x50), [(1, Signal::Fixed)]);
    assert_eq!(pick(&mut apics, 0x51), [(2, Signal::Fixed)]);
}

#[test]
fn a_refused_vector_whose_error_interrupts_wakes_the_receiver() {
    let mut apics = three();
    super::write(&mut apics[2], 0x370, 0xe1);
    assert_eq!(send(&mut apics, 0x05, 12), [(2, Signal::Fixed)]);
    assert_eq!(apics[2].highest_deliverable(), Some(0xe1));
}

#[test]
fn the_command_register_gives_the_message_of_its_mode() {
    let mut xapic = enabled(0);
    super::write(&mut xapic, 0x310, 0x0500_0000);
    let effect = super::write(&mut xapic, 0x300, 0x40);
    assert_eq!(effect, Effect::Ipi(Message::from_icr(0x40, 5, Origin::Vcpu(0))));
    assert_eq!(super::read(&mut xapic, 0x300), 0x40);
    let mut wide = x2apic(0);
    let effect = wide.msr_write(7, 0x830, 0x1_0005_0000_0040, T0).unwrap();
    assert_eq!(effect, Effect::Ipi(Message::from_icr(0x40, 0x1_0005, Origin::Vcpu(7))));
}

#[test]
fn the_self_ipi_register_interrupts_its_own() {
    let mut apics = vec![x2apic(10), x2apic(11)];
    let Ok(Effect::Ipi(message)) = apics[1].msr_write(1, 0x83f, 0x77, T0) else {
        panic!("no message");
    };
    let mut signals = Vec::new();
    deliver(&message, &mut apics, &mut signals);
    assert!(apics[1].requested(0x77) && !apics[0].requested(0x77));
}
