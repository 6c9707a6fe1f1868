use super::{EN, T0, cold, enabled, read, write, x2apic};
use irqchip::lapic::Lint0AtReset;
use irqchip::lapic::{Effect, Lvt, Role};
use irqchip::{Features, LocalApic, MsrError, Signal, TriggerMode};

#[test]
fn reset_values_are_the_manuals() {
    let mut apic = cold(3);
    let expected = [
        (0x20, 3 << 24),
        (0x30, 0x0005_0014),
        (0x80, 0),
        (0xd0, 0),
        (0xe0, 0xffff_ffff),
        (0xf0, 0xff),
        (0x100, 0),
        (0x200, 0),
        (0x280, 0),
        (0x300, 0),
        (0x310, 0),
        (0x320, 0x1_0000),
        (0x330, 0x1_0000),
        (0x340, 0x1_0000),
        (0x350, 0x1_0000),
        (0x360, 0x1_0000),
        (0x370, 0x1_0000),
        (0x380, 0),
        (0x390, 0),
        (0x3e0, 0),
    ];
    for (offset, value) in expected {
        assert_eq!(read(&mut apic, offset), value, "{offset:#x}");
    }
}

#[test]
fn lint0_of_the_bootstrap_processor_is_open_unless_told_otherwise() {
    assert!(cold(0).accepts_extint());
    assert!(!cold(1).accepts_extint());
    let masked = LocalApic::new(0, Role::Bootstrap, Features::default(), Lint0AtReset::Masked);
    assert!(!masked.accepts_extint());
}

#[test]
fn software_disable_masks_the_local_vector_table_and_holds_the_mask() {
    let mut apic = enabled(0);
    write(&mut apic, 0x370, 0x33);
    assert_eq!(read(&mut apic, 0x370), 0x33);
    write(&mut apic, 0xf0, 0xff);
    assert_eq!(read(&mut apic, 0x370), 0x1_0033);
    write(&mut apic, 0x370, 0x44);
    assert_eq!(read(&mut apic, 0x370), 0x1_0044);
    write(&mut apic, 0xf0, 0x1ff);
    assert_eq!(read(&mut apic, 0x370), 0x1_0044, "enabling unmasks nothing");
}

#[test]
fn local_vector_table_entries_keep_the_bits_that_they_have() {
    let mut apic = enabled(0);
    for (offset, kept) in [
        (0x320, 0x7_00ff),
        (0x330, 0x1_07ff),
        (0x340, 0x1_07ff),
        (0x350, 0x1_a7ff),
        (0x360, 0x1_a7ff),
        (0x370, 0x1_00ff),
    ] {
        write(&mut apic, offset, u32::MAX);
        assert_eq!(read(&mut apic, offset), kept, "{offset:#x}");
    }
}

#[test]
fn xapic_accesses_are_aligned_and_32_bit_wide() {
    let mut apic = enabled(0);
    apic.mmio_write(0, 0x80, &[0x20], T0);
    apic.mmio_write(0, 0x81, &[0x20, 0, 0, 0], T0);
    apic.mmio_write(0, 0x80, &[0x20, 0, 0, 0, 0, 0, 0, 0], T0);
    assert_eq!(apic.tpr(), 0);
    let mut bytes = [0xaa; 2];
    apic.mmio_read(0x32, &mut bytes, T0);
    assert_eq!(bytes, [0x05, 0x00], "parts of a register can be read");
    apic.mmio_read(0x33, &mut bytes, T0);
    assert_eq!(bytes, [0, 0]);
}

#[test]
fn x2apic_registers_fault_outside_x2apic_mode() {
    let mut apic = enabled(0);
    assert!(apic.msr_read(0x802, T0).is_err());
    assert!(apic.msr_write(0, 0x808, 0, T0).is_err());
}

#[test]
fn x2apic_reads_fault_where_the_manual_says() {
    let apic = x2apic(0);
    for msr in 0x800..0x900 {
        let readable = matches!(
            msr,
            0x802 | 0x803 | 0x808 | 0x80a | 0x80d | 0x80f | 0x810..=0x828 | 0x830 | 0x832..=0x839 | 0x83e
        );
        assert_eq!(apic.msr_read(msr, T0).is_ok(), readable, "{msr:#x}");
    }
}

