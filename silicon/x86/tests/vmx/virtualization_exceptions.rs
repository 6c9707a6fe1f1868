//! EPT violations that become #VE.

use x86_defs::control::{cr0, cr4};
use x86_defs::vmx::controls::{entry, secondary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{CODE, DATA, EPT_LEAVES, Guest, PAGES};

const SUPPRESS: u64 = 1 << 63;
/// MOV [rax], rcx; HLT.
const STORE: [u8; 4] = [0x48, 0x89, 0x08, 0xf4];

/// A guest that stores to a page with this EPT entry.
fn guest(ept_entry: u64) -> Guest {
    let mut guest = Guest::new(&STORE);
    guest.poke(EPT_LEAVES + (DATA >> 12) * 8, ept_entry);
    guest.secondary(secondary::EPT_VIOLATION_VE).write(Field::VirtualizationExceptionInformation, PAGES);
    guest.write(Field::EptpIndex, 0x77).gpr(0, DATA + 8);
    guest
}

#[test]
fn an_ept_violation_becomes_an_exception_of_the_guest() {
    // Not present; read-only.
    for (entry, rights) in [(0, 0), (DATA | 1 | 6 << 3, 1 << 3)] {
        let mut guest = guest(entry);
        guest.expect_vector(20);
        assert_eq!(guest.peek(PAGES), 0xffff_ffff_0000_0030, "reason and busy mark");
        assert_eq!(guest.peek(PAGES + 8) & 0x1bf, 1 << 8 | 1 << 7 | rights | 2);
        assert_eq!((guest.peek(PAGES + 16), guest.peek(PAGES + 24)), (DATA + 8, DATA + 8));
        assert_eq!(guest.peek(PAGES + 32) & 0xffff, 0x77);
        let rsp = guest.core().gpr[4];
        assert_eq!(guest.peek(rsp), CODE, "a fault");
        // The guest has not cleared the mark.
        guest.write(Field::GuestRip, CODE);
        guest.expect(R::EptViolation);
    }
}

#[test]
fn a_fetch_becomes_one_too() {
    let mut guest = guest(0);
    guest.write(Field::GuestRip, DATA);
    guest.expect_vector(20);
    assert_eq!(guest.peek(PAGES + 8) & 7, 4);
}

#[test]
fn what_suppresses_it_exits() {
    guest(SUPPRESS).expect(R::EptViolation);
    guest(DATA | 1 | 6 << 3 | SUPPRESS).expect(R::EptViolation);
    // Without the control.
    let mut plain = guest(0);
    plain.clear_bits(Field::SecondaryControls, secondary::EPT_VIOLATION_VE);
    plain.expect(R::EptViolation);
    // During the delivery of an event.
    let mut delivering = guest(0);
    delivering.write(Field::GuestRsp, DATA + 0x800).inject(2 << 8 | 2);
    delivering.expect(R::EptViolation);
    // A misconfiguration.
    guest(DATA | 2).expect(R::EptMisconfiguration);
}

#[test]
fn there_is_none_in_real_mode() {
    let mut guest = guest(0);
    guest.clear_bits(Field::EntryControls, entry::IA32E_MODE_GUEST);
    guest.write(Field::GuestCr0, cr0::NE | cr0::ET).write(Field::GuestCr4, cr4::VMXE).write(Field::GuestEfer, 0);
    guest.write(Field::GuestCsRights, 0x9b).write(Field::GuestCsLimit, 0xffff).write(Field::GuestRip, 0);
    guest.write(Field::GuestCsBase, DATA).write(Field::GuestCsSelector, (DATA >> 4) as u16 as u64);
    guest.write(Field::GuestSsRights, 0x93).write(Field::GuestSsLimit, 0xffff);
    guest.expect(R::EptViolation);
}

#[test]
fn the_exception_bitmap_applies_to_it() {
    let mut guest = guest(0);
    guest.write(Field::ExceptionBitmap, 1 << 20);
    assert_eq!(guest.expect(R::ExceptionOrNmi).interruption & 0xff, 20);
}
