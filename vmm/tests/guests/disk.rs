//! virtio disks: a guest reads what is in the file.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::program::{debian, file};

/// Bytes without a pattern (xorshift), equal in each run.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// By coreutils: not by code of ours.
pub fn sha256(path: &str) -> String {
    let output = Command::new("sha256sum").arg(path).output().expect("sha256sum of coreutils");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

#[test]
fn a_guest_reads_a_writable_and_a_read_only_disk_to_the_last_byte() {
    let (writable, read_only) = (file("disk-rw.img", &noise(1, 3 << 20)), file("disk-ro.img", &noise(2, 512 * 777)));
    std::fs::set_permissions(&read_only, std::fs::Permissions::from_mode(0o444)).expect("a file of ours");
    let sums = [sha256(&writable), sha256(&read_only)];
    let ended = debian("6.12", "gv.disk").arg("--disk", &writable).arg("--disk", &read_only).run();
    let _ = std::fs::remove_file(&read_only);
    assert_eq!(ended.status, 0, "{ended}");
    ended.must_print(&format!("DISK name=vda sectors=6144 sha256={}", sums[0]));
    ended.must_print(&format!("DISK name=vdb sectors=777 sha256={}", sums[1]));
    assert!(ended.stdout.contains("GLASSVISOR-DONE status=0 "), "{ended}");
    assert_eq!(sha256(&writable), sums[0], "reading changed the disk");
}
