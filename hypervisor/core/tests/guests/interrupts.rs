//! When interrupts, NMIs and traps are taken, and when not.

use hypervisor::{Level, Msi};
use iced_x86::code_asm::*;
use x86_defs::vmx::ExitReason;

use crate::case::Case;
use crate::machine::{DEVICE, Ending, HEAP, Machine, RESULTS, finished};

const SELF_IPI: u32 = 0x83f;
const EOI: u32 = 0x80b;
/// Handlers append their vector here: a count, then bytes.
const ORDER: u64 = HEAP;

/// A handler that notes its vector in [`ORDER`], then does more, then ends the interrupt.
fn noting(c: &mut Case, vector: u8, more: impl FnOnce(&mut Case)) {
    c.handler(vector, |c| {
        emit!(c; mov(rax, qword_ptr(ORDER)); mov(byte_ptr(rax + ORDER as i32 + 8), i32::from(vector)); inc(qword_ptr(ORDER)));
        more(c);
        if vector != 2 {
            c.write_msr(EOI, 0);
        }
    });
}

fn order(m: &Machine) -> Vec<u8> {
    (0..m.read_u64(ORDER)).map(|i| m.read::<1>(ORDER + 8 + i)[0]).collect()
}

#[test]
fn the_highest_vector_goes_first_and_interrupts_lower_ones() {
    let m = finished(|c| {
        noting(c, 0x40, |_| {});
        noting(c, 0x51, |_| {});
        // Raises one of its own class, which waits, and one above, which does not.
        noting(c, 0x50, |c| {
            c.write_msr(SELF_IPI, 0x51);
            c.write_msr(SELF_IPI, 0x60);
            emit!(c; sti(); nop(); nop(); cli());
        });
        noting(c, 0x60, |_| {});
        c.x2apic();
        c.write_msr(SELF_IPI, 0x40);
        c.write_msr(SELF_IPI, 0x50);
        emit!(c; sti(); nop(); nop());
    });
    assert_eq!(order(&m), [0x50, 0x60, 0x51, 0x40]);
    let counts = &m.vm.statistics().vcpus[0].interrupts;
    assert_eq!(counts.iter().map(|(v, n)| (*v, *n)).collect::<Vec<_>>(), [(0x40, 1), (0x50, 1), (0x51, 1), (0x60, 1)]);
}

#[test]
fn the_task_priority_holds_interrupts_back() {
    let m = finished(|c| {
        noting(c, 0x45, |_| {});
        noting(c, 0x55, |_| {});
        c.x2apic();
        emit!(c; sti(); mov(eax, 4u32); mov(cr8, rax));
        c.write_msr(SELF_IPI, 0x45);
        c.write_msr(SELF_IPI, 0x55);
        emit!(c; nop(); mov(rax, qword_ptr(ORDER)));
        c.result(0, rax);
        emit!(c; xor(eax, eax); mov(cr8, rax); nop(); mov(rax, qword_ptr(ORDER)));
        c.result(1, rax);
    });
    assert_eq!(m.results(), [1, 2]);
    assert_eq!(order(&m), [0x55, 0x45]);
}

#[test]
fn sti_and_mov_ss_hold_interrupts_back_for_one_instruction() {
    let m = finished(|c| {
        noting(c, 0x40, |_| {});
        c.x2apic();
        c.write_msr(SELF_IPI, 0x40);
        // STI; CLI: never open.
        emit!(c; sti(); cli(); mov(rax, qword_ptr(ORDER)));
        c.result(0, rax);
        // After STI one instruction is executed, then the interrupt is taken.
        emit!(c; sti(); mov(rax, qword_ptr(ORDER)); mov(rbx, qword_ptr(ORDER)); cli());
        c.result(1, rax);
        c.result(2, rbx);
    });
    assert_eq!(m.results(), [0, 0, 1]);
}

#[test]
fn an_nmi_waits_until_the_handler_of_the_one_before_has_returned() {
    let m = finished(|c| {
        noting(c, 2, |c| {
            emit!(c; cmp(qword_ptr(ORDER), 1));
            let mut second = c.label();
            emit!(c; jne(second));
            // One more to itself, while NMIs are blocked; then proof that it has not come.
            c.write_msr(0x830, 0x4400);
            emit!(c; nop(); mov(rax, qword_ptr(ORDER)));
            c.result(0, rax);
            emit!(c; set_label(&mut second); nop());
        });
        c.x2apic();
        // NMIs do not ask for IF.
        emit!(c; cli());
        c.write_msr(0x830, 0x4400);
        emit!(c; nop(); nop());
    });
    assert_eq!(m.result(0), 1);
    assert_eq!(order(&m), [2, 2]);
    assert_eq!(m.vm.statistics().vcpus[0].nmis, 2);
}

#[test]
fn a_halted_processor_with_interrupts_off_is_woken_by_an_nmi_only() {
    let mut m = Machine::new(1, |c| {
        noting(c, 2, |_| {});
        noting(c, 0x40, |_| {});
        c.x2apic();
        emit!(c; cli(); hlt());
    });
    let deadlock = m.run();
    assert_eq!(deadlock, Ending::Deadlock);
    m.vm.signal_msi(Msi { address: 0xfee0_0000, data: 0x40 });
    assert_eq!(m.run(), Ending::Deadlock);
    m.vm.signal_msi(Msi { address: 0xfee0_0000, data: 0x400 });
    m.finish();
    assert_eq!(order(&m), [2]);
}

