//! VMFUNC and EPTP switching.

use x86_defs::vmx::controls::secondary;
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{CODE, DATA, EPT_LEAVES, EPTP, Guest, PAGES};

/// VMFUNC; MOV rcx, [rbx]; HLT.
const SWITCH_AND_LOAD: [u8; 7] = [0x0f, 0x01, 0xd4, 0x48, 0x8b, 0x0b, 0xf4];
/// The tables of a second EPT.
const OTHER: u64 = 0xa_0000;
const OTHER_EPTP: u64 = OTHER | 6 | 3 << 3;

/// A guest that may switch to a second EPT, in which the page at [`DATA`] is the one behind it.
fn guest() -> Guest {
    let mut guest = Guest::new(&SWITCH_AND_LOAD);
    for level in 0..3 {
        guest.poke(OTHER + level * 0x1000, (OTHER + (level + 1) * 0x1000) | 7);
    }
    for page in 0..256 {
        guest.poke(OTHER + 0x3000 + page * 8, guest.peek(EPT_LEAVES + page * 8));
    }
    guest.poke(OTHER + 0x3000 + (DATA >> 12) * 8, (DATA + 0x1000) | 7 | 6 << 3);
    guest.poke(DATA, 1);
    guest.poke(DATA + 0x1000, 2);
    guest.poke(PAGES, EPTP);
    guest.poke(PAGES + 8, OTHER_EPTP);
    guest.secondary(secondary::ENABLE_VM_FUNCTIONS);
    guest.write(Field::VmFunctionControls, 1).write(Field::EptpListAddress, PAGES);
    guest.gpr(0, 0).gpr(3, DATA);
    guest
}

#[test]
fn eptp_switching_takes_an_entry_of_the_list_without_an_exit() {
    let mut guest = guest();
    guest.gpr(1, 1);
    guest.expect_end();
    assert_eq!(guest.core().gpr[1], 2);
    assert_eq!(guest.read(Field::EptPointer), OTHER_EPTP);
    guest.write(Field::GuestRip, CODE).gpr(1, 0);
    guest.expect_end();
    assert_eq!((guest.core().gpr[1], guest.read(Field::EptPointer)), (1, EPTP));
}

#[test]
fn what_vm_functions_do_not_offer_exits_or_is_undefined() {
    // EAX, ECX.
    for (function, index) in [(1, 0), (63, 0), (0, 512), (0, 2)] {
        let mut guest = guest();
        guest.gpr(0, function).gpr(1, index);
        let exit = guest.expect(R::Vmfunc);
        assert_eq!((exit.instruction_length, exit.qualification), (3, 0), "{function} {index}");
        assert_eq!(guest.read(Field::EptPointer), EPTP);
    }
    let mut guest = guest();
    guest.gpr(0, 64);
    guest.expect_vector(6);
    guest.write(Field::GuestRip, CODE).gpr(0, 0).gpr(1, 1).write(Field::VmFunctionControls, 0);
    guest.expect(R::Vmfunc);
}

#[test]
fn an_eptp_that_vm_entry_would_refuse_exits() {
    for bad in [EPTP ^ 6 ^ 1, OTHER_EPTP ^ 1 << 3, OTHER_EPTP | 1 << 8, 1 << 46 | 6 | 3 << 3] {
        let mut guest = guest();
        guest.poke(PAGES + 8, bad);
        guest.gpr(1, 1);
        guest.expect(R::Vmfunc);
    }
}
