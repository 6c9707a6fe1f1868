//! Timers fire when they should, and clocks agree.

use iced_x86::code_asm::*;
use silicon_x86::cost::EVENT_DELIVERY;
use x86_defs::vmx::ExitReason;

use crate::case::Case;
use crate::machine::{HEAP, Machine, RESULTS, finished};

/// The default model's TSC.
const KHZ: u64 = 2_100_000;
/// What an interrupt may be late, in TSC ticks: the preemption timer's granularity, one exit for the timer and one for
/// an interrupt window or the store that armed it, the delivery, and the instructions around it.
const LATE: u64 = 32 + 2 * 2200 + EVENT_DELIVERY / 4 + 400;
/// List of time stamps that the handlers make.
const STAMPS: u64 = HEAP;
const VECTOR: u8 = 0x40;

const X2_LVT_TIMER: u32 = 0x832;
const X2_INITIAL: u32 = 0x838;
const X2_CURRENT: u32 = 0x839;
const X2_DIVIDE: u32 = 0x83e;
const TSC_DEADLINE: u32 = 0x6e0;
const ONE_SHOT: u64 = VECTOR as u64;
const PERIODIC: u64 = VECTOR as u64 | 1 << 17;
const DEADLINE_MODE: u64 = VECTOR as u64 | 2 << 17;
const MASKED: u64 = 1 << 16;

fn ticks(ns: u64) -> u64 {
    ns * KHZ / 1_000_000
}

fn stamps(m: &Machine) -> Vec<u64> {
    (0..m.read_u64(STAMPS)).map(|i| m.read_u64(STAMPS + 8 + 8 * i)).collect()
}

/// Local APIC on, the handler in place, the timer in a mode; then the TSC in slot 0.
fn prepare(c: &mut Case, mode: u64) {
    c.stamping_handler(VECTOR, STAMPS);
    c.mask_8259();
    c.x2apic();
    // Mapped from here on.
    emit!(c; mov(rax, qword_ptr(STAMPS)));
    c.write_msr(X2_DIVIDE, 0xb);
    c.write_msr(X2_LVT_TIMER, mode);
    c.tsc();
    c.result(0, rax);
}

/// Arms the deadline `ticks` after the TSC of now, and leaves the deadline in slot 1.
fn arm_deadline(c: &mut Case, ticks: u64) {
    c.tsc();
    emit!(c; mov(rcx, ticks); add(rax, rcx));
    c.result(1, rax);
    emit!(c; mov(rdx, rax); shr(rdx, 32); mov(ecx, TSC_DEADLINE); wrmsr());
}

#[track_caller]
fn assert_on_time(at: u64, due: u64) {
    assert!(at >= due, "{} ticks early", due - at);
    assert!(at - due <= LATE, "{} ticks late", at - due);
}

#[test]
fn one_shot_fires_once_when_its_count_has_run_down() {
    for halted in [true, false] {
        let m = finished(|c| {
            prepare(c, ONE_SHOT);
            c.write_msr(X2_INITIAL, 100_000);
            if halted {
                c.halt_until(STAMPS, 1)
            } else {
                c.spin_until(STAMPS, 1)
            }
            // It does not come back.
            c.read_msr(X2_CURRENT);
            c.result(1, rax);
            emit!(c; sti(); mov(ecx, 300_000u32));
            let again = c.here();
            emit!(c; dec(ecx); jnz(again));
        });
        assert_eq!(stamps(&m).len(), 1);
        assert_on_time(stamps(&m)[0], m.result(0) + ticks(100_000));
        assert_eq!(m.result(1), 0);
        let exits = &m.vm.statistics().vcpus[0].exits;
        assert_eq!(exits.get(&ExitReason::PreemptionTimer).copied().unwrap_or(0), u64::from(!halted));
        assert_eq!(exits.get(&ExitReason::Hlt).copied().unwrap_or(0), u64::from(halted));
    }
}

#[test]
fn the_divisor_stretches_the_count() {
    let m = finished(|c| {
        prepare(c, ONE_SHOT);
        c.write_msr(X2_DIVIDE, 0x3);
        c.write_msr(X2_INITIAL, 10_000);
        c.read_msr(X2_CURRENT);
        c.result(1, rax);
        c.halt_until(STAMPS, 1);
    });
    assert_on_time(stamps(&m)[0], m.result(0) + ticks(160_000));
    assert!((9_700..=10_000).contains(&m.result(1)), "{}", m.result(1));
}

