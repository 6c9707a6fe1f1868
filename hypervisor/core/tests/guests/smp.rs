//! Several vCPUs: start-up, interrupts between them, time, and that every run is the same.

use hypervisor::Slices;
use iced_x86::code_asm::*;

use crate::case::Case;
use crate::machine::{CODE_64, DATA, END_PORT, Ending, GDT, HEAP, Machine, PML4, RESULTS};

const ICR: u32 = 0x830;
const X2_EOI: u32 = 0x80b;
/// Words that real-mode code can reach.
const HEAP_LOW: u64 = 0x7000;

/// Slices from a few instructions to very long ones.
const ZEAL: [Slices; 4] = [
    Slices { quantum_cycles: 1, longest_cycles: 101 },
    Slices { quantum_cycles: 997, longest_cycles: 10_007 },
    Slices { quantum_cycles: 42_000, longest_cycles: 2_000_000 },
    Slices { quantum_cycles: 200_000, longest_cycles: 100_000_000 },
];

/// Runs a case three times and gives the last machine: every run must end in the same state.
fn same_every_time(vcpus: usize, prepare: impl Fn(&mut Machine), body: impl Fn(&mut Case)) -> Machine {
    let run = || {
        let mut m = Machine::new(vcpus, &body);
        prepare(&mut m);
        m.finish();
        m
    };
    let machines = [run(), run(), run()];
    let hashes = machines.each_ref().map(|m| m.vm.state_hash());
    assert_eq!(hashes, [hashes[0]; 3], "the same inputs, the same state");
    let [.., last] = machines;
    last
}

/// Real-mode code for application processors at 0x8000, which ends the case unless it is `go_on`.
fn real_mode(body: impl FnOnce(&mut CodeAssembler)) -> Vec<u8> {
    let mut a = CodeAssembler::new(16).unwrap();
    body(&mut a);
    a.assemble(0).unwrap()
}

/// Sends INIT and two start-up requests for page 8 to APIC 1.
fn start_application_processor(c: &mut Case, page: u64) {
    c.write_msr(ICR, 1 << 32 | 0x4500);
    c.write_msr(ICR, 1 << 32 | 0x4600 | page);
    c.write_msr(ICR, 1 << 32 | 0x4600 | page);
}

#[test]
fn init_and_sipi_start_a_processor_in_real_mode_at_the_page_asked_for() {
    let prepare = |m: &mut Machine| {
        let code = real_mode(|a| {
            emit!(a; nop(); mov(ax, cs); mov(word_ptr(RESULTS), ax); smsw(ax); mov(word_ptr(RESULTS + 8), ax));
            emit!(a; mov(dword_ptr(RESULTS + 16), esp); mov(dword_ptr(RESULTS + 24), edx); pushf(); pop(ax));
        });
        // A stack is needed for PUSHF: SS:SP is 0:0, so the word goes to 0xfffe.
        let mut code = code;
        code.extend(real_mode(|a| emit!(a; mov(word_ptr(RESULTS + 32), ax); out(i32::from(END_PORT), al))));
        m.write(0x9000, &code);
    };
    let m = same_every_time(2, prepare, |c| {
        c.x2apic();
        start_application_processor(c, 9);
        let forever = c.here();
        emit!(c; jmp(forever));
    });
    let [selector, status, stack, signature, flags] = m.results();
    assert_eq!((selector, status, stack, flags), (0x900, 0x10, 0, 2));
    assert_eq!(signature >> 8 & 0xf, 6, "the family in EDX");
}

#[test]
fn a_processor_that_waits_for_start_up_ignores_everything_else() {
    let m = same_every_time(
        2,
        |_| {},
        |c| {
            c.x2apic();
            // NMI and a fixed interrupt.
            c.write_msr(ICR, 1 << 32 | 0x4400);
            c.write_msr(ICR, 1 << 32 | 0x4040);
            emit!(c; mov(ecx, 100_000u32));
            let again = c.here();
            emit!(c; dec(ecx); jnz(again));
        },
    );
    assert_eq!(m.vm.statistics().vcpus[1].instructions, 0);
}

