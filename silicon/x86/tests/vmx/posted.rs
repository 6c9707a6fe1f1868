//! Posted interrupts.

use silicon_x86::vmx::Signal;
use x86_defs::vmx::controls::{exit, pin, primary, secondary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{Guest, POSTED, VAPIC};

const NOTIFICATION: u8 = 0xf2;
const OUTSTANDING: u64 = 1;

fn guest() -> Guest {
    let mut guest = Guest::new(&[0x90, 0xf4]);
    guest.pin(pin::EXTERNAL_INTERRUPT_EXITING | pin::POSTED_INTERRUPTS);
    guest.primary(primary::USE_TPR_SHADOW).secondary(secondary::VIRTUAL_INTERRUPT_DELIVERY);
    guest.set_bits(Field::ExitControls, exit::ACKNOWLEDGE_INTERRUPT);
    guest.write(Field::VirtualApicAddress, VAPIC);
    guest.write(Field::PostedInterruptDescriptor, POSTED);
    guest.write(Field::PostedInterruptNotificationVector, NOTIFICATION.into());
    guest
}

#[test]
fn the_notification_vector_delivers_what_is_posted_without_an_exit() {
    let mut guest = guest();
    // Requests 0x41 and 0x93; a notification is outstanding, and the rest of its word stays.
    guest.poke(POSTED + 8, 1 << 1);
    guest.poke(POSTED + 16, 1 << 19);
    guest.poke(POSTED + 32, 0xabcd_0000 | OUTSTANDING);
    guest.open().core().signal(Signal::External(NOTIFICATION));
    guest.expect_vector(0x93);
    assert_eq!(guest.read(Field::GuestInterruptStatus), 0x9341);
    assert_eq!((guest.peek(POSTED + 8), guest.peek(POSTED + 16)), (0, 0));
    assert_eq!(guest.peek(POSTED + 32), 0xabcd_0000);
    assert_eq!(guest.peek(VAPIC + 0x220) as u32, 2, "0x41 is requested");
}

#[test]
fn other_vectors_exit() {
    let mut guest = guest();
    guest.core().signal(Signal::External(0x51));
    assert_eq!(guest.expect(R::ExternalInterrupt).interruption & 0xff, 0x51);
}

#[test]
fn what_is_posted_for_a_guest_with_closed_interrupts_is_requested_only() {
    let mut guest = guest();
    guest.poke(POSTED + 8, 1 << 1);
    guest.core().signal(Signal::External(NOTIFICATION));
    guest.expect_end();
    assert_eq!(guest.read(Field::GuestInterruptStatus), 0x41);
}

#[test]
fn a_notification_wakes_a_halted_guest() {
    let mut guest = guest();
    guest.poke(POSTED + 8, 1 << 1);
    guest.open().write(Field::GuestActivity, 1).core().signal(Signal::External(NOTIFICATION));
    guest.expect_vector(0x41);
}
