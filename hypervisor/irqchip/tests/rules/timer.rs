use super::{T0, enabled, read, read_at, write, write_at, x2apic};
use irqchip::lapic::MIN_PERIOD_NS;
use irqchip::{Features, LocalApic, Now, Signal, TimerDeadline};

const DEADLINE_MSR: u32 = 0x6e0;
const ONE_SHOT: u32 = 0x0_0040;
const PERIODIC: u32 = 0x2_0040;
const TSC_DEADLINE: u32 = 0x4_0040;

fn with_mode(entry: u32) -> LocalApic {
    let mut apic = enabled(0);
    write(&mut apic, 0x3e0, 0xb); // divide by 1
    write(&mut apic, 0x320, entry);
    apic
}

fn at_tsc(guest_tsc: u64) -> Now {
    Now { vm_ns: 0, guest_tsc }
}

#[test]
fn each_divisor_scales_one_nanosecond_cycles() {
    for (bits, divisor) in [(0x0, 2), (0x1, 4), (0x2, 8), (0x3, 16), (0x8, 32), (0x9, 64), (0xa, 128), (0xb, 1)] {
        let mut apic = with_mode(ONE_SHOT);
        write(&mut apic, 0x3e0, bits);
        write_at(&mut apic, 0x380, 1000, 50);
        assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(50 + 1000 * divisor)));
    }
}

#[test]
fn one_shot_counts_down_fires_once_and_stays_at_zero() {
    let mut apic = with_mode(ONE_SHOT);
    write_at(&mut apic, 0x380, 1000, 0);
    assert_eq!(read_at(&mut apic, 0x390, 400), 600);
    assert_eq!(apic.timer_expired(Now::at_ns(999)), None, "early");
    assert_eq!(apic.timer_expired(Now::at_ns(1000)), Some(Signal::Fixed));
    assert_eq!(apic.highest_deliverable(), Some(0x40));
    assert_eq!(apic.timer(), None);
    assert_eq!(read_at(&mut apic, 0x390, 1500), 0);
    assert_eq!(read(&mut apic, 0x380), 1000);
}

#[test]
fn periodic_keeps_its_phase_and_skips_what_it_is_late_for() {
    let mut apic = with_mode(PERIODIC);
    write_at(&mut apic, 0x380, 1_000_000, 5);
    assert_eq!(apic.timer_expired(Now::at_ns(1_000_005)), Some(Signal::Fixed));
    assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(2_000_005)));
    apic.timer_expired(Now::at_ns(4_500_000));
    assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(5_000_005)));
    assert_eq!(read_at(&mut apic, 0x390, 4_500_005), 500_000);
    assert_eq!(read_at(&mut apic, 0x390, 5_000_105), 999_900, "before the call");
}

#[test]
fn a_short_period_is_stretched() {
    let mut apic = with_mode(PERIODIC);
    write_at(&mut apic, 0x380, 1, 0);
    assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(MIN_PERIOD_NS)));
}

#[test]
fn a_masked_timer_runs_but_does_not_interrupt() {
    let mut apic = with_mode(ONE_SHOT | 1 << 16);
    write_at(&mut apic, 0x380, 100, 0);
    assert!(apic.timer().is_some());
    assert_eq!(apic.timer_expired(Now::at_ns(100)), None);
    assert!(!apic.requested(0x40));
    assert_eq!(apic.timer(), None);
}

#[test]
fn an_initial_count_of_zero_stops_the_timer() {
    let mut apic = with_mode(PERIODIC);
    write_at(&mut apic, 0x380, 1_000_000, 0);
    write_at(&mut apic, 0x380, 0, 10);
    assert_eq!(apic.timer(), None);
    assert_eq!(read_at(&mut apic, 0x390, 20), 0);
}

#[test]
fn a_new_divisor_scales_what_is_left() {
    let mut apic = with_mode(ONE_SHOT);
    write_at(&mut apic, 0x380, 1000, 0);
    write_at(&mut apic, 0x3e0, 0x1, 400); // by 4
    assert_eq!(read_at(&mut apic, 0x390, 400), 600, "the count does not jump");
    assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(400 + 2400)));
}