#[test]
fn an_application_processor_reaches_64_bit_mode_by_itself() {
    let entry = 0x9000_u64;
    let prepare = |m: &mut Machine| {
        // 16-bit code with CS:0 = 0x9000: tables, long mode, and a far jump to 64-bit code.
        let mut a = CodeAssembler::new(16).unwrap();
        emit!(a; xor(ax, ax); mov(ds, ax); lgdt(ptr(0x9100)); mov(eax, cr4); or(eax, 0x620); mov(cr4, eax));
        emit!(a; mov(eax, PML4 as u32); mov(cr3, eax); mov(ecx, 0xc000_0080u32); rdmsr(); or(eax, 0x900); wrmsr());
        emit!(a; mov(eax, cr0); or(eax, 0x8000_0001u32 as i32); mov(cr0, eax));
        let mut code = a.assemble(entry).unwrap();
        // jmp far CODE_64:target, 32-bit offset.
        code.extend([0x66, 0xea]);
        code.extend((m.case.mark("target") as u32).to_le_bytes());
        code.extend(CODE_64.to_le_bytes());
        m.write(entry, &code);
        let mut pointer = 0x37_u16.to_le_bytes().to_vec();
        pointer.extend((GDT as u32).to_le_bytes());
        m.write(0x9100, &pointer);
    };
    let m = same_every_time(2, prepare, |c| {
        c.x2apic();
        start_application_processor(c, 9);
        let forever = c.here();
        emit!(c; pause(); jmp(forever));
        c.note("target");
        emit!(c; mov(eax, u32::from(DATA)); mov(ds, eax); mov(ss, eax); mov(rax, 0x1122_3344_5566_7788_u64));
        c.result(0, rax);
        c.read_msr(0xc000_0080);
        c.result(1, rax);
    });
    assert_eq!(m.results(), [0x1122_3344_5566_7788, 0xd00]);
}

/// vCPUs 1 and up wait with interrupts on for vector 0x40 or an NMI, and count them at `RESULTS + 64 * id`.
fn receivers(c: &mut Case, vcpus: usize) {
    for (vector, slot) in [(2_u8, 0), (0x40, 8)] {
        c.handler(vector, |c| {
            c.read_msr(0x802);
            emit!(c; shl(rax, 6); inc(qword_ptr(rax + RESULTS as i32 + slot)));
            if vector != 2 {
                c.write_msr(X2_EOI, 0);
            }
        });
    }
    let over = c.label();
    emit!(c; jmp(over));
    for id in 1..vcpus {
        c.start(id);
    }
    c.x2apic();
    emit!(c; lock().inc(dword_ptr(HEAP)));
    let mut forever = c.label();
    emit!(c; set_label(&mut forever); sti(); hlt(); jmp(forever));
    c.set(over);
    c.x2apic();
    let mut wait = c.label();
    emit!(c; sti(); set_label(&mut wait); pause(); cmp(dword_ptr(HEAP), vcpus as i32 - 1); jne(wait));
}

/// Waits 20,000 turns, each with PAUSE.
fn settle(c: &mut Case) {
    emit!(c; mov(ecx, 5_000u32));
    let again = c.here();
    emit!(c; pause(); dec(ecx); jnz(again));
}

#[test]
fn inter_processor_interrupts_reach_whom_they_are_meant_for() {
    let m = same_every_time(
        4,
        |_| {},
        |c| {
            receivers(c, 4);
            // To 2 alone; NMI to 3; to all but self; to all; to self; logical to 1 and 2 (cluster 0, bits 1 and 2).
            for icr in [2 << 32 | 0x4040, 3 << 32 | 0x4400, 0xc_4040, 0x8_4040, 0x4_4040, 6 << 32 | 0x4840] {
                c.write_msr(ICR, icr);
                settle(c);
            }
        },
    );
    let counts: Vec<_> = (0..4).map(|id| (m.result(8 * id), m.result(8 * id + 1))).collect();
    assert_eq!(counts, [(0, 2), (0, 3), (0, 4), (1, 2)]);
}

