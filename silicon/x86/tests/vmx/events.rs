//! Interrupts, NMIs, windows, the monitor trap, injection, activity states.

use silicon_x86::vmx::Signal;
use x86_defs::vmx::controls::{activity, exit, interruptibility, interruption as i, pin, primary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{CODE, EPT_LEAVES, Guest, HANDLERS, IDT, STACK};

const HLT: u8 = 0xf4;
const NOP: u8 = 0x90;
const STI: u8 = 0xfb;

#[test]
fn an_external_interrupt_exits_and_is_acknowledged_if_the_control_says_so() {
    let mut guest = Guest::new(&[NOP, HLT]);
    guest.pin(pin::EXTERNAL_INTERRUPT_EXITING);
    guest.core().signal(Signal::External(0x51));
    assert_eq!(guest.expect(R::ExternalInterrupt).interruption & i::VALID, 0, "RFLAGS.IF does not matter");
    guest.set_bits(Field::ExitControls, exit::ACKNOWLEDGE_INTERRUPT);
    let exit = guest.expect(R::ExternalInterrupt);
    assert_eq!(exit.interruption, i::VALID | i::TYPE_EXTERNAL | 0x51);
    guest.expect_end();
}

#[test]
fn an_external_interrupt_that_does_not_exit_is_the_guests() {
    let mut guest = Guest::new(&[NOP, HLT]);
    guest.core().signal(Signal::External(0x51));
    guest.expect_end();
    guest.write(Field::GuestRip, CODE).open();
    guest.expect_vector(0x51);
}

#[test]
fn an_nmi_exits_or_is_the_guests_and_blocks() {
    let mut guest = Guest::new(&[NOP, HLT]);
    guest.core().signal(Signal::Nmi);
    guest.expect_vector(2);
    assert_eq!(guest.read(Field::GuestInterruptibility), u64::from(interruptibility::BLOCKING_BY_NMI));
    guest.core().signal(Signal::Nmi);
    guest.write(Field::GuestRip, CODE);
    guest.expect_end();

    let mut guest = Guest::new(&[NOP, HLT]);
    guest.pin(pin::NMI_EXITING);
    guest.core().signal(Signal::Nmi);
    assert_eq!(guest.expect(R::ExceptionOrNmi).interruption, i::VALID | i::TYPE_NMI | 2);
}

#[test]
fn with_virtual_nmis_the_guests_blocking_does_not_hold_off_the_hosts_nmi() {
    let mut guest = Guest::new(&[NOP, HLT]);
    guest.virtual_nmis().inject(i::TYPE_NMI | 2);
    guest.expect_vector(2);
    assert_eq!(guest.read(Field::GuestInterruptibility), u64::from(interruptibility::BLOCKING_BY_NMI));
    guest.core().signal(Signal::Nmi);
    guest.write(Field::GuestRip, CODE);
    guest.expect(R::ExceptionOrNmi);
}

#[test]
fn the_interrupt_window_opens_after_the_shadow_of_sti() {
    let mut guest = Guest::new(&[NOP, STI, NOP, HLT]);
    guest.primary(primary::INTERRUPT_WINDOW_EXITING);
    guest.expect(R::InterruptWindow);
    assert_eq!(guest.core().rip, CODE + 3);
}

#[test]
fn the_nmi_window_opens_with_iret() {
    // IRETQ.
    let mut guest = Guest::new(&[0x48, 0xcf]);
    guest.virtual_nmis().primary(primary::NMI_WINDOW_EXITING);
    guest.write(Field::GuestInterruptibility, interruptibility::BLOCKING_BY_NMI.into());
    for (at, word) in [CODE + 0x100, 8, 2, STACK, 0x10].into_iter().enumerate() {
        guest.poke(STACK - 40 + at as u64 * 8, word);
    }
    guest.write(Field::GuestRsp, STACK - 40);
    guest.expect(R::NmiWindow);
    assert_eq!(guest.core().rip, CODE + 0x100);
}

#[test]
fn iret_leaves_the_blocking_alone_where_nmis_exit_without_being_virtual() {
    for (pins, blocked) in [(0, 0), (pin::NMI_EXITING, 8), (pin::NMI_EXITING | pin::VIRTUAL_NMIS, 0)] {
        // IRETQ.
        let mut guest = Guest::new(&[0x48, 0xcf]);
        guest.write_bytes(CODE + 0x100, &[HLT]);
        guest.pin(pins).write(Field::GuestInterruptibility, interruptibility::BLOCKING_BY_NMI.into());
        for (at, word) in [CODE + 0x100, 8, 2, STACK, 0x10].into_iter().enumerate() {
            guest.poke(STACK - 40 + at as u64 * 8, word);
        }
        guest.write(Field::GuestRsp, STACK - 40);
        guest.expect_end();
        assert_eq!(guest.read(Field::GuestInterruptibility), blocked);
    }
}

#[test]
fn init_exits_and_sipi_only_a_guest_that_waits_for_it() {
    let mut guest = Guest::new(&[HLT]);
    guest.core().signal(Signal::Init);
    guest.expect(R::Init);
    guest.core().signal(Signal::Sipi(0x12));
    guest.expect_end();
    guest.write(Field::GuestActivity, activity::WAIT_FOR_SIPI.into());
    guest.pin(pin::EXTERNAL_INTERRUPT_EXITING | pin::NMI_EXITING);
    guest.core().signal(Signal::External(0x51));
    guest.core().signal(Signal::Nmi);
    assert_eq!(guest.run_for(10_000), None, "interrupts and NMIs are blocked");
    guest.core().signal(Signal::Sipi(0x12));
    assert_eq!(guest.expect(R::Sipi).qualification, 0x12);
}

#[test]
fn a_halted_guest_is_woken_by_interrupts_and_a_shut_down_one_by_nmis_only() {
    let mut guest = Guest::new(&[HLT]);
    guest.open().write(Field::GuestActivity, activity::HLT.into());
    assert_eq!(guest.run_for(10_000), None);
    guest.core().signal(Signal::External(0x51));
    guest.expect_vector(0x51);
    assert_eq!(guest.read(Field::GuestActivity), 0);

    let mut guest = Guest::new(&[HLT]);
    guest.open().pin(pin::EXTERNAL_INTERRUPT_EXITING);
    guest.write(Field::GuestActivity, activity::SHUTDOWN.into());
    guest.core().signal(Signal::External(0x51));
    assert_eq!(guest.run_for(10_000), None);
    guest.core().signal(Signal::Nmi);
    guest.expect(R::ExternalInterrupt);
    assert_eq!(guest.core().rip, HANDLERS + 2 * 16, "the NMI was delivered first");
}

#[test]
fn an_injected_event_wakes_a_halted_guest() {
    let mut guest = Guest::new(&[NOP]);
    guest.open().write(Field::GuestActivity, activity::HLT.into()).inject(i::TYPE_EXTERNAL | 0x33);
    guest.expect_vector(0x33);
    assert_eq!(guest.read(Field::GuestActivity), 0);
}

#[test]
fn every_type_of_event_is_injected() {
    for (information, code, length, pushed_rip) in [
        (i::TYPE_EXTERNAL | 0x33, None, 0, CODE),
        (i::TYPE_NMI | 2, None, 0, CODE),
        (i::TYPE_HARDWARE_EXCEPTION | 6, None, 0, CODE),
        (i::TYPE_HARDWARE_EXCEPTION | i::DELIVER_ERROR_CODE | 13, Some(0x18), 0, CODE),
        (i::TYPE_SOFTWARE_INTERRUPT | 0x80, None, 2, CODE + 2),
        (i::TYPE_SOFTWARE_INTERRUPT | 0x80, None, 0, CODE),
        (i::TYPE_PRIVILEGED_SOFTWARE_EXCEPTION | 1, None, 1, CODE + 1),
        (i::TYPE_SOFTWARE_EXCEPTION | 3, None, 1, CODE + 1),
    ] {
        let mut guest = Guest::new(&[NOP]);
        guest.open().inject(information).write(Field::EntryInstructionLength, length);
        guest.write(Field::EntryExceptionErrorCode, code.unwrap_or(0));
        guest.expect_vector(information as u8);
        let rsp = guest.core().gpr[4];
        let frame = rsp + if code.is_some() { 8 } else { 0 };
        assert_eq!(guest.peek(frame), pushed_rip, "{information:#x}");
        if let Some(code) = code {
            assert_eq!(guest.peek(rsp), code);
        }
    }
}

#[test]
fn an_exit_during_delivery_says_what_was_being_delivered() {
    // An EPT violation of the handler's stack.
    let unmap_stack = |guest: &mut Guest| guest.poke(EPT_LEAVES + ((STACK - 1) >> 12) * 8, 0);
    let mut guest = Guest::new(&[NOP]);
    unmap_stack(&mut guest);
    guest.open().inject(i::TYPE_EXTERNAL | 0x33);
    assert_eq!(guest.expect(R::EptViolation).idt_vectoring, i::VALID | i::TYPE_EXTERNAL | 0x33);
    // INT 0x33 of the guest: the instruction's length too.
    let mut guest = Guest::new(&[0xcd, 0x33]);
    unmap_stack(&mut guest);
    let exit = guest.expect(R::EptViolation);
    assert_eq!(exit.idt_vectoring, i::VALID | i::TYPE_SOFTWARE_INTERRUPT | 0x33);
    assert_eq!(exit.instruction_length, 2);
    // An exception: #GP for a gate that is not there, while #UD is delivered.
    let mut guest = Guest::new(&[0x0f, 0x0b]);
    guest.poke(IDT + 6 * 16, 0);
    guest.write(Field::ExceptionBitmap, 1 << 11 | 1 << 13);
    let exit = guest.expect(R::ExceptionOrNmi);
    assert_eq!(exit.idt_vectoring, i::VALID | i::TYPE_HARDWARE_EXCEPTION | 6);
}

#[test]
fn the_monitor_trap_follows_one_instruction() {
    let mut guest = Guest::new(&[NOP, NOP, HLT]);
    guest.primary(primary::MONITOR_TRAP_FLAG);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!(guest.core().rip, CODE + 1);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!(guest.core().rip, CODE + 2);
}

#[test]
fn the_monitor_trap_follows_the_delivery_of_an_injected_event_and_of_a_fault() {
    let mut guest = Guest::new(&[0x0f, 0x0b]);
    guest.open().primary(primary::MONITOR_TRAP_FLAG).inject(i::TYPE_EXTERNAL | 0x33);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!(guest.core().rip, HANDLERS + 0x330, "no instruction of the handler has run");
    guest.write(Field::GuestRip, CODE);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!(guest.core().rip, HANDLERS + 6 * 16, "after #UD");
}

#[test]
fn the_monitor_trap_follows_one_iteration_of_a_string_instruction() {
    // REP STOSB.
    let mut guest = Guest::new(&[0xf3, 0xaa, HLT]);
    guest.primary(primary::MONITOR_TRAP_FLAG).gpr(1, 3).gpr(7, 0x3_0000);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!((guest.core().rip, guest.core().gpr[1]), (CODE, 2));
}

#[test]
fn an_injected_monitor_trap_exits_before_the_first_instruction() {
    let mut guest = Guest::new(&[NOP, HLT]);
    guest.inject(i::TYPE_OTHER);
    guest.expect(R::MonitorTrapFlag);
    assert_eq!(guest.core().rip, CODE);
    guest.expect_end();
}

#[test]
fn exceptions_exit_by_the_bitmap() {
    // UD2.
    let mut guest = Guest::new(&[0x0f, 0x0b]);
    guest.write(Field::ExceptionBitmap, 1 << 6);
    assert_eq!(guest.expect(R::ExceptionOrNmi).interruption, i::VALID | i::TYPE_HARDWARE_EXCEPTION | 6);
    assert_eq!(guest.core().rip, CODE);
}
