//! PVH: the Xen HVM direct boot ABI, which Linux and the BSDs also take from other machines.

use linux_loader::configurator::{BootConfigurator, BootParams, pvh::PvhBootConfigurator};
use linux_loader::loader::elf::start_info::{
    XEN_HVM_MEMMAP_TYPE_RAM, XEN_HVM_MEMMAP_TYPE_RESERVED, XEN_HVM_START_MAGIC_VALUE, hvm_memmap_table_entry,
    hvm_modlist_entry, hvm_start_info,
};
use vm_memory::GuestAddress;

use super::{BootError, BootSource, Entry, EntryMode, PlacedInitrd, layout, linux, placement};
use crate::memory::{GuestRam, RangeKind};

/// Writes start info, memory map, modules and the command line; returns the entry.
pub fn write_start_info(
    ram: &GuestRam,
    source: &BootSource<'_>,
    initrd: Option<PlacedInitrd>,
    entry_rip: u64,
) -> Result<Entry, BootError> {
    placement::place_command_line(
        ram,
        source.command_line,
        layout::COMMAND_LINE,
        linux::DEFAULT_COMMAND_LINE_MAX,
    )?;
    let map: Vec<_> = ram
        .map()
        .iter()
        .map(|range| hvm_memmap_table_entry {
            addr: range.start,
            size: range.size,
            type_: match range.kind {
                RangeKind::Ram => XEN_HVM_MEMMAP_TYPE_RAM,
                RangeKind::Reserved => XEN_HVM_MEMMAP_TYPE_RESERVED,
            },
            reserved: 0,
        })
        .collect();
    let modules: Vec<_> = initrd
        .iter()
        .map(|initrd| hvm_modlist_entry { paddr: initrd.start, size: initrd.size, ..Default::default() })
        .collect();
    let start_info = hvm_start_info {
        magic: XEN_HVM_START_MAGIC_VALUE,
        version: 1,
        nr_modules: modules.len() as u32,
        modlist_paddr: if modules.is_empty() { 0 } else { layout::PVH_MODULES },
        cmdline_paddr: layout::COMMAND_LINE,
        rsdp_paddr: source.rsdp,
        memmap_paddr: layout::PVH_MEMORY_MAP,
        memmap_entries: map.len() as u32,
        ..Default::default()
    };
    let mut params = BootParams::new(&start_info, GuestAddress(layout::PVH_START_INFO));
    params.set_sections(&map, GuestAddress(layout::PVH_MEMORY_MAP));
    params.set_modules(&modules, GuestAddress(layout::PVH_MODULES));
    PvhBootConfigurator::write_bootparams(&params, ram.mmap().as_ref())
        .map_err(|error| source.damaged(format!("its start info cannot be written ({error})")))?;
    let mut entry = Entry::at(EntryMode::Protected32, entry_rip);
    entry.regs.rbx = layout::PVH_START_INFO;
    Ok(entry)
}