#[test]
fn a_lowest_priority_interrupt_goes_to_exactly_one() {
    let m = same_every_time(
        4,
        |_| {},
        |c| {
            receivers(c, 4);
            for _ in 0..6 {
                // Logical, bits 1 to 3.
                c.write_msr(ICR, 0xe << 32 | 0x4940);
                settle(c);
            }
        },
    );
    let counts: Vec<_> = (0..4).map(|id| m.result(8 * id + 1)).collect();
    assert_eq!(counts[0], 0);
    assert_eq!(counts.iter().sum::<u64>(), 6, "{counts:?}");
}

#[test]
fn xapic_interrupts_go_through_the_two_command_registers() {
    let m = same_every_time(
        2,
        |_| {},
        |c| {
            c.handler(0x40, |c| {
                emit!(c; inc(qword_ptr(RESULTS)));
                c.store_device(0xfee0_00b0, 0);
            });
            c.xapic();
            let mut wait = c.label();
            emit!(c; set_label(&mut wait); pause(); cmp(dword_ptr(HEAP), 1); jne(wait));
            c.store_device(0xfee0_0310, 1 << 24);
            c.store_device(0xfee0_0300, 0x4040);
            // Idle again at once.
            emit!(c; mov(eax, 0xfee0_0300u32); mov(eax, dword_ptr(rax)));
            c.result(1, rax);
            let mut wait = c.label();
            emit!(c; set_label(&mut wait); pause(); cmp(qword_ptr(RESULTS), 1); jne(wait));
            c.end();
            c.start(1);
            c.xapic();
            emit!(c; mov(eax, 0xfee0_0020u32); mov(eax, dword_ptr(rax)));
            c.result(2, rax);
            emit!(c; mov(dword_ptr(HEAP), 1));
            let mut forever = c.label();
            emit!(c; set_label(&mut forever); sti(); hlt(); jmp(forever));
        },
    );
    assert_eq!(m.results(), [1, 0x4040, 1 << 24]);
}

#[test]
fn the_send_ipi_hypercall_reaches_a_bitmap_of_processors() {
    let m = same_every_time(
        4,
        |_| {},
        |c| {
            receivers(c, 4);
            // From APIC 1 on: bits 0 and 2, that is 1 and 3; and one that does not exist.
            emit!(c; mov(eax, 10u32); mov(ebx, 0b1_0000_0101u32); xor(ecx, ecx); mov(edx, 1u32); mov(esi, 0x40u32); vmcall());
            emit!(c; mov(qword_ptr(HEAP + 8), rax));
            settle(c);
        },
    );
    let counts: Vec<_> = (0..4).map(|id| m.result(8 * id + 1)).collect();
    assert_eq!(counts, [0, 1, 0, 1]);
    assert_eq!(m.read_u64(HEAP + 8), 2);
}

#[test]
fn the_kick_hypercall_wakes_a_halted_processor_even_before_it_halts() {
    let m = same_every_time(
        2,
        |_| {},
        |c| {
            let mut wait = c.label();
            emit!(c; set_label(&mut wait); pause(); cmp(dword_ptr(HEAP), 1); jne(wait));
            settle(c);
            emit!(c; mov(eax, 5u32); xor(ebx, ebx); mov(ecx, 1u32); vmcall());
            c.result(0, rax);
            let mut wait = c.label();
            emit!(c; set_label(&mut wait); pause(); cmp(dword_ptr(HEAP), 2); jne(wait));
            c.end();
            c.start(1);
            emit!(c; mov(dword_ptr(HEAP), 1); cli(); hlt(); mov(dword_ptr(HEAP), 2));
            let mut forever = c.label();
            emit!(c; set_label(&mut forever); pause(); jmp(forever));
        },
    );
    assert_eq!(m.result(0), 0);
}