#[test]
fn periodic_keeps_its_phase() {
    for halted in [true, false] {
        let m = finished(|c| {
            prepare(c, PERIODIC);
            c.write_msr(X2_INITIAL, 250_000);
            c.tsc();
            c.result(1, rax);
            if halted { c.halt_until(STAMPS, 6) } else { c.spin_until(STAMPS, 6) }
        });
        for (at, n) in stamps(&m).into_iter().zip(1..) {
            assert_on_time(at, m.result(0) + ticks(250_000 * n));
        }
        assert_eq!(stamps(&m).len(), 6);
    }
}

#[test]
fn the_tsc_deadline_is_met() {
    for halted in [true, false] {
        for delay in [5_000, 12_345, 100_000, 1_000_001] {
            let m = finished(|c| {
                prepare(c, DEADLINE_MODE);
                arm_deadline(c, delay);
                if halted {
                    c.halt_until(STAMPS, 1)
                } else {
                    c.spin_until(STAMPS, 1)
                }
                c.read_msr(TSC_DEADLINE);
                c.result(2, rax);
            });
            assert_on_time(stamps(&m)[0], m.result(1));
            assert_eq!(m.result(2), 0, "a deadline that has passed reads as zero");
        }
    }
}

#[test]
fn a_deadline_in_the_past_fires_at_once() {
    let m = finished(|c| {
        prepare(c, DEADLINE_MODE);
        c.tsc();
        c.result(1, rax);
        c.write_msr(TSC_DEADLINE, 1);
        c.spin_until(STAMPS, 1);
    });
    assert_on_time(stamps(&m)[0], m.result(1) + 2200);
}

#[test]
fn a_deadline_of_zero_disarms_and_a_masked_timer_is_silent() {
    let m = finished(|c| {
        prepare(c, DEADLINE_MODE);
        arm_deadline(c, 50_000);
        c.write_msr(TSC_DEADLINE, 0);
        emit!(c; sti(); mov(ecx, 200_000u32));
        let again = c.here();
        emit!(c; dec(ecx); jnz(again));
        c.write_msr(X2_LVT_TIMER, DEADLINE_MODE | MASKED);
        arm_deadline(c, 50_000);
        emit!(c; mov(ecx, 200_000u32));
        let again = c.here();
        emit!(c; dec(ecx); jnz(again));
        // It ran down all the same: unmasking does not bring it back.
        c.write_msr(X2_LVT_TIMER, DEADLINE_MODE);
        c.read_msr(TSC_DEADLINE);
        c.result(2, rax);
        emit!(c; nop());
    });
    assert_eq!(stamps(&m), []);
    assert_eq!(m.result(2), 0);
}

#[test]
fn a_deadline_beyond_the_preemption_timer_is_met_by_a_running_vcpu() {
    // 32 bits at a 32nd of the TSC's rate are 65 s; the guest sleeps through most of it and runs at its end.
    let delay = (1_u64 << 37) + 1_000_000_000;
    let mut m = Machine::new(1, |c| {
        c.handler(0x50, |c| c.write_msr(0x80b, 0));
        prepare(c, DEADLINE_MODE);
        arm_deadline(c, delay);
        emit!(c; sti(); hlt());
        c.tsc();
        c.result(2, rax);
        c.spin_until(STAMPS, 1);
    });
    let near = (delay - 3_000_000) * 1_000_000 / KHZ;
    m.vm.set_wakeup(Some(near));
    assert_eq!(m.run(), crate::machine::Ending::Interrupted);
    m.vm.signal_msi(hypervisor::Msi { address: 0xfee0_0000, data: 0x50 });
    m.finish();
    assert!(m.result(2) < m.result(1) - 1_000_000, "woken before the deadline");
    assert_on_time(stamps(&m)[0], m.result(1));
}