#[test]
fn a_level_triggered_line_interrupts_again_until_it_is_low() {
    let mut m = Machine::new(1, |c| {
        noting(c, 0x40, |c| {
            // The third time, the device is told to let go.
            let mut on = c.label();
            emit!(c; cmp(qword_ptr(ORDER), 3); jne(on); out(0x80, al); set_label(&mut on); nop());
        });
        c.x2apic();
        c.mask_8259();
        for (register, value) in [(0x10 + 2 * 11 + 1, 0), (0x10 + 2 * 11, 0x8040)] {
            c.store_device(0xfec0_0000, register);
            c.store_device(0xfec0_0010, value);
        }
        emit!(c; out(0x81, al));
        c.halt_until(ORDER, 3);
        emit!(c; sti(); mov(ecx, 10_000u32));
        let again = c.here();
        emit!(c; dec(ecx); jnz(again));
    });
    // The VMM's side, by hand: port 0x81 raises the line, 0x80 lowers it.
    loop {
        match m.vm.run().unwrap().1 {
            hypervisor::VcpuExit::IoOut(0x81, _) => m.vm.set_irq_line(11, Level::High),
            hypervisor::VcpuExit::IoOut(0x80, _) => m.vm.set_irq_line(11, Level::Low),
            hypervisor::VcpuExit::IoOut(0xf4, _) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(order(&m), [0x40; 3]);
}

#[test]
fn a_repeated_string_instruction_is_interrupted_and_goes_on() {
    let m = finished(|c| {
        c.stamping_handler(0x40, HEAP + 0x10_0000);
        c.mask_8259();
        c.x2apic();
        c.write_msr(0x83e, 0xb);
        c.write_msr(0x832, 0x40);
        emit!(c; mov(rax, qword_ptr(HEAP + 0x10_0000)); std(); sti());
        c.write_msr(0x838, 20_000);
        // Downwards, byte by byte.
        emit!(c; mov(rdi, HEAP + 0x8_ffff); mov(ecx, 0x9_0000u32); mov(al, 0x5a); rep().stosb(); cld());
        c.result(0, rcx);
        c.result(1, rdi);
        c.tsc();
        c.result(2, rax);
    });
    assert_eq!((m.result(0), m.result(1)), (0, HEAP - 1));
    assert_eq!((m.read::<1>(HEAP)[0], m.read::<1>(HEAP + 0x8_ffff)[0]), (0x5a, 0x5a));
    let fired = m.read_u64(HEAP + 0x10_0008);
    assert!(fired + 10_000 < m.result(2), "not in the middle: {fired} of {}", m.result(2));
}

#[test]
fn single_steps_trap_after_each_instruction_whoever_executes_it() {
    let m = finished(|c| {
        // Notes where it returns to, and lets it go on.
        c.handler(1, |c| {
            emit!(c; mov(rax, qword_ptr(RESULTS)); mov(rcx, qword_ptr(rsp + 24)));
            emit!(c; mov(qword_ptr(rax * 8 + RESULTS + 8), rcx); inc(qword_ptr(RESULTS)));
        });
        emit!(c; mov(ebx, DEVICE as u32); xor(ecx, ecx); xor(edx, edx));
        // The trap after POPF comes with the instruction after it.
        emit!(c; pushfq(); or(dword_ptr(rsp), 0x100); popfq());
        emit!(c; mov(eax, 0u32));
        c.note("after an instruction of its own");
        emit!(c; cpuid());
        c.note("after CPUID");
        emit!(c; mov(ebx, DEVICE as u32); mov(eax, dword_ptr(rbx)));
        c.note("after a device load");
        emit!(c; in_(al, 0x70));
        c.note("after IN");
        emit!(c; mov(rax, cr0); mov(cr0, rax));
        c.note("after MOV to CR0");
        emit!(c; pushfq(); and(dword_ptr(rsp), !0x100); popfq());
    });
    let count = m.result(0);
    let traps: Vec<_> = (0..count).map(|i| m.result(1 + i)).collect();
    for name in
        ["after an instruction of its own", "after CPUID", "after a device load", "after IN", "after MOV to CR0"]
    {
        let at = m.case.mark(name);
        assert!(traps.contains(&at), "no trap {name} ({at:#x}) in {traps:x?}");
    }
    // MOV, NOP, CPUID, NOP, two MOV, NOP, IN, NOP, two MOV, NOP, PUSHF, AND, POPF.
    assert_eq!(count, 15, "{traps:x?}");
}

#[test]
fn an_exception_in_the_middle_of_an_interrupt_s_delivery_is_delivered_after_mapping() {
    // The handler's stack is in memory that EPT has not mapped: delivery leaves, and is done again.
    let m = finished(|c| {
        noting(c, 0x40, |_| {});
        c.x2apic();
        c.write_msr(SELF_IPI, 0x40);
        emit!(c; mov(rbx, rsp); mov(rsp, 0x70_0000_u64); sti(); nop(); nop(); cli(); mov(rsp, rbx));
    });
    assert_eq!(order(&m), [0x40]);
    assert_eq!(m.vm.statistics().vcpus[0].interrupts[&0x40], 1, "once");
    assert!(m.vm.statistics().vcpus[0].exits[&ExitReason::EptViolation] >= 2);
}
