//! bzImage by Linux's 64-bit boot protocol, or by the 32-bit one where the kernel is a 32-bit one.

use std::io::Cursor;

use linux_loader::loader::{KernelLoader, bzimage::BzImage};
use vm_memory::GuestAddress;

use super::{BootError, BootSource, Entry, EntryMode, Loaded, Protocol, linux, placement};
use crate::memory::{EXTENDED_START, GuestRam};

const MAGIC_AT: usize = 0x202;
const SETUP_SECTS_AT: usize = 0x1f1;
const SYSSIZE_AT: usize = 0x1f4;
/// End of the setup header's fields that the 64-bit protocol needs.
const HEADER_END: u64 = 0x270;
const SECTOR: u64 = 512;
const PARAGRAPH: u64 = 16;
/// First protocol that says whether a 64-bit entry exists.
const VERSION_XLOADFLAGS: u16 = 0x020c;
const XLF_KERNEL_64: u16 = 1;
const LOADED_HIGH: u8 = 1;
/// The 64-bit entry lies this far into the protected-mode code; the 32-bit one at its start.
const ENTRY_64: u64 = 0x200;

/// Whether the bytes carry the setup header's magic.
pub fn is_one(kernel: &[u8]) -> bool {
    kernel.get(MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"HdrS"))
}

/// Loads a bzImage at 1 MiB, from where it unpacks itself to the address of its choice.
pub fn load(ram: &GuestRam, source: &BootSource<'_>) -> Result<Loaded, BootError> {
    let kernel = source.kernel;
    let actual = kernel.len() as u64;
    let truncated = |what, expected| BootError::Truncated { path: source.path(), what, expected, actual };
    if actual < HEADER_END {
        return Err(truncated("its setup header", HEADER_END));
    }
    let setup_sectors = match kernel[SETUP_SECTS_AT] {
        0 => 4,
        n => u64::from(n),
    };
    let setup_end = (setup_sectors + 1) * SECTOR;
    let paragraphs = u32::from_le_bytes([
        kernel[SYSSIZE_AT],
        kernel[SYSSIZE_AT + 1],
        kernel[SYSSIZE_AT + 2],
        kernel[SYSSIZE_AT + 3],
    ]);
    let code_end = setup_end + u64::from(paragraphs) * PARAGRAPH;
    // The header counts whole paragraphs; a file may end within the last.
    if code_end >= actual + PARAGRAPH {
        return Err(truncated("its protected-mode code", code_end));
    }
    if code_end < setup_end + ENTRY_64 + 1 {
        return Err(source.damaged("its header says that there is no protected-mode code"));
    }
    // Bytes after the code are a signature or padding, and may be many: they are not for the guest.
    let load_end = EXTENDED_START + (code_end - setup_end);
    let too_little = |start, end: u64| BootError::TooLittleMemory {
        path: source.path(),
        what: "the kernel",
        start,
        end,
        have: ram.size(),
        need: end,
    };
    if load_end > ram.low_end() {
        return Err(too_little(EXTENDED_START, load_end));
    }
    let result = BzImage::load(
        ram.mmap().as_ref(),
        Some(GuestAddress(EXTENDED_START)),
        &mut Cursor::new(&kernel[..code_end.min(actual) as usize]),
        None,
    )
    .map_err(|error| source.damaged(format!("its header is not that of a bzImage ({error})")))?;
    let Some(header) = result.setup_header else {
        return Err(source.damaged("it has no setup header"));
    };
    let (version, flags) = (header.version, header.xloadflags);
    if header.loadflags & LOADED_HIGH == 0 || version < VERSION_XLOADFLAGS {
        return Err(source.unsupported(format!(
            "boot protocol {}.{:02} is older than 2.12 (Linux 3.8); use a newer kernel",
            version >> 8,
            version & 0xff
        )));
    }
    // A relocatable kernel that was loaded below its preferred address moves there before it unpacks.
    let start = EXTENDED_START.max(header.pref_address);
    let kernel_end = start
        .checked_add(u64::from(header.init_size))
        .ok_or_else(|| source.damaged("its preferred address and size overflow"))?
        .max(load_end);
    if kernel_end > ram.low_end() {
        return Err(too_little(start, kernel_end));
    }
    let highest = match header.initrd_addr_max {
        0 => 0x37ff_ffff,
        max => u64::from(max),
    };
    let initrd = source.initrd.map(|initrd| placement::place_initrd(ram, initrd, kernel_end, highest)).transpose()?;
    let start = match flags & XLF_KERNEL_64 {
        0 => Entry::at(EntryMode::Protected32, EXTENDED_START),
        _ => Entry::at(EntryMode::Long64, EXTENDED_START + ENTRY_64),
    };
    let entry = linux::write_boot_params(ram, source, header, initrd, start)?;
    Ok(Loaded { protocol: Protocol::BzImage, entry, kernel_end, initrd })
}
