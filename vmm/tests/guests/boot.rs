//! Unmodified Debian kernels boot to init and power off: kernels, numbers of processors, kinds of time, clock sources.

use crate::program::debian;

#[derive(Clone, Copy)]
enum Time {
    Virtual,
    Real,
}

/// What the CPU model makes the kernel choose.
#[derive(Clone, Copy)]
enum Clock {
    /// The model has the invariant TSC.
    Tsc,
    /// It has not.
    KvmClock,
}

fn boots(kernel: &str, cpus: u8, time: Time, clock: Clock) {
    let time = match time {
        Time::Virtual => "virtual",
        Time::Real => "real",
    };
    let (model, clock) = match clock {
        Clock::Tsc => ("glassvisor-v2", "tsc"),
        Clock::KvmClock => ("glassvisor-v2-notsc", "kvm-clock"),
    };
    let ended = debian(kernel, "").args(&format!("--cpus {cpus} --time {time} --cpu {model}")).run();
    assert_eq!(ended.status, 0, "{ended}");
    ended.must_print(&format!("clocksource current: {clock}"));
    ended.must_print(&format!("processors: {cpus}"));
    let online = if cpus == 1 { "0".to_owned() } else { format!("0-{}", cpus - 1) };
    ended.must_print(&format!("processors online: {online}"));
    assert!(ended.stdout.contains(&format!("kernel: Linux version {kernel}.")), "{ended}");
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    assert!(!ended.stdout.contains("GLASSVISOR-ERROR"), "{ended}");
}

macro_rules! matrix {
    ($($name:ident($kernel:literal, $cpus:literal, $time:ident, $clock:ident) $when:ident;)*) => {
        $(matrix!(@test $name, $kernel, $cpus, $time, $clock, $when);)*
    };
    (@test $name:ident, $kernel:literal, $cpus:literal, $time:ident, $clock:ident, always) => {
        #[test]
        fn $name() {
            boots($kernel, $cpus, Time::$time, Clock::$clock);
        }
    };
    (@test $name:ident, $kernel:literal, $cpus:literal, $time:ident, $clock:ident, nightly) => {
        #[test]
        #[ignore = "the rest of the matrix: tools/nightly.sh"]
        fn $name() {
            boots($kernel, $cpus, Time::$time, Clock::$clock);
        }
    };
}

// Each value of each column is among those that always run.
matrix! {
    linux_6_12_on_1_in_virtual_time_with_tsc("6.12", 1, Virtual, Tsc) always;
    linux_6_12_on_1_in_virtual_time_with_kvm_clock("6.12", 1, Virtual, KvmClock) nightly;
    linux_6_12_on_1_in_real_time_with_tsc("6.12", 1, Real, Tsc) nightly;
    linux_6_12_on_1_in_real_time_with_kvm_clock("6.12", 1, Real, KvmClock) nightly;
    linux_6_12_on_2_in_virtual_time_with_tsc("6.12", 2, Virtual, Tsc) nightly;
    linux_6_12_on_2_in_virtual_time_with_kvm_clock("6.12", 2, Virtual, KvmClock) nightly;
    linux_6_12_on_2_in_real_time_with_tsc("6.12", 2, Real, Tsc) nightly;
    linux_6_12_on_2_in_real_time_with_kvm_clock("6.12", 2, Real, KvmClock) always;
    linux_6_12_on_4_in_virtual_time_with_tsc("6.12", 4, Virtual, Tsc) nightly;
    linux_6_12_on_4_in_virtual_time_with_kvm_clock("6.12", 4, Virtual, KvmClock) nightly;
    linux_6_12_on_4_in_real_time_with_tsc("6.12", 4, Real, Tsc) nightly;
    linux_6_12_on_4_in_real_time_with_kvm_clock("6.12", 4, Real, KvmClock) nightly;
    linux_6_1_on_1_in_virtual_time_with_tsc("6.1", 1, Virtual, Tsc) nightly;
    linux_6_1_on_1_in_virtual_time_with_kvm_clock("6.1", 1, Virtual, KvmClock) nightly;
    linux_6_1_on_1_in_real_time_with_tsc("6.1", 1, Real, Tsc) always;
    linux_6_1_on_1_in_real_time_with_kvm_clock("6.1", 1, Real, KvmClock) nightly;
    linux_6_1_on_2_in_virtual_time_with_tsc("6.1", 2, Virtual, Tsc) nightly;
    linux_6_1_on_2_in_virtual_time_with_kvm_clock("6.1", 2, Virtual, KvmClock) nightly;
    linux_6_1_on_2_in_real_time_with_tsc("6.1", 2, Real, Tsc) nightly;
    linux_6_1_on_2_in_real_time_with_kvm_clock("6.1", 2, Real, KvmClock) nightly;
    linux_6_1_on_4_in_virtual_time_with_tsc("6.1", 4, Virtual, Tsc) nightly;
    linux_6_1_on_4_in_virtual_time_with_kvm_clock("6.1", 4, Virtual, KvmClock) always;
    linux_6_1_on_4_in_real_time_with_tsc("6.1", 4, Real, Tsc) nightly;
    linux_6_1_on_4_in_real_time_with_kvm_clock("6.1", 4, Real, KvmClock) nightly;
}