#[test]
fn x2apic_writes_fault_where_the_manual_says() {
    for msr in 0x800..0x900 {
        let writable = matches!(msr, 0x808 | 0x80b | 0x80f | 0x828 | 0x830 | 0x832..=0x838 | 0x83e | 0x83f);
        assert_eq!(x2apic(0).msr_write(0, msr, 0, T0).is_ok(), writable, "{msr:#x}");
    }
}

#[test]
fn x2apic_values_with_reserved_bits_fault() {
    let mut apic = x2apic(0);
    for (msr, value) in
        [(0x80b, 1), (0x828, 1), (0x808, 1 << 32), (0x830, 1 << 13), (0x830, 1 << 16), (0x830, 1 << 20), (0x83f, 0x100)]
    {
        assert!(apic.msr_write(0, msr, value, T0).is_err(), "{msr:#x} {value:#x}");
    }
}

#[test]
fn x2apic_command_is_one_64_bit_register() {
    let mut apic = x2apic(0);
    apic.msr_write(0, 0x830, 0x1234_5678_0000_0840, T0).unwrap();
    assert_eq!(apic.msr_read(0x830, T0), Ok(0x1234_5678_0000_0840));
}

#[test]
fn msrs_of_others_are_not_claimed() {
    assert_eq!(cold(0).msr_read(0x10, T0), Err(MsrError::Foreign { msr: 0x10 }));
}

#[test]
fn error_status_shows_errors_up_to_the_write_before() {
    let mut apic = enabled(0);
    assert_eq!(read(&mut apic, 0x40), 0, "a reserved register");
    assert_eq!(read(&mut apic, 0x280), 0, "not latched yet");
    write(&mut apic, 0x280, 0);
    assert_eq!(read(&mut apic, 0x280), 0x80);
    write(&mut apic, 0x280, 0);
    assert_eq!(read(&mut apic, 0x280), 0);
}

#[test]
fn an_illegal_vector_is_an_error_of_the_sender_and_of_the_receiver() {
    let mut sender = enabled(0);
    assert_eq!(write(&mut sender, 0x300, 0x0f), Effect::None);
    write(&mut sender, 0x280, 0);
    assert_eq!(read(&mut sender, 0x280), 0x20);
    let mut receiver = enabled(1);
    receiver.accept_fixed(0x0f, TriggerMode::Edge);
    write(&mut receiver, 0x280, 0);
    assert_eq!(read(&mut receiver, 0x280), 0x40);
}

#[test]
fn an_error_raises_its_interrupt_once_until_the_status_is_written() {
    let mut apic = enabled(0);
    write(&mut apic, 0x370, 0xe1);
    for (round, clear) in [false, false, true, false].into_iter().enumerate() {
        if clear {
            write(&mut apic, 0x280, 0);
        }
        read(&mut apic, 0x40);
        let expected = [1, 1, 2, 2][round];
        if let Some(vector) = apic.highest_deliverable() {
            apic.acknowledge(vector);
            write(&mut apic, 0xb0, 0);
        }
        assert_eq!(apic.accepted_by_vector()[0xe1], expected);
    }
}

#[test]
fn the_performance_entry_masks_itself_on_delivery() {
    let mut apic = enabled(0);
    write(&mut apic, 0x340, 0x400);
    assert_eq!(apic.local_interrupt(Lvt::Perf), Some(Signal::Nmi));
    assert_eq!(apic.local_interrupt(Lvt::Perf), None);
    assert_eq!(read(&mut apic, 0x340), 0x1_0400);
}

#[test]
fn the_register_page_has_the_layout_of_the_mmio_page() {
    let mut apic = enabled(2);
    apic.accept_fixed(0x41, TriggerMode::Edge);
    let page = apic.registers().to_page();
    assert_eq!(page[0x20..0x24], [0, 0, 0, 2]);
    assert_eq!(page[0x220..0x224], [2, 0, 0, 0]);
    assert_eq!(page[0x224..0x230], [0; 12]);
}

#[test]
fn a_disabled_local_apic_accepts_nothing() {
    let mut apic = enabled(1);
    apic.accept_fixed(0x40, TriggerMode::Edge);
    apic.write_apic_base(0xfee0_0000).unwrap();
    apic.accept_fixed(0x50, TriggerMode::Edge);
    assert_eq!(apic.highest_deliverable(), None);
    apic.write_apic_base(0xfee0_0000 | EN).unwrap();
    assert_eq!(apic.highest_deliverable(), Some(0x40));
}
