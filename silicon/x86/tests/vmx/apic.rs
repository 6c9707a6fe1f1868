//! TPR shadow, the APIC-access page, virtual x2APIC mode, virtual-interrupt delivery.

use x86_defs::vmx::controls::{interruption as i, pin, primary, secondary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{APIC_ACCESS, CODE, Guest, PAGES, STACK, VAPIC};

const HLT: u8 = 0xf4;
const STI: u8 = 0xfb;
const NOP: u8 = 0x90;
/// MOV [rbx], ecx.
const STORE: [u8; 2] = [0x89, 0x0b];
/// MOV ecx, [rbx].
const LOAD: [u8; 2] = [0x8b, 0x0b];
/// MOV CR8, rcx.
const TO_CR8: [u8; 4] = [0x44, 0x0f, 0x22, 0xc1];

const READ: u64 = 0 << 12;
const WRITE: u64 = 1 << 12;
const FETCH: u64 = 2 << 12;
const DURING_DELIVERY: u64 = 3 << 12;
const GUEST_PHYSICAL: u64 = 15 << 12;

/// A guest with a TPR shadow; RBX points into the APIC-access page.
fn guest(code: &[u8], controls: u32) -> Guest {
    let mut guest = Guest::new(&[code, &[HLT]].concat());
    guest.primary(primary::USE_TPR_SHADOW).secondary(controls);
    guest.write(Field::VirtualApicAddress, VAPIC).write(Field::ApicAccessAddress, APIC_ACCESS);
    guest
}

/// Virtual-interrupt delivery.
fn interrupts(code: &[u8], more: u32) -> Guest {
    let mut guest = guest(code, secondary::VIRTUAL_INTERRUPT_DELIVERY | more);
    guest.pin(pin::EXTERNAL_INTERRUPT_EXITING);
    guest
}

fn register(guest: &Guest, offset: u64) -> u32 {
    guest.peek(VAPIC + offset) as u32
}

fn vector_is_set(guest: &Guest, base: u64, vector: u64) -> bool {
    register(guest, base + vector / 32 * 16) >> (vector % 32) & 1 != 0
}

#[test]
fn cr8_is_the_upper_half_of_the_virtual_tpr() {
    // MOV CR8, rcx; MOV rdx, CR8.
    let mut guest = guest(&[&TO_CR8[..], &[0x44, 0x0f, 0x20, 0xc2]].concat(), 0);
    guest.poke(VAPIC + 0x80, 0xffff_ffff_0000_000f);
    guest.gpr(1, 5);
    guest.expect_end();
    assert_eq!(guest.core().gpr[2], 5);
    assert_eq!(guest.peek(VAPIC + 0x80), 0xffff_ffff_0000_0050, "the rest of the four bytes is cleared");
}

#[test]
fn cr8_has_four_bits_and_exits_where_asked() {
    let mut tpr = guest(&TO_CR8, 0);
    tpr.gpr(1, 0x10);
    tpr.expect_vector(13);
    let mut tpr = guest(&TO_CR8, 0);
    tpr.primary(primary::CR8_LOAD_EXITING);
    tpr.expect(R::ControlRegisterAccess);
}

#[test]
fn a_tpr_below_the_threshold_exits_after_the_instruction() {
    let mut guest = guest(&TO_CR8, 0);
    guest.poke(VAPIC + 0x80, 0x60);
    guest.write(Field::TprThreshold, 4).gpr(1, 4);
    guest.expect_end();
    guest.write(Field::GuestRip, CODE).gpr(1, 3);
    let exit = guest.expect(R::TprBelowThreshold);
    assert_eq!((exit.qualification, exit.instruction_length), (0, 0));
    assert_eq!(guest.core().rip, CODE + 4);
}

#[test]
fn with_an_apic_access_page_the_threshold_exits_right_after_entry_and_injection() {
    let mut guest = guest(&[NOP], secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.poke(VAPIC + 0x80, 0x20);
    guest.write(Field::TprThreshold, 3);
    guest.expect(R::TprBelowThreshold);
    assert_eq!(guest.core().rip, CODE);
    guest.inject(i::TYPE_NMI | 2);
    guest.expect(R::TprBelowThreshold);
    assert_eq!(guest.core().rip, crate::guest::HANDLERS + 0x20);
}

#[test]
fn without_a_tpr_shadow_every_access_to_the_apic_access_page_exits() {
    for (code, kind) in [(LOAD, READ), (STORE, WRITE)] {
        let mut guest = guest(&code, secondary::VIRTUALIZE_APIC_ACCESSES);
        guest.clear_bits(Field::PrimaryControls, primary::USE_TPR_SHADOW);
        guest.gpr(3, APIC_ACCESS + 0x80);
        let exit = guest.expect(R::ApicAccess);
        assert_eq!((exit.qualification, exit.instruction_length), (0x80 | kind, 2));
        assert_eq!(guest.core().rip, CODE);
    }
}

#[test]
fn the_fast_look_up_does_not_know_the_apic_access_page() {
    // Filled while the page is ordinary memory; then the control is set.
    let mut guest = guest(&[LOAD, LOAD, STORE, STORE].concat(), 0);
    guest.secondary(secondary::ENABLE_VPID).write(Field::VirtualProcessorIdentifier, 1).gpr(3, APIC_ACCESS + 0x300);
    guest.expect_end();
    guest.secondary(secondary::VIRTUALIZE_APIC_ACCESSES).write(Field::GuestRip, CODE);
    assert_eq!(guest.expect(R::ApicAccess).qualification, 0x300 | READ);
    guest.write(Field::GuestRip, CODE + 4);
    assert_eq!(guest.expect(R::ApicAccess).qualification, 0x300 | WRITE);
}

#[test]
fn a_fetch_from_the_apic_access_page_exits() {
    let mut guest = guest(&[NOP], secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.write(Field::GuestRip, APIC_ACCESS + 0x80);
    assert_eq!(guest.expect(R::ApicAccess).qualification, 0x80 | FETCH);
}

#[test]
fn an_access_during_event_delivery_says_so() {
    let mut guest = guest(&[NOP], secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.open().write(Field::GuestRsp, APIC_ACCESS + 0x800).inject(0x33);
    let exit = guest.expect(R::ApicAccess);
    assert_eq!(exit.qualification >> 12 << 12, DURING_DELIVERY);
    assert_eq!(exit.idt_vectoring, i::VALID | 0x33);
}

#[test]
fn a_page_table_in_the_apic_access_page_exits_as_a_guest_physical_access() {
    let mut guest = guest(&LOAD, secondary::VIRTUALIZE_APIC_ACCESSES);
    // The page directory behind the second 2 MiB leads to a table in the APIC-access page.
    guest.poke(0x8_2008, APIC_ACCESS | 7);
    guest.gpr(3, 0x20_0000);
    assert_eq!(guest.expect(R::ApicAccess).qualification >> 12 << 12, GUEST_PHYSICAL);
}

#[test]
fn with_a_tpr_shadow_only_the_tpr_is_virtualized() {
    let mut tpr = guest(&[STORE, LOAD].concat(), secondary::VIRTUALIZE_APIC_ACCESSES);
    tpr.gpr(3, APIC_ACCESS + 0x80).gpr(1, 0xaabb_cc35);
    tpr.expect_end();
    assert_eq!(tpr.core().gpr[1], 0x35, "bytes 3:1 are cleared after the write");
    for offset in [0x20, 0x84, 0xb0, 0x300] {
        let mut guest = guest(&STORE, secondary::VIRTUALIZE_APIC_ACCESSES);
        guest.gpr(3, APIC_ACCESS + offset);
        assert_eq!(guest.expect(R::ApicAccess).qualification, offset | WRITE);
    }
}

#[test]
fn a_memory_mapped_tpr_below_the_threshold_exits_after_the_instruction() {
    let mut guest = guest(&[&STORE[..], &[NOP]].concat(), secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.poke(VAPIC + 0x80, 0x80);
    guest.write(Field::TprThreshold, 5).gpr(3, APIC_ACCESS + 0x80).gpr(1, 0x4f);
    guest.expect(R::TprBelowThreshold);
    assert_eq!(guest.core().rip, CODE + 2);
}

#[test]
fn apic_register_virtualization_reads_and_writes_the_virtual_apic_page() {
    const REGISTERS: u32 = secondary::VIRTUALIZE_APIC_ACCESSES | secondary::APIC_REGISTER_VIRTUALIZATION;
    for (offset, readable, writable) in [
        (0x20, true, true),
        (0x30, true, false),
        (0x80, true, true),
        (0x90, false, false),
        (0xa0, false, false),
        (0xd0, true, true),
        (0x100, true, false),
        (0x1f0, true, false),
        (0x270, true, false),
        (0x280, true, true),
        (0x310, true, true),
        (0x370, true, true),
        (0x380, true, true),
        (0x390, false, false),
        (0x3e0, true, true),
        (0x3f0, false, false),
        (0x400, false, false),
    ] {
        let mut read = guest(&LOAD, REGISTERS);
        read.poke(VAPIC + offset, 0x1234_5678);
        read.gpr(3, APIC_ACCESS + offset);
        if readable {
            read.expect_end();
            assert_eq!(read.core().gpr[1], 0x1234_5678, "{offset:#x}");
        } else {
            assert_eq!(read.expect(R::ApicAccess).qualification, offset | READ);
        }
        let mut write = guest(&STORE, REGISTERS);
        write.gpr(3, APIC_ACCESS + offset).gpr(1, 0x1234_5678);
        match (writable, offset) {
            (false, _) => assert_eq!(write.expect(R::ApicAccess).qualification, offset | WRITE),
            (true, 0x80) => write.expect_end(),
            (true, 0x310) => {
                write.expect_end();
                assert_eq!(register(&write, 0x310), 0x1200_0000);
            }
            (true, _) => {
                assert_eq!(write.expect(R::ApicWrite).qualification, offset);
                assert_eq!((write.core().rip, register(&write, offset)), (CODE + 2, 0x1234_5678));
            }
        }
    }
}

#[test]
fn wide_and_crossing_accesses_are_never_virtualized() {
    const REGISTERS: u32 = secondary::VIRTUALIZE_APIC_ACCESSES | secondary::APIC_REGISTER_VIRTUALIZATION;
    // MOV rcx, [rbx]; PUSH rcx.
    for (code, rbx, rsp, qualification) in [
        (&[0x48, 0x8b, 0x0b][..], APIC_ACCESS + 0x80, STACK, 0x80 | READ),
        (&LOAD, APIC_ACCESS + 0x82, STACK, 0x82 | READ),
        (&LOAD, APIC_ACCESS - 2, STACK, READ),
        (&[0x51], 0, APIC_ACCESS + 0x88, 0x80 | WRITE),
    ] {
        let mut guest = guest(code, REGISTERS);
        guest.gpr(3, rbx).write(Field::GuestRsp, rsp);
        assert_eq!(guest.expect(R::ApicAccess).qualification, qualification, "{code:x?}");
    }
}

#[test]
fn a_read_modify_write_of_the_tpr_is_virtualized() {
    // OR byte [rbx], 0x41.
    let mut guest = guest(&[0x80, 0x0b, 0x41], secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.poke(VAPIC + 0x80, 0x22);
    guest.gpr(3, APIC_ACCESS + 0x80);
    guest.expect_end();
    assert_eq!(register(&guest, 0x80), 0x63);
}

/// RDMSR, then WRMSR of what EAX and EDX hold.
fn msr(controls: u32, number: u64) -> Guest {
    let mut guest = interrupts(&[0x0f, 0x32], secondary::VIRTUALIZE_X2APIC_MODE | controls);
    guest.primary(primary::USE_MSR_BITMAPS).write(Field::MsrBitmaps, PAGES).gpr(1, number);
    guest
}

#[test]
fn virtual_x2apic_mode_reads_the_tpr_and_with_register_virtualization_all() {
    let mut tpr = msr(0, 0x808);
    tpr.poke(VAPIC + 0x80, 0x55);
    tpr.expect_end();
    assert_eq!((tpr.core().gpr[0], tpr.core().gpr[2]), (0x55, 0));
    msr(0, 0x802).expect_vector(13);
    let mut icr = msr(secondary::APIC_REGISTER_VIRTUALIZATION, 0x830);
    icr.poke(VAPIC + 0x300, 0x1234_5678_9abc_def0);
    icr.expect_end();
    assert_eq!((icr.core().gpr[0], icr.core().gpr[2]), (0x9abc_def0, 0x1234_5678));
}

#[test]
fn virtual_x2apic_mode_writes_tpr_eoi_and_self_ipi() {
    let write = |number: u64, value: u64| {
        let mut guest = interrupts(&[0x0f, 0x30], secondary::VIRTUALIZE_X2APIC_MODE);
        guest.primary(primary::USE_MSR_BITMAPS).write(Field::MsrBitmaps, PAGES);
        guest.gpr(1, number).gpr(0, value & 0xffff_ffff).gpr(2, value >> 32);
        guest
    };
    let mut tpr = write(0x808, 0x65);
    tpr.expect_end();
    assert_eq!((register(&tpr, 0x80), register(&tpr, 0xa0)), (0x65, 0x65), "VTPR and VPPR");
    let mut ipi = write(0x83f, 0x45);
    ipi.expect_end();
    assert_eq!(ipi.read(Field::GuestInterruptStatus), 0x45);
    assert!(vector_is_set(&ipi, 0x200, 0x45));
    let mut low = write(0x83f, 0x0f);
    assert_eq!(low.expect(R::ApicWrite).qualification, 0x3f0);
    for (number, value) in [(0x808, 0x100), (0x80b, 1), (0x83f, 1 << 32), (0x830, 0)] {
        write(number, value).expect_vector(13);
    }
}

#[test]
fn a_requested_interrupt_is_delivered_when_interrupts_open() {
    let mut guest = interrupts(&[NOP, STI, NOP, NOP], 0);
    guest.write(Field::GuestInterruptStatus, 0x41);
    // 0x41 and 0x35 are requested.
    guest.poke(VAPIC + 0x220, 1 << 1);
    guest.poke(VAPIC + 0x210, 1 << 21);
    guest.expect_vector(0x41);
    let pushed = guest.peek(guest.processor.core.gpr[4]);
    assert_eq!(pushed, CODE + 3, "after the shadow of STI");
    assert_eq!(guest.read(Field::GuestInterruptStatus), 0x4135);
    assert!(vector_is_set(&guest, 0x100, 0x41) && !vector_is_set(&guest, 0x200, 0x41));
    assert_eq!(register(&guest, 0xa0), 0x40);
}

#[test]
fn a_request_that_is_not_above_the_processor_priority_waits() {
    for (tpr, status, delivered) in [(0x40, 0x4f, false), (0x3f, 0x41, true), (0, 0x5041, false), (0, 0x3041, true)] {
        let mut guest = interrupts(&[NOP], 0);
        guest.poke(VAPIC + 0x80, tpr);
        guest.poke(VAPIC + 0x220, 1 << (status & 31));
        guest.open().write(Field::GuestInterruptStatus, status);
        guest.expect(R::Hlt);
        assert_eq!(guest.core().rip >= crate::guest::HANDLERS, delivered, "{tpr:#x} {status:#x}");
    }
}

#[test]
fn lowering_the_tpr_delivers_what_waits() {
    let mut guest = interrupts(&TO_CR8, 0);
    guest.poke(VAPIC + 0x80, 0xf0);
    guest.poke(VAPIC + 0x220, 1 << 1);
    guest.open().write(Field::GuestInterruptStatus, 0x41).gpr(1, 0);
    guest.expect_vector(0x41);
    assert_eq!(guest.peek(guest.processor.core.gpr[4]), CODE + 4);
}

#[test]
fn a_virtual_interrupt_wakes_a_halted_guest() {
    let mut guest = interrupts(&[NOP], 0);
    guest.poke(VAPIC + 0x220, 1 << 1);
    guest.open().write(Field::GuestInterruptStatus, 0x41).write(Field::GuestActivity, 1);
    guest.expect_vector(0x41);
}

#[test]
fn interrupt_window_exiting_keeps_virtual_interrupts_back() {
    let mut guest = interrupts(&[NOP], 0);
    guest.poke(VAPIC + 0x220, 1 << 1);
    guest.open().write(Field::GuestInterruptStatus, 0x41).primary(primary::INTERRUPT_WINDOW_EXITING);
    guest.expect(R::InterruptWindow);
    guest.clear_bits(Field::PrimaryControls, primary::INTERRUPT_WINDOW_EXITING);
    guest.expect_vector(0x41);
}

#[test]
fn a_memory_mapped_eoi_ends_the_interrupt_and_lets_the_next_in() {
    let mut guest = interrupts(&STORE, secondary::VIRTUALIZE_APIC_ACCESSES);
    guest.gpr(3, APIC_ACCESS + 0xb0).gpr(1, 0x1234);
    // In service: 0x61 and 0x41; requested: 0x52.
    guest.poke(VAPIC + 0x130, 1 << 1);
    guest.poke(VAPIC + 0x120, 1 << 1);
    guest.poke(VAPIC + 0x220, 1 << 18);
    guest.open().write(Field::GuestInterruptStatus, 0x6152);
    guest.expect_vector(0x52);
    assert_eq!(guest.read(Field::GuestInterruptStatus), 0x5200);
    assert!(!vector_is_set(&guest, 0x100, 0x61) && vector_is_set(&guest, 0x100, 0x41));
    assert_eq!(register(&guest, 0xb0), 0);
}

#[test]
fn an_eoi_exits_for_the_vectors_of_the_bitmap() {
    for (field, vector) in [(Field::EoiExitBitmap1, 0x61), (Field::EoiExitBitmap3, 0xff)] {
        let mut guest = interrupts(&STORE, secondary::VIRTUALIZE_APIC_ACCESSES);
        guest.gpr(3, APIC_ACCESS + 0xb0);
        guest.write(Field::GuestInterruptStatus, vector << 8).write(field, 1 << (vector & 63));
        assert_eq!(guest.expect(R::VirtualizedEoi).qualification, vector);
        assert_eq!(guest.core().rip, CODE + 2);
        assert_eq!(guest.read(Field::GuestInterruptStatus), 0);
    }
}

#[test]
fn an_interrupt_command_to_itself_is_a_self_ipi_and_any_other_exits() {
    for (icr, delivered) in [
        (0x0004_0045, true),
        (0x0004_4045, true),
        (0x0004_8045, false),
        (0x0004_0145, false),
        (0x0004_000f, false),
        (0x0000_0045, false),
        (0x000c_0045, false),
        (0x0004_1045, false),
    ] {
        let mut guest = interrupts(&STORE, secondary::VIRTUALIZE_APIC_ACCESSES);
        guest.open().gpr(3, APIC_ACCESS + 0x300).gpr(1, icr);
        if delivered {
            guest.expect_vector(0x45);
        } else {
            assert_eq!(guest.expect(R::ApicWrite).qualification, 0x300, "{icr:#x}");
            assert_eq!(u64::from(register(&guest, 0x300)), icr);
        }
    }
}
