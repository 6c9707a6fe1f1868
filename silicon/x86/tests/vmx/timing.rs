//! The preemption timer, the guest's TSC, and pause loops.

use x86_defs::vmx::controls::{activity, exit, pin, primary, secondary};
use x86_defs::vmx::{ExitReason as R, Field};

use crate::guest::{CODE, Guest};

/// JMP to itself.
const SPIN: [u8; 2] = [0xeb, 0xfe];
/// PAUSE; JMP to it.
const PAUSE_LOOP: [u8; 4] = [0xf3, 0x90, 0xeb, 0xfc];
const HLT: u8 = 0xf4;

#[test]
fn the_preemption_timer_exits_when_it_has_run_down() {
    let mut guest = Guest::new(&SPIN);
    guest.pin(pin::PREEMPTION_TIMER).write(Field::PreemptionTimerValue, 100);
    let before = guest.core().host_tsc();
    guest.expect(R::PreemptionTimer);
    let passed = guest.core().host_tsc() - before;
    assert!((99 * 32..=101 * 32).contains(&passed), "{passed} cycles");
    assert_eq!(guest.read(Field::PreemptionTimerValue), 100, "the value is not saved");
}

#[test]
fn a_timer_of_zero_exits_before_the_first_instruction_and_after_an_injection() {
    let mut guest = Guest::new(&SPIN);
    guest.pin(pin::PREEMPTION_TIMER).open().inject(0x33);
    guest.expect(R::PreemptionTimer);
    assert_eq!(guest.core().rip, crate::guest::HANDLERS + 0x330);
}

#[test]
fn the_value_of_the_preemption_timer_is_saved() {
    // 200 NOPs and HLT.
    let mut guest = Guest::new(&[&[0x90; 200][..], &[HLT]].concat());
    guest.pin(pin::PREEMPTION_TIMER).write(Field::PreemptionTimerValue, 1000);
    guest.set_bits(Field::ExitControls, exit::SAVE_PREEMPTION_TIMER);
    guest.expect_end();
    let left = guest.read(Field::PreemptionTimerValue);
    assert!(left < 1000 && left > 900, "{left}");
}

#[test]
fn the_monitor_trap_comes_before_an_expired_timer() {
    let mut guest = Guest::new(&[0x90, HLT]);
    guest.pin(pin::PREEMPTION_TIMER).inject(7 << 8);
    guest.expect(R::MonitorTrapFlag);
    guest.expect(R::PreemptionTimer);
}

#[test]
fn the_preemption_timer_does_not_end_the_wait_for_a_sipi() {
    let mut guest = Guest::new(&SPIN);
    guest.pin(pin::PREEMPTION_TIMER).write(Field::PreemptionTimerValue, 1);
    guest.write(Field::GuestActivity, activity::WAIT_FOR_SIPI.into());
    assert_eq!(guest.run_for(10_000), None);
    assert_eq!(guest.core().count.instructions, 0);
    guest.write(Field::GuestActivity, activity::HLT.into());
    guest.expect(R::PreemptionTimer);
}

#[test]
fn the_guests_tsc_is_offset_and_scaled() {
    // RDTSC.
    let code = [0x0f, 0x31, HLT];
    let tsc = |guest: &mut Guest| {
        guest.expect_end();
        guest.write(Field::GuestRip, CODE);
        guest.core().gpr[0] | guest.core().gpr[2] << 32
    };
    let mut guest = Guest::new(&code);
    let plain = tsc(&mut guest);
    guest.primary(primary::USE_TSC_OFFSETTING).write(Field::TscOffset, 1 << 40);
    let offset = tsc(&mut guest);
    assert!(offset > plain + (1 << 40) && offset < plain + (1 << 40) + 10_000);
    guest.secondary(secondary::USE_TSC_SCALING).write(Field::TscMultiplier, 1 << 58);
    let host = guest.core().host_tsc();
    let scaled = tsc(&mut guest) - (1 << 40);
    assert!(scaled >= host << 10 && scaled < (host + 10_000) << 10, "{scaled} of {host}");
}

fn pause_loop(gap: u64, window: u64) -> Guest {
    let mut guest = Guest::new(&PAUSE_LOOP);
    guest.secondary(secondary::PAUSE_LOOP_EXITING);
    guest.write(Field::PleGap, gap).write(Field::PleWindow, window);
    guest
}

#[test]
fn a_tight_pause_loop_at_privilege_level_0_exits_after_the_window() {
    let mut guest = pause_loop(128, 4096);
    let before = guest.core().host_tsc();
    assert_eq!(guest.expect(R::Pause).instruction_length, 2);
    let passed = guest.core().host_tsc() - before;
    assert!((4096..4400).contains(&passed), "{passed} cycles");
    assert_eq!(guest.core().rip, CODE);
}

#[test]
fn a_pause_loop_is_one_loop_whatever_the_slices() {
    let mut guest = pause_loop(128, 4096);
    let slices = (0..100).take_while(|_| guest.run_for(4 * 500).is_none()).count();
    assert!((7..=10).contains(&slices), "{slices} slices of 500 cycles");
}

#[test]
fn a_slow_pause_loop_never_exits() {
    // A gap below the length of a turn.
    assert_eq!(pause_loop(10, 100).run_for(100_000), None);
}

#[test]
fn pause_loops_of_user_code_do_not_exit_unless_every_pause_does() {
    let mut guest = pause_loop(128, 4096);
    guest.write(Field::GuestCsRights, 0xa0fb).write(Field::GuestSsRights, 0xc0f3);
    guest.write(Field::GuestCsSelector, 0x1b).write(Field::GuestSsSelector, 0x23);
    assert_eq!(guest.run_for(100_000), None);
    guest.primary(primary::PAUSE_EXITING);
    guest.expect(R::Pause);
}
