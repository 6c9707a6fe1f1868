//! Files and options that cannot work: what is said, and the exit status.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::program::{Glassvisor, Running, file, glassvisor, kernel, new_file};

/// Could not start.
const CANNOT_START: i32 = 4;
/// The command line is wrong.
const USAGE: i32 = 2;

fn boot(path: &str) -> Glassvisor {
    glassvisor("boot").arg("--kernel", path)
}

#[test]
fn a_missing_kernel_or_a_directory_is_named() {
    boot("/nowhere/vmlinuz").run().must_say(CANNOT_START, &["/nowhere/vmlinuz", "kernel", "No such file"]);
    boot("/proc/self").run().must_say(CANNOT_START, &["/proc/self", "directory"]);
    boot("/dev/zero").run().must_say(CANNOT_START, &["/dev/zero", "not a plain file"]);
}

#[test]
fn a_kernel_cut_short_is_called_so_and_what_to_do() {
    let path = kernel("6.12");
    let bytes = std::fs::read(&path).expect("just looked at");
    for len in [100, 600, 20_000, bytes.len() - 4096] {
        let cut = file(&format!("cut-{len}"), &bytes[..len]);
        let ended = boot(&cut).run();
        ended.must_say(CANNOT_START, &[&cut]);
        if len > 512 {
            ended.must_say(CANNOT_START, &["cut short"]);
        }
    }
}

#[test]
fn kernels_for_other_machines_and_files_of_other_kinds_are_named() {
    let mut arm = vec![0; 4096];
    arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
    boot(&file("foreign-arm", &arm)).run().must_say(CANNOT_START, &["AArch64", "x86"]);
    boot(&file("foreign-gzip", b"\x1f\x8b\x08\0\0\0\0\0")).run().must_say(CANNOT_START, &["gzip"]);
    boot(&file("foreign-text", b"#!/bin/sh\necho hello\n"))
        .run()
        .must_say(CANNOT_START, &["foreign-text", "script", "--kernel"]);
    boot(&file("foreign-empty", b"")).run().must_say(CANNOT_START, &["empty"]);
}

#[test]
fn an_initrd_that_does_not_fit_or_is_not_there_is_refused() {
    let large = new_file("large-initrd");
    std::fs::File::create(&large).and_then(|f| f.set_len(300 << 20)).expect("a sparse file");
    boot(&kernel("6.12"))
        .arg("--initrd", &large)
        .args("--memory 256M")
        .run()
        .must_say(CANNOT_START, &[&large, "314572800 bytes", "--memory 3"]);
    let _ = std::fs::remove_file(&large);
    boot(&kernel("6.12")).args("--initrd /nowhere/initrd").run().must_say(CANNOT_START, &["initrd", "/nowhere/initrd"]);
}

#[test]
fn too_little_memory_says_how_much_would_do() {
    boot(&kernel("6.12")).args("--memory 16M").run().must_say(CANNOT_START, &["16 MiB", "--memory "]);
    boot(&kernel("6.12")).args("--memory 4K").run().must_say(CANNOT_START, &["--memory 2M"]);
    boot(&kernel("6.12")).args("--memory 900G").run().must_say(CANNOT_START, &["--memory"]);
    boot(&kernel("6.12")).args("--memory 12Q").run().must_say(USAGE, &["12Q", "512M"]);
}

#[test]
fn unknown_cpu_models_and_features_get_the_nearest() {
    glassvisor("boot --builtin --cpu glasvisor-v2").run().must_say(CANNOT_START, &["glasvisor-v2", "'glassvisor-v2'"]);
    glassvisor("boot --builtin --cpu glassvisor-v2,+nonstop_tcs")
        .run()
        .must_say(CANNOT_START, &["nonstop_tcs", "nonstop_tsc"]);
    glassvisor("boot --builtin --cpu glassvisor-v2,-")
        .run()
        .must_say(CANNOT_START, &["no CPU feature ''", "/proc/cpuinfo"]);
}

#[test]
fn impossible_numbers_are_refused_with_the_range() {
    glassvisor("boot --builtin --cpus 0").run().must_say(USAGE, &["--cpus", "1..=16"]);
    glassvisor("boot --builtin --cpus 17").run().must_say(USAGE, &["--cpus", "1..=16"]);
    glassvisor("boot --builtin --max-time 0").run().must_say(USAGE, &["--max-time"]);
    glassvisor("boot").run().must_say(USAGE, &["--kernel", "--builtin"]);
    glassvisor("boot --builtn").run().must_say(USAGE, &["--builtin"]);
}

#[test]
fn disks_that_cannot_be_used_are_named() {
    let disk = |path: &str| glassvisor("boot --builtin").arg("--disk", path).run();
    disk("/nowhere/disk.img").must_say(CANNOT_START, &["/nowhere/disk.img", "No such file", "check the path"]);
    disk("/proc/self").must_say(CANNOT_START, &["/proc/self", "directory", "raw image"]);
    disk("/dev/null").must_say(CANNOT_START, &["/dev/null", "not a disk image"]);
    disk(&file("tiny-disk", b"few bytes")).must_say(CANNOT_START, &["tiny-disk", "9 bytes", "truncate"]);
    // A link to itself can be read by nobody, root included.
    let ring = new_file("ring-disk");
    symlink(&ring, &ring).expect("a link of ours");
    disk(&ring).must_say(CANNOT_START, &["ring-disk", "cannot open the disk"]);
    std::fs::remove_file(&ring).expect("just made");
    let nine =
        (0..9).fold(glassvisor("boot --builtin"), |g, n| g.arg("--disk", &file(&format!("disk-{n}"), &[0; 512])));
    nine.run().must_say(CANNOT_START, &["9 disks", "up to 8"]);
}

#[test]
fn a_disk_without_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let path = file("secret-disk", &[0; 4096]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("a file of ours");
    let readable = std::fs::File::open(&path).is_ok();
    let ended = glassvisor("boot --builtin").arg("--disk", &path).run();
    let _ = std::fs::remove_file(&path);
    if readable {
        // Root reads everything.
        assert_eq!(ended.status, 0, "{ended}");
    } else {
        ended.must_say(CANNOT_START, &["secret-disk", "Permission denied", "permissions"]);
    }
}

#[test]
fn output_files_that_cannot_be_written_are_told() {
    glassvisor("boot --builtin --trace /nowhere/trace").run().must_say(CANNOT_START, &["/nowhere/trace", "trace"]);
    let ended = glassvisor("boot --builtin --stats json --stats-file /nowhere/stats").run();
    ended.must_say(CANNOT_START, &["/nowhere/stats", "statistics"]);
    if Path::new("/dev/full").exists() {
        glassvisor("boot --builtin --trace /dev/full").run().must_say(CANNOT_START, &["trace"]);
    }
}

#[test]
fn a_named_pipe_as_kernel_does_not_hang() {
    let path = new_file("pipe-kernel");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe of ours");
    let running: Running = boot(&path).start();
    running.end().must_say(CANNOT_START, &["pipe-kernel", "not a plain file"]);
    let _ = std::fs::remove_file(&path);
}
