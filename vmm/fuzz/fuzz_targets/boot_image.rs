//! No boot image may bring the loader down: `cd vmm && cargo +nightly fuzz run boot_image`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vmm::boot::{BootSource, Initrd, load};
use vmm::memory::GuestRam;

static RAM: LazyLock<GuestRam> = LazyLock::new(|| GuestRam::new(4 << 20).expect("4 MiB of memory"));

fuzz_target!(|kernel: &[u8]| {
    let initrd = kernel.len().is_multiple_of(2).then_some(Initrd { path: "initrd", bytes: b"initrd" });
    let source =
        BootSource { kernel_path: "kernel", kernel, initrd, command_line: "console=ttyS0", rsdp: 0xe_0000 };
    if let Err(error) = load(&RAM, &source) {
        assert!(!error.to_string().is_empty());
    }
});
