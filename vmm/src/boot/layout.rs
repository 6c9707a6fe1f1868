//! Where loaders keep what they hand to a kernel: all in conventional memory, below the kernel.

/// Global descriptor table for the entry.
pub const GDT: u64 = 0x500;
/// PVH start info, followed by the module list and the memory map.
pub const PVH_START_INFO: u64 = 0x6000;
pub const PVH_MODULES: u64 = 0x6100;
pub const PVH_MEMORY_MAP: u64 = 0x6200;
/// Linux boot parameters ("zero page").
pub const BOOT_PARAMS: u64 = 0x7000;
/// Page tables of the 64-bit entry: PML4, PDPT, then four page directories.
pub const PAGE_TABLES: u64 = 0x9000;
/// Kernel command line.
pub const COMMAND_LINE: u64 = 0x2_0000;
/// Room for it.
pub const COMMAND_LINE_ROOM: usize = 0x1_0000;
/// Multiboot information with everything that it points at, the command line included.
pub const MULTIBOOT: u64 = 0x9_0000;