/// Two vCPUs hand a turn to each other `rounds` times; each stamp must be later than the one before.
fn ping_pong(c: &mut Case, rounds: i32) {
    let (turn, last) = (HEAP, HEAP + 64);
    let player = |c: &mut Case, parity: i32| {
        let (mut next, mut backwards, mut done) = (c.label(), c.label(), c.label());
        emit!(c; set_label(&mut next); mov(ebx, dword_ptr(turn)); cmp(ebx, rounds); jae(done));
        emit!(c; mov(eax, ebx); and(eax, 1); cmp(eax, parity); jne(next));
        c.tsc();
        emit!(c; cmp(rax, qword_ptr(last)); jb(backwards); mov(qword_ptr(last), rax); inc(ebx));
        emit!(c; mov(dword_ptr(turn), ebx); jmp(next));
        emit!(c; set_label(&mut backwards); lock().inc(qword_ptr(RESULTS)); mov(qword_ptr(last), rax); inc(ebx));
        emit!(c; mov(dword_ptr(turn), ebx); jmp(next));
        emit!(c; set_label(&mut done); nop());
    };
    player(c, 0);
    c.end();
    c.start(1);
    player(c, 1);
    let mut forever = c.label();
    emit!(c; set_label(&mut forever); pause(); jmp(forever));
}

#[test]
fn time_never_runs_backwards_between_processors() {
    let mut m = Machine::new(2, |c| ping_pong(c, 10_000));
    m.vm.set_slices(Slices { quantum_cycles: 200, longest_cycles: 200 });
    m.vm.set_wakeup(Some(2_000_000_000));
    assert_eq!(m.run(), Ending::Done);
    assert_eq!(m.result(0), 0, "rounds in which the TSC was less than the other's");
    assert_eq!(u32::from_le_bytes(m.read(HEAP)), 10_000);
}

#[test]
fn pausing_lets_the_other_processor_go_on() {
    // The lock is held for a long time by a vCPU that the spinning one must not starve.
    let m = same_every_time(
        2,
        |_| {},
        |c| {
            let mut spin = c.label();
            emit!(c; set_label(&mut spin); pause(); cmp(dword_ptr(HEAP), 0); je(spin));
            c.end();
            c.start(1);
            emit!(c; mov(ecx, 500_000u32));
            let again = c.here();
            emit!(c; dec(ecx); jnz(again); mov(dword_ptr(HEAP), 1));
            let forever = c.here();
            emit!(c; pause(); jmp(forever));
        },
    );
    assert!(m.vm.statistics().vcpus[0].instructions < 10_000_000);
}

/// Four vCPUs add to shared counters under a lock and with atomics, and meet at a barrier.
fn synchronised(c: &mut Case) {
    let (lock, plain, atomic, barrier) = (HEAP, HEAP + 64, HEAP + 128, HEAP + 192);
    let all = c.label();
    c.set(all);
    for id in 1..4 {
        c.start(id);
    }
    emit!(c; mov(r8d, 100u32));
    let (mut next, mut take, mut held) = (c.label(), c.label(), c.label());
    emit!(c; set_label(&mut next); mov(eax, 1u32));
    emit!(c; set_label(&mut take); xchg(dword_ptr(lock), eax); test(eax, eax); jz(held); pause(); jmp(take));
    emit!(c; set_label(&mut held); mov(rax, qword_ptr(plain)); imul_3(rbx, rax, 1); inc(rbx); mov(qword_ptr(plain), rbx));
    emit!(c; mov(dword_ptr(lock), 0); mov(eax, 3u32); lock().xadd(qword_ptr(atomic), rax));
    emit!(c; dec(r8d); jnz(next));
    let (mut wait, mut first) = (c.label(), c.label());
    emit!(c; lock().inc(dword_ptr(barrier)));
    emit!(c; set_label(&mut wait); pause(); cmp(dword_ptr(barrier), 4); jne(wait));
    emit!(c; mov(eax, 1u32); cpuid(); shr(ebx, 24); jz(first));
    let mut forever = c.label();
    emit!(c; set_label(&mut forever); pause(); jmp(forever));
    emit!(c; set_label(&mut first); nop());
}