#[test]
fn a_deadline_is_met_when_the_guest_moves_its_tsc() {
    let m = finished(|c| {
        prepare(c, DEADLINE_MODE);
        arm_deadline(c, 1 << 40);
        // Into the last 100,000 ticks.
        emit!(c; mov(rax, qword_ptr(RESULTS + 8)); sub(rax, 100_000); mov(rdx, rax); shr(rdx, 32); mov(ecx, 0x10); wrmsr());
        c.spin_until(STAMPS, 1);
        c.read_msr(0x3b);
        c.result(2, rax);
    });
    assert_on_time(stamps(&m)[0], m.result(1));
    assert!(m.result(2) > (1 << 40) - 200_000, "TSC_ADJUST follows writes of the TSC");
}

/// Programs the 8254's channel 0 as a rate generator.
fn program_8254(c: &mut Case, divisor: u32) {
    emit!(c; mov(al, 0x34); out(0x43, al); mov(al, divisor & 0xff); out(0x40, al); mov(al, divisor >> 8); out(0x40, al));
    c.tsc();
    c.result(0, rax);
}

/// TSC ticks of `n` periods of the 8254.
fn periods(n: u64, divisor: u64) -> u64 {
    (u128::from(n * divisor) * u128::from(KHZ) * 1000 / 1_193_182) as u64
}

#[track_caller]
fn assert_8254(m: &Machine, divisor: u64) {
    assert_eq!(stamps(m).len(), 10);
    for (at, n) in stamps(m).into_iter().zip(1..) {
        // The counter starts some ticks before slot 0 was taken, and loads with the first clock after that.
        let due = m.result(0) + periods(n, divisor);
        assert!(at + 15_000 > due && at < due + 15_000, "interrupt {n} at {at}, due at {due}");
    }
}

#[test]
fn the_8254_interrupts_through_the_8259() {
    let m = finished(|c| {
        c.handler(0x20, |c| {
            c.tsc();
            emit!(c; mov(rcx, qword_ptr(STAMPS)); mov(qword_ptr(rcx * 8 + STAMPS + 8), rax); inc(qword_ptr(STAMPS)));
            emit!(c; mov(al, 0x20); out(0x20, al));
        });
        for (port, value) in [(0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0xa0, 0x11), (0xa1, 0x28), (0xa1, 2)] {
            emit!(c; mov(al, value); out(port, al));
        }
        emit!(c; mov(al, 1); out(0xa1, al); mov(al, 0xff); out(0xa1, al); mov(al, 0xfe); out(0x21, al));
        program_8254(c, 1193);
        c.halt_until(STAMPS, 10);
    });
    assert_8254(&m, 1193);
}

#[test]
fn the_8254_interrupts_through_the_io_apic() {
    let m = finished(|c| {
        c.stamping_handler(0x60, STAMPS);
        c.mask_8259();
        c.x2apic();
        // Pin 2, vector 0x60, edge, fixed, to APIC 0.
        for (register, value) in [(0x15, 0), (0x14, 0x60)] {
            c.store_device(0xfec0_0000, register);
            c.store_device(0xfec0_0010, value);
        }
        program_8254(c, 2386);
        c.halt_until(STAMPS, 10);
    });
    assert_8254(&m, 2386);
}

#[test]
fn the_power_management_timer_runs_at_its_rate() {
    let m = finished(|c| {
        for slot in [0, 2] {
            emit!(c; mov(dx, 0x608u32); in_(eax, dx));
            c.result(slot, rax);
            c.tsc();
            c.result(slot + 1, rax);
            emit!(c; mov(ecx, 1_000_000u32));
            let again = c.here();
            emit!(c; dec(ecx); jnz(again));
        }
    });
    let [p0, t0, p1, t1] = m.results();
    let elapsed = (p1 - p0) as f64 / 3_579_545.0;
    let tsc = (t1 - t0) as f64 / (KHZ * 1000) as f64;
    assert!((elapsed - tsc).abs() < 3e-7, "{elapsed} s by the timer, {tsc} s by the TSC");
}

/// A `pvclock_vcpu_time_info` in guest memory.
struct Pvclock {
    version: u32,
    tsc: u64,
    system_time: u64,
    multiplier: u32,
    shift: i8,
    flags: u8,
}

