use super::{APIC_BASE, EN, EXTD, T0, cold, enabled, read, x2apic};
use irqchip::{ApicMode, Features, MsrError};

#[test]
fn the_bootstrap_processor_comes_up_enabled_with_its_flag() {
    assert_eq!(cold(0).apic_base(), 0xfee0_0900);
    assert_eq!(cold(1).apic_base(), 0xfee0_0800);
}

#[test]
fn forbidden_changes_of_mode_fault_and_change_nothing() {
    let mut off = cold(1);
    off.write_apic_base(0xfee0_0000).unwrap();
    for (mut apic, value) in [
        (off, 0xfee0_0000 | EN | EXTD),
        (x2apic(1), 0xfee0_0000 | EN),
        (enabled(1), 0xfee0_0000 | EXTD),
        (x2apic(1), 0xfee0_0000 | EXTD),
    ] {
        let before = apic.clone();
        let result = apic.msr_write(0, APIC_BASE, value, T0);
        assert!(matches!(result, Err(MsrError::GeneralProtection(_))), "{value:#x}");
        assert_eq!(apic, before);
    }
}

#[test]
fn every_legal_change_of_mode_is_taken() {
    let mut apic = cold(1);
    for (value, mode) in [
        (EN | EXTD, ApicMode::X2Apic),
        (0, ApicMode::Disabled),
        (EN, ApicMode::XApic),
        (0, ApicMode::Disabled),
        (EN, ApicMode::XApic),
        (EN | EXTD, ApicMode::X2Apic),
        (EN | EXTD, ApicMode::X2Apic),
    ] {
        apic.write_apic_base(0xfee0_0000 | value).unwrap();
        assert_eq!(apic.mode(), mode);
    }
}

#[test]
fn reserved_bits_fault_and_follow_cpuid() {
    let mut apic = cold(0);
    for bit in [0, 1, 7, 9, 46, 63] {
        assert!(apic.write_apic_base(0xfee0_0800 | 1 << bit).is_err(), "{bit}");
    }
    apic.write_apic_base(0xfee0_0800 | 1 << 45).unwrap();
    apic.set_features(Features { x2apic: false, ..Features::default() });
    assert!(apic.write_apic_base(0xfee0_0800 | EXTD).is_err());
}

#[test]
fn x2apic_mode_derives_the_logical_id() {
    let apic = x2apic(0x123);
    assert_eq!(apic.msr_read(0x802, T0), Ok(0x123));
    assert_eq!(apic.msr_read(0x80d, T0), Ok(0x0012_0008));
}

#[test]
fn the_page_moves_and_is_gone_when_disabled() {
    let mut apic = enabled(0);
    apic.write_apic_base(0x1234_5800).unwrap();
    assert_eq!(apic.mmio_base(), Some(0x1234_5000));
    apic.write_apic_base(0x1234_5000).unwrap();
    assert_eq!(apic.mmio_base(), None);
    assert_eq!(read(&mut apic, 0x30), u32::MAX);
}

#[test]
fn init_keeps_the_mode_and_the_id_and_resets_the_rest() {
    let mut apic = x2apic(5);
    apic.msr_write(0, 0x808, 0x50, T0).unwrap();
    apic.init();
    assert_eq!(apic.mode(), ApicMode::X2Apic);
    assert_eq!(apic.msr_read(0x802, T0), Ok(5));
    assert_eq!(apic.msr_read(0x80d, T0), Ok(1 << 5));
    assert_eq!(apic.tpr(), 0);
    assert!(!apic.software_enabled());
    apic.reset();
    assert_eq!(apic.mode(), ApicMode::XApic);
    assert_eq!(read(&mut apic, 0x20), 5 << 24);
}
