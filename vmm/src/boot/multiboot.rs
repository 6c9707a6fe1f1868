//! Multiboot version 1: ELF32 images, and flat images that give their addresses in the header.

use super::placement::{PlacedInitrd, place_command_line, place_initrd};
use super::{BootError, BootSource, Entry, EntryMode, Loaded, Protocol, Sighting, identify, layout};
use crate::memory::{ACPI_END, ACPI_START, CONVENTIONAL_END, EXTENDED_START, GuestRam, RangeKind};

const HEADER_MAGIC: u32 = 0x1bad_b002;
/// What EAX holds at the entry.
const LOADER_MAGIC: u64 = 0x2bad_b002;
/// The header lies within the first 8 KiB.
const SEARCH: usize = 8192;
const FLAG_PAGE_ALIGN: u32 = 1;
const FLAG_MEMORY_INFO: u32 = 2;
const FLAG_ADDRESSES: u32 = 1 << 16;
/// Flags of which a loader must refuse those that it does not know.
const MANDATORY_FLAGS: u32 = 0xffff;

const INFO_MEMORY: u32 = 1;
const INFO_COMMAND_LINE: u32 = 1 << 2;
const INFO_MODULES: u32 = 1 << 3;
const INFO_MEMORY_MAP: u32 = 1 << 6;
const INFO_LOADER_NAME: u32 = 1 << 9;

const INFO_SIZE: usize = 116;
const MODULE_AT: u64 = layout::MULTIBOOT + 0x80;
const NAME_AT: u64 = layout::MULTIBOOT + 0xa0;
const MAP_AT: u64 = layout::MULTIBOOT + 0x100;
const MODULE_NAME_AT: u64 = layout::MULTIBOOT + 0x400;
const COMMAND_LINE_AT: u64 = layout::MULTIBOOT + 0x800;
const COMMAND_LINE_MAX: usize = 4095;

const ELF_HEADER: u64 = 52;
const ELF_SEGMENT: u64 = 32;
const PT_LOAD: u32 = 1;
const MACHINE_386: u16 = 3;

/// A multiboot header and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    offset: usize,
    flags: u32,
}

fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    let at = usize::try_from(at).ok()?;
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Finds a header with a right checksum.
pub fn find_header(kernel: &[u8]) -> Option<Header> {
    (0..kernel.len().min(SEARCH).saturating_sub(11)).step_by(4).find_map(|offset| {
        let word = |n: u64| u32_at(kernel, offset as u64 + n * 4);
        let (magic, flags, checksum) = (word(0)?, word(1)?, word(2)?);
        let right = magic == HEADER_MAGIC && magic.wrapping_add(flags).wrapping_add(checksum) == 0;
        right.then_some(Header { offset, flags })
    })
}

/// A piece of the file and where it goes.
struct Piece {
    file_start: u64,
    file_size: u64,
    start: u64,
    memory_size: u64,
}

/// Loads a multiboot image.
pub fn load(ram: &GuestRam, source: &BootSource<'_>) -> Result<Loaded, BootError> {
    let kernel = source.kernel;
    let Some(header) = find_header(kernel) else {
        if u16_at(kernel, 18) == Some(MACHINE_386) {
            return Err(source.unsupported(
                "a 32-bit ELF image is started by its multiboot header, and this one has none in its first 8 KiB",
            ));
        }
        let Sighting { looks_like, advice } = identify(kernel);
        return Err(BootError::Foreign { path: source.path(), looks_like, advice });
    };
    let unknown = header.flags & MANDATORY_FLAGS & !(FLAG_PAGE_ALIGN | FLAG_MEMORY_INFO);
    if unknown != 0 {
        return Err(source.unsupported(format!(
            "its multiboot header asks for features {unknown:#x} (bit 2 is a video mode); build it without"
        )));
    }
    let (pieces, entry) = if header.flags & FLAG_ADDRESSES != 0 {
        flat_pieces(source, header)?
    } else {
        elf_pieces(source)?
    };
    let mut kernel_end = EXTENDED_START;
    for piece in &pieces {
        kernel_end = kernel_end.max(load_piece(ram, source, piece)?);
    }
    if !ram.contains(entry, 1) {
        return Err(source.damaged(format!("its entry {entry:#x} is outside of guest memory")));
    }
    let initrd = source
        .initrd
        .map(|initrd| place_initrd(ram, initrd, kernel_end, u64::from(u32::MAX)))
        .transpose()?;
    write_info(ram, source, initrd)?;
    let mut entry = Entry::at(EntryMode::Protected32, entry);
    entry.regs.rax = LOADER_MAGIC;
    entry.regs.rbx = layout::MULTIBOOT;
    Ok(Loaded { protocol: Protocol::Multiboot, entry, kernel_end, initrd })
}

fn flat_pieces(source: &BootSource<'_>, header: Header) -> Result<(Vec<Piece>, u64), BootError> {
    let at = header.offset as u64;
    let field = |n: u64| {
        u32_at(source.kernel, at + 12 + n * 4).map(u64::from).ok_or_else(|| BootError::Truncated {
            path: source.path(),
            what: "its multiboot header",
            expected: at + 32,
            actual: source.kernel.len() as u64,
        })
    };
    let (header_address, start, load_end, bss_end, entry) =
        (field(0)?, field(1)?, field(2)?, field(3)?, field(4)?);
    let length = source.kernel.len() as u64;
    let file_start = header_address
        .checked_sub(start)
        .and_then(|before| at.checked_sub(before))
        .ok_or_else(|| source.damaged("its multiboot addresses contradict each other"))?;
    let file_size = match load_end {
        0 => length - file_start,
        end => end
            .checked_sub(start)
            .ok_or_else(|| source.damaged("its multiboot load area ends before it starts"))?,
    };
    let memory_size = file_size.max(bss_end.saturating_sub(start));
    Ok((vec![Piece { file_start, file_size, start, memory_size }], entry))
}

