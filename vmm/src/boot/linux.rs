//! Linux boot parameters (the "zero page"), shared by bzImage of both widths and plain vmlinux.

use linux_loader::configurator::{BootConfigurator, BootParams, linux::LinuxBootConfigurator};
use linux_loader::loader::bootparam::{boot_e820_entry, boot_params, setup_header};
use vm_memory::GuestAddress;

use super::{BootError, BootSource, Entry, PlacedInitrd, layout, placement};
use crate::memory::{GuestRam, RangeKind};

const HEADER_MAGIC: u32 = 0x5372_6448;
const BOOT_FLAG: u16 = 0xaa55;
/// Loader type for a loader without an assigned number.
const LOADER_UNDEFINED: u8 = 0xff;
const E820_RAM: u32 = 1;
const E820_RESERVED: u32 = 2;
/// What a kernel takes that does not say (x86's COMMAND_LINE_SIZE, without the NUL).
pub const DEFAULT_COMMAND_LINE_MAX: usize = 2047;

/// A header for a kernel that comes without one.
pub fn synthetic_header() -> setup_header {
    setup_header {
        header: HEADER_MAGIC,
        boot_flag: BOOT_FLAG,
        version: 0x020f,
        kernel_alignment: 0x20_0000,
        cmdline_size: DEFAULT_COMMAND_LINE_MAX as u32,
        ..Default::default()
    }
}

/// Writes boot parameters and the command line; returns the entry with their address where the 64-bit and the 32-bit
/// protocol want it, in RSI. The 32-bit one wants EBP, EDI and EBX to be zero too, which they are.
pub fn write_boot_params(
    ram: &GuestRam,
    source: &BootSource<'_>,
    mut header: setup_header,
    initrd: Option<PlacedInitrd>,
    mut entry: Entry,
) -> Result<Entry, BootError> {
    let max = match header.cmdline_size {
        0 => 255,
        size => size as usize,
    };
    placement::place_command_line(ram, source.command_line, layout::COMMAND_LINE, max)?;
    header.type_of_loader = LOADER_UNDEFINED;
    header.cmd_line_ptr = layout::COMMAND_LINE as u32;
    if let Some(initrd) = initrd {
        // Both fit: initrds are placed below 4 GiB.
        header.ramdisk_image = initrd.start as u32;
        header.ramdisk_size = initrd.size as u32;
    }
    let mut params = boot_params { hdr: header, acpi_rsdp_addr: source.rsdp, ..Default::default() };
    for (slot, range) in params.e820_table.iter_mut().zip(ram.map()) {
        let type_ = match range.kind {
            RangeKind::Ram => E820_RAM,
            RangeKind::Reserved => E820_RESERVED,
        };
        *slot = boot_e820_entry { addr: range.start, size: range.size, r#type: type_ };
        params.e820_entries += 1;
    }
    let boot_params = BootParams::new(&params, GuestAddress(layout::BOOT_PARAMS));
    LinuxBootConfigurator::write_bootparams(&boot_params, ram.mmap().as_ref())
        .map_err(|error| source.damaged(format!("its boot parameters cannot be written ({error})")))?;
    entry.regs.rsi = layout::BOOT_PARAMS;
    Ok(entry)
}
