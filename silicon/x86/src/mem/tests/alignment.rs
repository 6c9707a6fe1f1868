use x86_defs::control::cr0;
use x86_defs::rflags;

use super::{DS, entry, fault, set_cpl};
use crate::Core;
use crate::core::test::{self, poke};
use crate::exec::run_test::run;

fn core(cpl: u32, am: bool, ac: bool) -> Core {
    let mut core = test::core();
    if am {
        core.cr0 |= cr0::AM;
    }
    core.set_rflags(rflags::FIXED | if ac { rflags::AC } else { 0 });
    set_cpl(&mut core, cpl);
    core
}

#[test]
fn misaligned_user_accesses_fault_while_am_and_ac_are_set() {
    for (cpl, am, ac, faults) in
        [(3, true, true, true), (0, true, true, false), (3, false, true, false), (3, true, false, false)]
    {
        let mut core = core(cpl, am, ac);
        for _ in 0..2 {
            assert!(core.load_linear::<u32>(0x3004, DS).is_ok());
            let done = core.load_linear::<u32>(0x3002, DS);
            if faults {
                assert_eq!(fault(&core, done), (17, 0));
                assert!(core.store_linear(0x3001, DS, 0_u16).is_err());
                assert!(core.load_linear::<u64>(0x3004, DS).is_err());
                assert!(core.load_linear::<u128>(0x3008, DS).is_err());
            } else {
                assert!(done.is_ok());
            }
            assert!(core.load_linear::<u8>(0x3003, DS).is_ok());
            assert!(core.load_linear::<u128>(0x3010, DS).is_ok());
        }
    }
}

#[test]
fn a_page_fault_and_a_protection_fault_come_before_it() {
    let mut core = core(3, true, true);
    let done = core.load_linear::<u32>(0x40_0001, DS);
    assert_eq!(fault(&core, done).0, 14);
    let done = core.load_linear::<u32>(1 << 50 | 1, DS);
    assert_eq!(fault(&core, done).0, 13);
    // The second page of an access that crosses.
    poke(&core, entry(0x4000), 0);
    let done = core.load_linear::<u32>(0x3fff, DS);
    assert_eq!(fault(&core, done).0, 14);
}

#[test]
fn operands_have_the_alignment_of_their_parts() {
    // Bytes, RDI modulo 16 at which they do not fault.
    for (bytes, allowed) in [
        (&[0xdd_u8, 0x37][..], &[0, 4, 8, 12][..]), // fnsave [rdi]
        (&[0xd9, 0x37], &[0, 4, 8, 12]),            // fnstenv [rdi]
        (&[0xdb, 0x3f], &[0, 8]),                   // fstp tbyte [rdi]
        (&[0x0f, 0x13, 0x07], &[0, 8]),             // movlps [rdi], xmm0
        (&[0x0f, 0x11, 0x07], &[0]),                // movups [rdi], xmm0
        (&[0xf3, 0x0f, 0x6f, 0x07], &[0]),          // movdqu xmm0, [rdi]
        (&[0x0f, 0xc7, 0x0f], &[0, 8]),             // cmpxchg8b [rdi]
        (&[0xf0, 0x48, 0x83, 0x07, 1], &[0, 8]),    // lock add qword [rdi], 1
        (&[0x48, 0xa5], &[0, 8]),                   // movsq
        (&[0x0f, 0xb4, 0x07], &[0, 4, 8, 12]),      // lfs eax, [rdi]
        (&[0xa4], &[0, 1, 2, 3, 4, 8, 12]),         // movsb
    ] {
        for offset in [0, 1, 2, 3, 4, 8, 12] {
            let mut core = core(3, true, true);
            core.cr4 |= x86_defs::control::cr4::OSFXSR;
            run(&mut core, &[0xdb, 0xe3]).unwrap();
            run(&mut core, &[0xd9, 0xee]).unwrap();
            (core.gpr[7], core.gpr[6]) = (0x3000 + offset, 0x5000 + offset);
            let done = run(&mut core, bytes);
            if allowed.contains(&offset) {
                assert_eq!(done, Ok(()), "{bytes:02x?} +{offset}");
            } else {
                assert_eq!(fault(&core, done), (17, 0), "{bytes:02x?} +{offset}");
            }
        }
    }
}

#[test]
fn the_stack_is_checked_and_popf_ends_it() {
    let mut core = core(3, true, true);
    core.gpr[4] = 0x8004;
    let done = run(&mut core, &[0x50]);
    assert_eq!(fault(&core, done), (17, 0));
    core.gpr[4] = 0x8000;
    poke(&core, 0x8000, 2);
    run(&mut core, &[0x9d]).unwrap();
    core.gpr[4] = 0x8004;
    assert_eq!(run(&mut core, &[0x50]), Ok(()));
}

#[test]
fn system_structures_are_exempt() {
    let mut core = core(3, true, true);
    assert!(core.load_system::<u64>(0x3001).is_ok());
}