impl Pvclock {
    fn at(m: &Machine, at: u64) -> Self {
        Self {
            version: u32::from_le_bytes(m.read(at)),
            tsc: m.read_u64(at + 8),
            system_time: m.read_u64(at + 16),
            multiplier: u32::from_le_bytes(m.read(at + 24)),
            shift: m.read::<1>(at + 28)[0] as i8,
            flags: m.read::<1>(at + 29)[0],
        }
    }

    /// The guest's formula.
    fn ns(&self, tsc: u64) -> u64 {
        let delta = tsc - self.tsc;
        let delta = if self.shift < 0 { delta >> -self.shift } else { delta << self.shift };
        self.system_time + ((u128::from(delta) * u128::from(self.multiplier)) >> 32) as u64
    }
}

#[test]
fn kvmclock_agrees_with_the_tsc_and_with_itself_to_a_nanosecond() {
    let m = finished(|c| {
        c.write_msr(0x4b56_4d01, HEAP | 1);
        emit!(c; mov(ecx, 1_000_000u32));
        let again = c.here();
        emit!(c; dec(ecx); jnz(again));
        c.tsc();
        c.result(0, rax);
        c.write_msr(0x4b56_4d01, (HEAP + 64) | 1);
    });
    let (first, second) = (Pvclock::at(&m, HEAP), Pvclock::at(&m, HEAP + 64));
    assert_eq!((first.version, first.flags, second.version), (2, 1, 2));
    let tsc = m.result(0);
    assert!(first.ns(tsc).abs_diff(tsc * 1_000_000 / KHZ) <= 1, "guest and host count the same time");
    assert!(first.ns(second.tsc).abs_diff(second.system_time) <= 1);
    assert!(second.tsc - first.tsc > 1_000_000);
}

#[test]
fn the_wall_clock_is_the_one_at_power_on() {
    let m = finished(|c| c.write_msr(0x4b56_4d00, HEAP));
    let field = |n: u64| u32::from_le_bytes(m.read(HEAP + 4 * n));
    assert_eq!([field(0), field(1), field(2)], [2, 1_700_000_000, 123_456_789]);
}

#[test]
fn the_steal_time_record_tells_who_is_not_running() {
    let record = HEAP + 0x40;
    let mut m = Machine::new(2, |c| {
        let mut wait = c.label();
        // vCPU 0 waits until 1 has published a record that says "preempted", then kicks it.
        emit!(c; set_label(&mut wait); pause(); cmp(byte_ptr(record + 16), 1); jne(wait));
        emit!(c; mov(rax, qword_ptr(record + 8)));
        c.result(0, rax);
        emit!(c; mov(eax, 5u32); xor(ebx, ebx); mov(ecx, 1u32); vmcall());
        let mut forever = c.label();
        emit!(c; set_label(&mut forever); pause(); jmp(forever));
        c.start(1);
        c.write_msr(0x4b56_4d03, record | 1);
        emit!(c; mov(al, byte_ptr(record + 16)); movzx(rax, al));
        c.result(1, rax);
        emit!(c; cli(); hlt(); mov(al, byte_ptr(record + 16)); movzx(rax, al));
        c.result(2, rax);
        emit!(c; mov(rax, qword_ptr(record)));
        c.result(3, rax);
    });
    m.finish();
    let [version, running, again, stolen] = m.results();
    assert_eq!((version as u32 % 2, running, again, stolen), (0, 0, 0, 0));
    assert!(version as u32 >= 4, "updated at the MSR write and at the halt");
}

#[test]
fn pv_eoi_ends_an_interrupt_without_an_exit() {
    let flag = HEAP + 0x1000;
    let m = finished(|c| {
        c.handler(VECTOR, |c| {
            let mut ended = c.label();
            emit!(c; inc(qword_ptr(STAMPS)); btr(dword_ptr(flag), 0); jc(ended));
            emit!(c; inc(qword_ptr(RESULTS)); xor(eax, eax); xor(edx, edx); mov(ecx, 0x80b); wrmsr());
            emit!(c; set_label(&mut ended); nop());
        });
        c.mask_8259();
        c.x2apic();
        c.write_msr(0x4b56_4d04, flag | 1);
        emit!(c; sti());
        for _ in 0..10 {
            c.write_msr(0x83f, VECTOR.into());
            emit!(c; nop());
        }
        c.read_msr(0x812);
        c.result(1, rax);
        // In service: nothing.
        emit!(c; mov(eax, dword_ptr(flag)));
        c.result(2, rax);
    });
    assert_eq!(m.read_u64(STAMPS), 10);
    assert_eq!(m.results(), [0, 0, 0], "no interrupt needed the register");
    assert_eq!(m.vm.statistics().vcpus[0].msr_writes.get(&0x80b), None);
}

