//! What can be wrong with a boot image: each message says what, where, and what to do.

use crate::memory::MemoryError;
use crate::vm::VmError;

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Why a guest cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("{path}: cannot read the {what}: {source}; check the path and its permissions")]
    Read { what: &'static str, path: String, source: std::io::Error },
    #[error("{path}: not a kernel that can be booted: it looks like {looks_like}; {advice}")]
    Foreign { path: String, looks_like: String, advice: &'static str },
    #[error(
        "{path}: the kernel image is cut short: {what} ends at byte {expected} but the file has {actual}; copy it again"
    )]
    Truncated { path: String, what: &'static str, expected: u64, actual: u64 },
    #[error("{path}: the kernel image is damaged: {what}; copy or build it again")]
    Damaged { path: String, what: String },
    #[error("{path}: the kernel image needs what the machine does not have: {what}")]
    Unsupported { path: String, what: String },
    #[error(
        "{path}: {what} at {start:#x}..{end:#x} is outside of the guest's {have_mib} MiB of memory; --memory {need_mib}M or more would do",
        have_mib = mib(*have), need_mib = mib(*need)
    )]
    TooLittleMemory { path: String, what: &'static str, start: u64, end: u64, have: u64, need: u64 },
    #[error(
        "{path}: {what} at {start:#x}..{end:#x} overlaps the area where the machine keeps {other}; link the kernel elsewhere (1 MiB and above is free)"
    )]
    Overlap { path: String, what: &'static str, start: u64, end: u64, other: &'static str },
    #[error(
        "{path}: the initrd of {size} bytes does not fit between the kernel's end at {kernel_end:#x} and {limit:#x}; --memory {need_mib}M or more would do",
        need_mib = mib(*need)
    )]
    InitrdTooLarge { path: String, size: u64, kernel_end: u64, limit: u64, need: u64 },
    #[error(
        "{path}: the initrd of {size} bytes cannot fit with any amount of memory: this kernel takes it between {kernel_end:#x} and {limit:#x} only; make it smaller"
    )]
    InitrdNeverFits { path: String, size: u64, kernel_end: u64, limit: u64 },
    #[error("{path}: the initrd is empty; leave --initrd away or give one with content")]
    InitrdEmpty { path: String },
    #[error("the kernel command line has {len} bytes, and this kernel takes {max}; shorten --append")]
    CommandLineTooLong { len: usize, max: usize },
    #[error("the kernel command line has a NUL byte at {at}; remove it from --append")]
    CommandLineNul { at: usize },
    #[error("{path}: the firmware image {what}; give a BIOS image (on Debian: /usr/share/seabios/bios-256k.bin)")]
    Firmware { path: String, what: String },
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("cannot set up the bootstrap processor: {0}")]
    Vm(#[from] VmError),
}
