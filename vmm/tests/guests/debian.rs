//! A full Debian user space on a virtio disk: systemd, the package manager, Python's own tests, stress-ng.
//!
//! `make systems` builds the disk (`guest/build-debian-disk.sh`) and runs these; `guest/debian/suite` is what runs inside.

use std::process::Command;
use std::time::Duration;

use crate::program::{Ended, debian, made, new_file};

/// Far more than any of the suites takes on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(4 * 3600);
const POLL: Duration = Duration::from_millis(200);

/// How the guest goes on from its initial RAM disk.
enum Init {
    /// The suites are the first process.
    Suite,
    /// systemd is, up to multi-user.target.
    Systemd,
}

/// A copy of the disk, which a guest may change; gone with this value.
struct Disk(String);

impl Disk {
    fn new(name: &str) -> Self {
        let original = made(".cache/debian/disk.img", "guest/build-debian-disk.sh");
        let copy = new_file(name);
        let copied = Command::new("cp").args(["--sparse=always", "--reflink=auto", &original, &copy]).status();
        assert!(copied.expect("cp of coreutils").success());
        Self(copy)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs suites on the default processor; shows each step as it ends (with `--nocapture`).
fn run(init: Init, suites: &str, cpus: u8) -> Ended {
    run_on("glassvisor-v2", init, suites, cpus)
}

/// The same on a processor of this model.
fn run_on(model: &str, init: Init, suites: &str, cpus: u8) -> Ended {
    let disk = Disk::new(&format!("debian-{model}-{}.img", suites.replace(',', "-")));
    let init = match init {
        Init::Suite => "gv.init=/srv/suite",
        Init::Systemd => "gv.init=/sbin/init systemd.unit=glassvisor.target",
    };
    let mut running = debian("6.12", &format!("gv.root=/dev/vda {init} gv.suite={suites}"))
        .arg("--disk", &disk.0)
        .args(&format!("--memory 1G --cpus {cpus} --cpu {model}"))
        .limit(LIMIT)
        .start();
    let mut shown = 0;
    while !running.is_over() {
        std::thread::sleep(POLL);
        let text = running.stdout.so_far();
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text[shown.min(whole)..whole].lines().filter(|line| line.contains("STEP")) {
            eprintln!("  {suites}: {}", line.trim_end());
        }
        shown = whole;
    }
    running.end()
}

/// Every step ended with status 0, and none is missing.
#[track_caller]
fn assert_all(ended: &Ended, steps: &[&str]) {
    assert_eq!(ended.status, 0, "{ended}");
    for step in steps {
        let prefix = format!("STEP name={step} status=0 ");
        // The login prompt may stand before it on its line.
        assert!(ended.stdout.contains(&prefix), "{step} failed or is missing: {ended}");
    }
    ended.must_print(&format!("SUITE-DONE steps={} failed=0", steps.len()));
}

#[test]
#[ignore = "a full system: make systems"]
fn systemd_brings_debian_up_to_multi_user_without_a_failed_unit() {
    let ended = run(Init::Systemd, "systemd", 2);
    let steps = ["boot", "no_failed_unit", "transient", "journal", "logind", "udev", "login"]
        .map(|step| format!("systemd.{step}"));
    assert_all(&ended, &steps.each_ref().map(String::as_str));
    assert!(ended.stdout.contains("glassvisor login:"), "no login prompt: {ended}");
}

#[test]
#[ignore = "a full system: make systems"]
fn dpkg_and_apt_check_install_and_remove_packages() {
    let ended = run(Init::Suite, "dpkg", 1);
    let steps =
        ["audit", "check", "install", "installed", "purge", "purged", "verify"].map(|step| format!("dpkg.{step}"));
    assert_all(&ended, &steps.each_ref().map(String::as_str));
}

#[test]
#[ignore = "a full system: make systems"]
fn python_passes_its_own_tests_of_math_struct_ctypes_and_threading() {
    let ended = run(Init::Suite, "python", 2);
    assert_all(&ended, &["python.math", "python.struct", "python.ctypes", "python.threading"]);
}

#[test]
#[ignore = "a full system: make systems"]
fn stress_ng_verifies_cpu_matrix_vm_and_context_switches() {
    let ended = run(Init::Suite, "stress", 2);
    assert_all(&ended, &["stress.cpu", "stress.matrix", "stress.vm", "stress.switch"]);
}

/// libm and stress-ng choose code with AVX2 and FMA where a processor has them.
#[test]
#[ignore = "a full system: make systems"]
fn code_for_avx2_and_fma_passes_pythons_math_tests_and_stress_ng() {
    let ended = run_on("glassvisor-v3", Init::Suite, "python.math,stress.matrix,stress.vecmath,stress.cpu", 1);
    assert_all(&ended, &["python.math", "stress.matrix", "stress.vecmath", "stress.cpu"]);
}
