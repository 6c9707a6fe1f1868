//! ELF64 kernels: by their PVH note, or Linux's own 64-bit entry.

use std::io::Cursor;

use linux_loader::loader::KernelLoader;
use linux_loader::loader::elf::{Elf, PvhBootCapability};

use super::{BootError, BootSource, Entry, EntryMode, Loaded, Protocol, Sighting, identify, linux, placement, pvh};
use crate::memory::{EXTENDED_START, GuestRam};

const HEADER_SIZE: u64 = 64;
const SEGMENT_SIZE: u64 = 56;
const LITTLE_ENDIAN: u8 = 1;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_DYNAMIC: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Notes are a few hundred bytes; a table of megabytes is damage.
const NOTES_MAX: u64 = 1 << 20;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Checks every program header against the file and guest memory, so that what fails is named; returns the end of the
/// kernel in memory.
fn check(ram: &GuestRam, source: &BootSource<'_>) -> Result<u64, BootError> {
    let bytes = source.kernel;
    let actual = bytes.len() as u64;
    let truncated = |what, expected| BootError::Truncated { path: source.path(), what, expected, actual };
    if actual < HEADER_SIZE {
        return Err(truncated("its ELF header", HEADER_SIZE));
    }
    let foreign = bytes[5] != LITTLE_ENDIAN
        || u16_at(bytes, 18) != MACHINE_X86_64
        || !matches!(u16_at(bytes, 16), TYPE_EXECUTABLE | TYPE_DYNAMIC);
    if foreign {
        let Sighting { looks_like, advice } = identify(bytes);
        return Err(BootError::Foreign { path: source.path(), looks_like, advice });
    }
    let (table, entry_size, count) = (u64_at(bytes, 32), u16_at(bytes, 54), u16_at(bytes, 56));
    if u64::from(entry_size) != SEGMENT_SIZE || table < HEADER_SIZE {
        return Err(source.damaged("its program header table has an unknown form"));
    }
    let table_end = table
        .checked_add(u64::from(count) * SEGMENT_SIZE)
        .ok_or_else(|| source.damaged("its program header table is beyond all bounds"))?;
    if table_end > actual {
        return Err(truncated("its program header table", table_end));
    }
    let mut kernel_end = 0;
    for index in 0..u64::from(count) {
        let header = &bytes[(table + index * SEGMENT_SIZE) as usize..][..SEGMENT_SIZE as usize];
        let (kind, offset, physical) = (u32_at(header, 0), u64_at(header, 8), u64_at(header, 24));
        let (file_size, memory_size) = (u64_at(header, 32), u64_at(header, 40));
        if kind != PT_LOAD && kind != PT_NOTE {
            continue;
        }
        let file_end = offset
            .checked_add(file_size)
            .ok_or_else(|| source.damaged(format!("segment {index} is beyond all bounds of the file")))?;
        if file_end > actual {
            return Err(truncated("one of its segments", file_end));
        }
        if kind == PT_NOTE {
            if file_size > NOTES_MAX {
                return Err(source.damaged(format!("its notes (segment {index}) have {file_size} bytes")));
            }
            continue;
        }
        let end = physical
            .checked_add(memory_size.max(file_size))
            .ok_or_else(|| source.damaged(format!("segment {index} is beyond all bounds of memory")))?;
        if end == physical {
            continue;
        }
        if physical < EXTENDED_START {
            return Err(BootError::Overlap {
                path: source.path(),
                what: "a segment",
                start: physical,
                end,
                other: "boot data and firmware tables",
            });
        }
        if end > ram.low_end() {
            return Err(BootError::TooLittleMemory {
                path: source.path(),
                what: "a segment",
                start: physical,
                end,
                have: ram.size(),
                need: end,
            });
        }
        kernel_end = kernel_end.max(end);
    }
    if kernel_end == 0 {
        return Err(source.damaged("it has nothing to load"));
    }
    Ok(kernel_end)
}

/// Loads an ELF64 kernel.
pub fn load(ram: &GuestRam, source: &BootSource<'_>) -> Result<Loaded, BootError> {
    let kernel_end = check(ram, source)?;
    let result = Elf::load(ram.mmap().as_ref(), None, &mut Cursor::new(source.kernel), None)
        .map_err(|error| source.damaged(error.to_string()))?;
    let initrd = source
        .initrd
        .map(|initrd| placement::place_initrd(ram, initrd, kernel_end, u64::from(u32::MAX)))
        .transpose()?;
    let within = |address: u64| (EXTENDED_START..kernel_end).contains(&address);
    let outside =
        |what: &str, address: u64| source.damaged(format!("its {what} {address:#x} is outside of the kernel"));
    if let PvhBootCapability::PvhEntryPresent(address) = result.pvh_boot_cap {
        if !within(address.0) {
            return Err(outside("PVH entry", address.0));
        }
        let entry = pvh::write_start_info(ram, source, initrd, address.0)?;
        return Ok(Loaded { protocol: Protocol::Pvh, entry, kernel_end, initrd });
    }
    if !contains(source.kernel, b"Linux version ") {
        return Err(source.unsupported(
            "an ELF64 image is started by its PVH note (XEN_ELFNOTE_PHYS32_ENTRY), and this one has none",
        ));
    }
    if !within(result.kernel_load.0) {
        return Err(outside("entry", result.kernel_load.0));
    }
    let start = Entry::at(EntryMode::Long64, result.kernel_load.0);
    let entry = linux::write_boot_params(ram, source, linux::synthetic_header(), initrd, start)?;
    Ok(Loaded { protocol: Protocol::LinuxElf, entry, kernel_end, initrd })
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}
