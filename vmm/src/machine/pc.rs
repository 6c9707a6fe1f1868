//! The chipset around a firmware image, and what the machine tells firmware about itself.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::acpi::{self, Platform, loader};
use crate::devices::pc::{
    DEBUG_CONSOLE, DMA_1, DMA_2, DMA_PAGES, DebugPort, DmaRegisters, FW_CFG, FirmwareConfig, Item, KeyboardController,
    PciConfig, Port92, SYSTEM_CONTROL_A,
};
use crate::devices::{Bus, BusError, COM1, I8042, IrqLines, PCI_CONFIG, PCI_CONFIG_PORTS, PowerSwitch};
use crate::memory::{GuestRam, HIGH_RAM_START};

/// Default of [`FirmwareSource::menu_wait_ms`]: SeaBIOS's own.
pub const DEFAULT_MENU_WAIT_MS: u32 = 2500;

/// Firmware to start with.
pub struct FirmwareSource<'a> {
    /// Name of the image for messages.
    pub path: &'a str,
    pub image: &'a [u8],
    /// How long the boot menu is offered, in guest milliseconds.
    pub menu_wait_ms: u32,
    /// Where the firmware's own messages go.
    pub debug_console: Option<Box<dyn Write + Send>>,
}

const E820_RAM: u32 = 1;
const E820_ENTRY: usize = 20;

/// RAM as firmware finds it; it reserves below 1 MiB what it needs by itself.
fn e820(ram: &GuestRam) -> Vec<u8> {
    let mut entries = Vec::with_capacity(2 * E820_ENTRY);
    for (start, size) in ram.regions() {
        entries.extend(start.to_le_bytes());
        entries.extend(size.to_le_bytes());
        entries.extend(E820_RAM.to_le_bytes());
    }
    entries
}

/// Devices of the chipset, in place of those of a machine that starts with a kernel.
pub fn add_chipset(
    bus: &mut Bus,
    lines: &IrqLines,
    switch: &PowerSwitch,
    debug_console: Option<Box<dyn Write + Send>>,
) -> Result<(), BusError> {
    let keyboard = Arc::new(Mutex::new(KeyboardController::new(lines.clone(), switch.clone())));
    bus.add_ports(I8042, 1, &keyboard)?;
    bus.add_ports(I8042 + 4, 1, &keyboard)?;
    bus.add_ports(PCI_CONFIG, PCI_CONFIG_PORTS, &Arc::new(Mutex::new(PciConfig::new(switch.clone()))))?;
    bus.add_ports(SYSTEM_CONTROL_A, 1, &Arc::new(Mutex::new(Port92::new(switch.clone()))))?;
    bus.add_ports(DEBUG_CONSOLE, 1, &Arc::new(Mutex::new(DebugPort::new(debug_console))))?;
    for (base, count) in [DMA_1, DMA_PAGES, DMA_2] {
        bus.add_ports(base, count, &Arc::new(Mutex::new(DmaRegisters::new(count))))?;
    }
    Ok(())
}

/// The firmware configuration device: processors, memory, console, boot menu, ACPI tables.
pub fn firmware_config(ram: &GuestRam, platform: &Platform, menu_wait_ms: u32) -> FirmwareConfig {
    let cpus = u16::from(platform.cpus);
    let mut files = vec![
        ("etc/e820".to_owned(), e820(ram)),
        ("etc/sercon-port".to_owned(), COM1.to_le_bytes().to_vec()),
        ("etc/boot-menu-wait".to_owned(), u64::from(menu_wait_ms).to_le_bytes().to_vec()),
    ];
    files.extend(loader::files(acpi::tables(platform, 0)));
    FirmwareConfig::new(&[(Item::Cpus, cpus), (Item::MaxCpus, cpus), (Item::BootMenu, 1)], files)
}

/// Ports of the firmware configuration device.
pub const FW_CFG_PORTS: (u16, u16) = (FW_CFG, 2);

/// Contents of CMOS RAM that firmware of PCs reads: index and value.
pub fn cmos(ram: &GuestRam, cpus: u8) -> Vec<(u8, u8)> {
    const KIB: u64 = 1 << 10;
    const EXTENDED: u64 = 1 << 20;
    const FROM_16_MIB: u64 = 16 << 20;
    let low = ram.low_end();
    let extended_kib = ((low - EXTENDED) / KIB).min(0xffff) as u16;
    let above_16_mib = (low.saturating_sub(FROM_16_MIB) / (64 * KIB)).min(0xffff) as u16;
    let high: u64 = ram.regions().filter(|&(start, _)| start >= HIGH_RAM_START).map(|(_, size)| size).sum();
    let high = (high / (64 * KIB)).to_le_bytes();
    let word = |at: u8, value: u16| value.to_le_bytes().into_iter().zip(at..).map(|(byte, at)| (at, byte));
    let mut cells: Vec<(u8, u8)> = Vec::new();
    cells.extend(word(0x15, 640));
    cells.extend(word(0x17, extended_kib));
    cells.extend(word(0x30, extended_kib));
    cells.extend(word(0x34, above_16_mib));
    cells.extend((0x5b..=0x5d).zip(high));
    cells.push((0x5f, cpus - 1));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_e820_and_in_cmos() {
        let ram = GuestRam::new((3 << 30) + (64 << 20)).unwrap();
        let map = e820(&ram);
        assert_eq!(map.len(), 2 * E820_ENTRY);
        assert_eq!(map[20..28], HIGH_RAM_START.to_le_bytes());
        let cells = cmos(&ram, 2);
        let cell = |at| cells.iter().find(|&&(index, _)| index == at).unwrap().1;
        assert_eq!((cell(0x15), cell(0x16)), (0x80, 0x02));
        // 3 GiB less 16 MiB, and 64 MiB, in units of 64 KiB.
        assert_eq!((cell(0x34), cell(0x35)), (0x00, 0xbf));
        assert_eq!((cell(0x5b), cell(0x5c), cell(0x5d)), (0x00, 0x04, 0x00));
        assert_eq!(cell(0x5f), 1);
    }
}