#[test]
fn one_shot_and_periodic_change_without_stopping() {
    let mut apic = with_mode(PERIODIC);
    write_at(&mut apic, 0x380, 1_000_000, 0);
    write_at(&mut apic, 0x320, ONE_SHOT, 300_000);
    assert_eq!(read_at(&mut apic, 0x390, 300_000), 700_000);
    apic.timer_expired(Now::at_ns(1_000_000));
    assert_eq!(apic.timer(), None);
    write_at(&mut apic, 0x320, PERIODIC, 1_100_000);
    assert_eq!(apic.timer(), None, "a stopped count does not start by it");
}

#[test]
fn into_and_out_of_tsc_deadline_mode_the_timer_stops() {
    let mut apic = with_mode(ONE_SHOT);
    write_at(&mut apic, 0x380, 1000, 0);
    write_at(&mut apic, 0x320, TSC_DEADLINE, 10);
    assert_eq!(apic.timer(), None);
    assert_eq!(read_at(&mut apic, 0x380, 10), 0);
    apic.write_tsc_deadline(500);
    assert_eq!(apic.timer(), Some(TimerDeadline::Tsc(500)));
    write_at(&mut apic, 0x320, ONE_SHOT, 20);
    assert_eq!(apic.timer(), None);
    write_at(&mut apic, 0x320, TSC_DEADLINE, 30);
    assert_eq!(apic.timer(), None);
}

#[test]
fn the_deadline_fires_when_reached_and_reads_as_zero_then() {
    let mut apic = with_mode(TSC_DEADLINE);
    apic.msr_write(0, DEADLINE_MSR, 500, T0).unwrap();
    assert_eq!(apic.msr_read(DEADLINE_MSR, T0), Ok(500));
    assert_eq!(apic.timer_expired(at_tsc(499)), None);
    assert_eq!(apic.timer_expired(at_tsc(500)), Some(Signal::Fixed));
    assert_eq!(apic.msr_read(DEADLINE_MSR, T0), Ok(0));
    assert_eq!(apic.timer_expired(at_tsc(501)), None, "once");
}

#[test]
fn a_deadline_of_zero_disarms() {
    let mut apic = with_mode(TSC_DEADLINE);
    apic.write_tsc_deadline(500);
    apic.write_tsc_deadline(0);
    assert_eq!(apic.timer(), None);
}

#[test]
fn the_deadline_is_ignored_and_reads_as_zero_in_other_modes() {
    let mut apic = with_mode(ONE_SHOT);
    apic.msr_write(0, DEADLINE_MSR, 500, T0).unwrap();
    assert_eq!(apic.msr_read(DEADLINE_MSR, T0), Ok(0));
    assert_eq!(apic.timer(), None);
}

#[test]
fn the_initial_count_is_ignored_in_tsc_deadline_mode() {
    let mut apic = with_mode(TSC_DEADLINE);
    write_at(&mut apic, 0x380, 1000, 0);
    assert_eq!(read(&mut apic, 0x380), 0);
    assert_eq!(apic.timer(), None);
}

#[test]
fn without_the_feature_there_is_no_deadline() {
    let mut apic = x2apic(0);
    apic.set_features(Features { tsc_deadline: false, ..Features::default() });
    assert!(apic.msr_write(0, DEADLINE_MSR, 1, T0).is_err());
    assert!(apic.msr_read(DEADLINE_MSR, T0).is_err());
    apic.msr_write(0, 0x832, u64::from(TSC_DEADLINE), T0).unwrap();
    assert_eq!(apic.msr_read(0x832, T0), Ok(0x40), "bit 18 is reserved");
}

#[test]
fn the_largest_count_and_latest_time_do_not_overflow() {
    let mut apic = with_mode(PERIODIC);
    write(&mut apic, 0x3e0, 0xa);
    write_at(&mut apic, 0x380, u32::MAX, u64::MAX - 5);
    assert_eq!(apic.timer(), Some(TimerDeadline::Nanoseconds(u64::MAX)));
    apic.timer_expired(Now::at_ns(u64::MAX));
    assert!(read_at(&mut apic, 0x390, u64::MAX) > 0);
}