#[test]
fn what_synchronised_processors_compute_does_not_depend_on_slices() {
    let hash = same_every_time(4, |_| {}, synchronised).vm.state_hash();
    for slices in ZEAL {
        let mut m = Machine::new(4, synchronised);
        m.vm.set_slices(slices);
        m.finish();
        assert_eq!((m.read_u64(HEAP + 64), m.read_u64(HEAP + 128)), (400, 1200), "{slices:?}");
        if slices == Slices::default() {
            assert_eq!(m.vm.state_hash(), hash);
        }
    }
}

#[test]
fn one_processor_alone_computes_the_same_with_any_slices() {
    // Not the statistics: registers, memory and modelled time at the end.
    let run = |slices| {
        let mut m = Machine::new(1, |c| {
            c.stamping_handler(0x40, HEAP);
            c.x2apic();
            c.write_msr(0x83e, 0xb);
            c.write_msr(0x832, 0x40 | 1 << 17);
            c.write_msr(0x838, 200_000);
            c.spin_until(HEAP, 2);
            c.halt_until(HEAP, 4);
            c.tsc();
            c.result(0, rax);
        });
        m.vm.set_slices(slices);
        m.finish();
        let stamps: [u64; 5] = std::array::from_fn(|i| m.read_u64(HEAP + 8 * i as u64));
        (stamps, m.result(0), m.vm.statistics().vcpus[0].instructions)
    };
    let usual = run(Slices::default());
    for slices in ZEAL {
        assert_eq!(run(slices), usual, "{slices:?}");
    }
}

#[test]
fn a_kick_that_comes_before_the_halt_is_not_lost() {
    let m = same_every_time(
        2,
        |_| {},
        |c| {
            emit!(c; mov(eax, 5u32); xor(ebx, ebx); mov(ecx, 1u32); vmcall(); mov(dword_ptr(HEAP), 1));
            let wait = c.here();
            emit!(c; pause(); cmp(dword_ptr(HEAP), 2); jne(wait));
            c.end();
            c.start(1);
            let wait = c.here();
            emit!(c; pause(); cmp(dword_ptr(HEAP), 1); jne(wait); cli(); hlt(); mov(dword_ptr(HEAP), 2));
            let forever = c.here();
            emit!(c; pause(); jmp(forever));
        },
    );
    assert_eq!(m.vm.statistics().vcpus[1].exits[&x86_defs::vmx::ExitReason::Hlt], 1);
}

#[test]
fn init_stops_a_running_processor_and_start_up_brings_it_back() {
    let prepare = |m: &mut Machine| {
        let code = real_mode(|a| {
            emit!(a; inc(dword_ptr(HEAP_LOW)));
            let mut forever = a.create_label();
            emit!(a; set_label(&mut forever); inc(dword_ptr(HEAP_LOW + 8)); jmp(forever));
        });
        m.write(0x9000, &code);
    };
    let m = same_every_time(2, prepare, |c| {
        c.x2apic();
        start_application_processor(c, 9);
        let wait = c.here();
        emit!(c; pause(); cmp(dword_ptr(HEAP_LOW + 8), 100); jb(wait));
        c.write_msr(ICR, 1 << 32 | 0x4500);
        settle(c);
        emit!(c; mov(eax, dword_ptr(HEAP_LOW + 8)));
        c.result(0, rax);
        settle(c);
        emit!(c; mov(eax, dword_ptr(HEAP_LOW + 8)));
        c.result(1, rax);
        c.write_msr(ICR, 1 << 32 | 0x4609);
        let wait = c.here();
        emit!(c; pause(); cmp(dword_ptr(HEAP_LOW), 2); jb(wait));
    });
    assert_eq!(m.result(0), m.result(1), "it stands still");
    assert!(m.result(0) >= 100);
}

#[test]
fn a_kick_from_another_thread_ends_an_idle_wait() {
    let mut m = Machine::new(1, |c| {
        let halt = c.here();
        emit!(c; sti(); hlt(); jmp(halt));
    });
    let kicker = m.vm.kicker();
    let thread = std::thread::spawn(move || kicker.kick());
    assert_eq!(m.run(), Ending::Interrupted);
    thread.join().unwrap();
}
