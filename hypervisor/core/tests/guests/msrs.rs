//! MSRs as a guest meets them.

use iced_x86::code_asm::*;

use crate::case::Case;
use crate::legacy;
use crate::machine::finished;

/// Reads an MSR into a result slot.
fn read_into(c: &mut Case, slot: u64, msr: u32) {
    c.read_msr(msr);
    c.result(slot, rax);
}

#[test]
fn an_msr_that_does_not_exist_and_a_value_that_it_does_not_take_are_general_protection_faults() {
    let m = finished(|c| {
        for msr in [0x5, 0x49, 0x10b, 0x19c, 0x428, 0xc001_0015] {
            c.faulting(|c| c.read_msr(msr));
        }
        for (msr, value) in [
            (0xfe, 0x508),
            (0x179, 0),
            (0x2ff, 2),
            (0x250, 7),
            (0x201, 1),
            (0x277, 2),
            (0x400, 6),
            (0x401, 1),
            (0x48, 1 << 40),
            (0xce, 0),
            (0x1a0, 0),
            (0x140, 2),
        ] {
            c.faulting(|c| c.write_msr(msr, value));
        }
        c.write_msr(0x2ff, 0xc06);
        read_into(c, 0, 0x2ff);
        c.write_msr(0x404, 0);
        read_into(c, 1, 0x404);
        read_into(c, 2, 0x179);
        c.write_msr(0x1fc, 5);
        read_into(c, 3, 0x1fc);
        read_into(c, 4, 0x34);
    });
    assert_eq!(m.faults().len(), 18);
    assert!(m.faults().iter().all(|f| (f.vector, f.error) == (13, 0)));
    assert_eq!(m.results(), [0xc06, 0, 10 | 1 << 8 | 1 << 24, 5, 0]);
}

#[test]
fn cpuid_can_be_made_to_fault_for_user_code() {
    let m = legacy::finished(|c| {
        let cpuid = |c: &mut legacy::Legacy| emit!(c; xor(eax, eax); cpuid());
        c.user(2, cpuid);
        emit!(c; mov(ecx, 0x140); mov(eax, 1); xor(edx, edx); wrmsr());
        c.user(2, cpuid);
        // The kernel's goes on.
        cpuid(c);
        c.result(0, eax);
    });
    assert_eq!(m.faults(), [(0x30, 0), (13, 0)]);
    assert_ne!(m.result(0), 0);
}

#[test]
fn a_system_management_interrupt_is_refused_and_said_once() {
    let mut m = finished(|c| {
        c.x2apic();
        // To itself, twice: delivery mode 2.
        c.write_msr(0x830, 0x4_4200);
        c.write_msr(0x830, 0x4_4200);
        emit!(c; nop());
    });
    let notices = m.vm.take_notices();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].to_string().contains("SMI"));
}

#[test]
fn rsm_is_no_instruction_outside_of_system_management_mode() {
    let m = finished(|c| c.faulting(|c| emit!(c; db(&[0x0f, 0xaa]))));
    assert_eq!(m.faults()[0].vector, 6);
}