#[test]
fn pv_eoi_is_not_offered_while_another_interrupt_waits_and_may_be_ignored() {
    let flag = HEAP + 0x1000;
    let m = finished(|c| {
        for (vector, slot) in [(0x40_u8, 0), (0x50, 1)] {
            c.handler(vector, |c| {
                emit!(c; mov(eax, dword_ptr(flag)));
                c.result(slot, rax);
                // By the register, whatever the flag says.
                c.write_msr(0x80b, 0);
                emit!(c; inc(qword_ptr(STAMPS)));
            });
        }
        c.mask_8259();
        c.x2apic();
        c.write_msr(0x4b56_4d04, flag | 1);
        c.write_msr(0x83f, 0x40);
        c.write_msr(0x83f, 0x50);
        c.spin_until(STAMPS, 2);
        c.write_msr(0x83f, 0x40);
        c.spin_until(STAMPS, 3);
    });
    assert_eq!(m.read_u64(STAMPS), 3);
    assert_eq!(m.result(1), 0, "0x40 waits behind 0x50: its end must be seen");
    assert_eq!(m.result(0), 1);
}

#[test]
fn channel_2_of_the_8254_counts_down_behind_its_gate() {
    let m = finished(|c| {
        // Gate closed, mode 0, 11931 clocks: 10 ms from when the gate opens.
        emit!(c; xor(eax, eax); out(0x61, al); mov(al, 0xb0); out(0x43, al));
        emit!(c; mov(al, 0x9b); out(0x42, al); mov(al, 0x2e); out(0x42, al); in_(al, 0x61); movzx(rax, al));
        c.result(0, rax);
        emit!(c; mov(al, 1); out(0x61, al));
        c.tsc();
        c.result(1, rax);
        let wait = c.here();
        emit!(c; in_(al, 0x61); test(al, 0x20); jz(wait));
        c.tsc();
        c.result(2, rax);
    });
    assert_eq!(m.result(0) & 0x20, 0, "the output is low while the gate is closed");
    let elapsed = m.result(2) - m.result(1);
    let due = periods(1, 11_931);
    assert!(elapsed.abs_diff(due) < 10_000, "{elapsed} ticks, {due} expected");
}

#[test]
fn a_timer_of_one_processor_is_met_while_another_runs() {
    let m = {
        let mut m = Machine::new(2, |c| {
            let wait = c.here();
            emit!(c; pause(); cmp(qword_ptr(STAMPS), 1); jb(wait));
            c.end();
            c.start(1);
            prepare(c, DEADLINE_MODE);
            arm_deadline(c, 500_000);
            emit!(c; sti());
            let halt = c.here();
            emit!(c; hlt(); jmp(halt));
        });
        m.finish();
        m
    };
    let (at, due) = (stamps(&m)[0], m.result(1));
    assert!(at >= due, "{} ticks early", due - at);
    let quantum = hypervisor::Slices::default().quantum_cycles;
    assert!(at - due <= LATE + quantum, "{} ticks late", at - due);
}

#[test]
fn in_real_time_a_timer_is_not_early_either() {
    let config = hypervisor::VmConfig { time: hypervisor::TimeMode::Real, ..crate::machine::config() };
    for halted in [true, false] {
        let mut m = Machine::with(config.clone(), 1, |c| {
            prepare(c, ONE_SHOT);
            c.write_msr(X2_INITIAL, 200_000);
            if halted { c.halt_until(STAMPS, 1) } else { c.spin_until(STAMPS, 1) }
        });
        assert_eq!(m.run(), crate::machine::Ending::Done);
        assert!(stamps(&m)[0] >= m.result(0) + ticks(200_000));
    }
}