fn elf_pieces(source: &BootSource<'_>) -> Result<(Vec<Piece>, u64), BootError> {
    let kernel = source.kernel;
    let truncated = |what, expected| BootError::Truncated {
        path: source.path(),
        what,
        expected,
        actual: kernel.len() as u64,
    };
    let header_end = || truncated("its ELF header", ELF_HEADER);
    let is_elf32_386 =
        kernel.starts_with(b"\x7fELF\x01\x01") && u16_at(kernel, 18).ok_or_else(header_end)? == MACHINE_386;
    if !is_elf32_386 {
        let Sighting { looks_like, .. } = identify(kernel);
        return Err(source.unsupported(format!(
            "it has a multiboot header, but is {looks_like}; multiboot takes 32-bit x86 ELF, or flat images with addresses (flag 16)"
        )));
    }
    let entry = u64::from(u32_at(kernel, 24).ok_or_else(header_end)?);
    let table = u64::from(u32_at(kernel, 28).ok_or_else(header_end)?);
    let entry_size = u64::from(u16_at(kernel, 42).ok_or_else(header_end)?);
    let count = u64::from(u16_at(kernel, 44).ok_or_else(header_end)?);
    if entry_size != ELF_SEGMENT {
        return Err(source.damaged("its program header table has an unknown form"));
    }
    let mut pieces = Vec::new();
    for index in 0..count {
        let at = table + index * ELF_SEGMENT;
        let field = |n: u64| {
            u32_at(kernel, at + n * 4)
                .ok_or_else(|| truncated("its program header table", table + count * ELF_SEGMENT))
        };
        if field(0)? == PT_LOAD {
            pieces.push(Piece {
                file_start: u64::from(field(1)?),
                file_size: u64::from(field(4)?),
                start: u64::from(field(3)?),
                memory_size: u64::from(field(5)?.max(field(4)?)),
            });
        }
    }
    pieces.retain(|piece| piece.memory_size > 0);
    if pieces.is_empty() {
        return Err(source.damaged("it has nothing to load"));
    }
    Ok((pieces, entry))
}

fn load_piece(ram: &GuestRam, source: &BootSource<'_>, piece: &Piece) -> Result<u64, BootError> {
    // All four are sums of 32-bit values or lengths of files: no overflow.
    let (file_end, end) = (piece.file_start + piece.file_size, piece.start + piece.memory_size);
    let bytes = usize::try_from(piece.file_start)
        .ok()
        .zip(usize::try_from(file_end).ok())
        .and_then(|(from, to)| source.kernel.get(from..to))
        .ok_or_else(|| BootError::Truncated {
            path: source.path(),
            what: "one of its segments",
            expected: file_end,
            actual: source.kernel.len() as u64,
        })?;
    for (from, to, other) in [
        (layout::GDT, layout::GDT + 48, "the first descriptor table"),
        (layout::MULTIBOOT, CONVENTIONAL_END, "the multiboot information"),
        (ACPI_START, ACPI_END, "ACPI tables"),
    ] {
        if piece.start < to && from < end {
            let path = source.path();
            return Err(BootError::Overlap { path, what: "a segment", start: piece.start, end, other });
        }
    }
    if end > ram.low_end() {
        return Err(BootError::TooLittleMemory {
            path: source.path(),
            what: "a segment",
            start: piece.start,
            end,
            have: ram.size(),
            need: end,
        });
    }
    ram.write(piece.start, bytes)?;
    Ok(end)
}

/// Writes the information structure and what it points at.
fn write_info(ram: &GuestRam, source: &BootSource<'_>, initrd: Option<PlacedInitrd>) -> Result<(), BootError> {
    let mut info = [0u8; INFO_SIZE];
    let mut put = |at: usize, value: u64| {
        // All values are addresses, sizes and counts below 4 GiB.
        info[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    };
    let mut flags = INFO_MEMORY | INFO_COMMAND_LINE | INFO_MEMORY_MAP | INFO_LOADER_NAME;
    put(4, CONVENTIONAL_END / 1024);
    put(8, (ram.low_end() - EXTENDED_START) / 1024);
    put(16, COMMAND_LINE_AT);
    place_command_line(ram, source.command_line, COMMAND_LINE_AT, COMMAND_LINE_MAX)?;
    if let Some(initrd) = initrd {
        flags |= INFO_MODULES;
        put(20, 1);
        put(24, MODULE_AT);
        let mut module = Vec::new();
        for value in [initrd.start, initrd.start + initrd.size, MODULE_NAME_AT, 0] {
            module.extend_from_slice(&(value as u32).to_le_bytes());
        }
        ram.write(MODULE_AT, &module)?;
        ram.write(MODULE_NAME_AT, b"initrd\0")?;
    }
    let mut map = Vec::new();
    for range in ram.map() {
        let kind: u32 = match range.kind {
            RangeKind::Ram => 1,
            RangeKind::Reserved => 2,
        };
        map.extend_from_slice(&20u32.to_le_bytes());
        map.extend_from_slice(&range.start.to_le_bytes());
        map.extend_from_slice(&range.size.to_le_bytes());
        map.extend_from_slice(&kind.to_le_bytes());
    }
    ram.write(MAP_AT, &map)?;
    put(44, map.len() as u64);
    put(48, MAP_AT);
    put(64, NAME_AT);
    put(0, u64::from(flags));
    ram.write(NAME_AT, b"glassvisor\0")?;
    ram.write(layout::MULTIBOOT, &info)?;
    Ok(())
}
