//! Debian's 32-bit kernel (686-pae) with a 32-bit user space.

use crate::program::{Ended, debian};
use crate::selfcheck::assert_passed;

const KERNEL: &str = "6.1-686-pae";
/// The search for ISA cards and the kernel's checks of its own cryptography are two thirds of the boot.
const SHORTER: &str = "noisapnp cryptomgr.notests";

#[derive(Clone, Copy)]
enum Time {
    Virtual,
    Real,
}

fn run(parameters: &str, cpus: u8, time: Time) -> Ended {
    let time = match time {
        Time::Virtual => "virtual",
        Time::Real => "real",
    };
    let ended = debian(KERNEL, &format!("{SHORTER} {parameters}")).args(&format!("--cpus {cpus} --time {time}")).run();
    assert_eq!(ended.status, 0, "{ended}");
    assert!(ended.stdout.contains("-686-pae i686"), "{ended}");
    ended.must_print(&format!("processors: {cpus}"));
    let online = if cpus == 1 { "0".to_owned() } else { format!("0-{}", cpus - 1) };
    ended.must_print(&format!("processors online: {online}"));
    ended
}

fn boots(cpus: u8, time: Time) {
    let ended = run("", cpus, time);
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    assert!(!ended.stdout.contains("GLASSVISOR-ERROR"), "{ended}");
}

#[test]
fn the_32_bit_kernel_boots_on_1_in_virtual_time() {
    boots(1, Time::Virtual);
}

#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_boots_on_1_in_real_time() {
    boots(1, Time::Real);
}

#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_boots_on_2_in_virtual_time() {
    boots(2, Time::Virtual);
}

#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_boots_on_2_in_real_time() {
    boots(2, Time::Real);
}

#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_boots_on_4_in_virtual_time() {
    boots(4, Time::Virtual);
}

#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_boots_on_4_in_real_time() {
    boots(4, Time::Real);
}

#[test]
#[ignore = "the 32-bit self-check runs on the 64-bit kernel for each change: make systems"]
fn the_32_bit_self_check_passes_on_the_32_bit_kernel() {
    assert_passed(&run("gv.run=selfcheck", 2, Time::Virtual));
}

/// Reads a disk through modules of the 32-bit kernel.
#[test]
#[ignore = "the rest of the matrix: make systems"]
fn the_32_bit_kernel_reads_a_virtio_disk() {
    let disk = crate::program::file("disk-pae.img", &[0x5a; 512 * 9]);
    let ended = debian(KERNEL, &format!("{SHORTER} gv.disk")).arg("--disk", &disk).run();
    assert_eq!(ended.status, 0, "{ended}");
    let sum = crate::disk::sha256(&disk);
    ended.must_print(&format!("DISK name=vda sectors=9 sha256={sum}"));
}
