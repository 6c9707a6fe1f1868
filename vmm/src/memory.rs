//! Guest RAM and the physical address map.
//!
//! ```text
//! 0x0000_0000  RAM up to 3 GiB (640 KiB to 1 MiB is kept from the guest: firmware tables)
//! 0xC000_0000  devices: virtio-mmio, IOAPIC, local APICs
//! 0x1_0000_0000  the rest of RAM
//! ```

use std::sync::Arc;

use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};

/// RAM ends here below 4 GiB; devices live above.
pub const LOW_RAM_END: u64 = 3 << 30;
/// RAM goes on here.
pub const HIGH_RAM_START: u64 = 1 << 32;
/// End of conventional memory; the last kilobyte before 640 KiB stays reserved, as kernels expect an EBDA there.
pub const CONVENTIONAL_END: u64 = 0x9_fc00;
/// First byte above the legacy area.
pub const EXTENDED_START: u64 = 0x10_0000;
/// ACPI tables live in the area where a BIOS keeps them.
pub const ACPI_START: u64 = 0xe_0000;
/// End of that area.
pub const ACPI_END: u64 = 0x10_0000;
/// virtio-mmio devices, one page each.
pub const VIRTIO_MMIO_START: u64 = 0xd000_0000;
/// Size of a device's window.
pub const VIRTIO_MMIO_SIZE: u64 = 0x1000;
/// Least RAM: the legacy megabyte and one more.
pub const MIN_RAM: u64 = 2 << 20;
/// Most RAM: what the modelled processors' physical addresses can hold with room to spare.
pub const MAX_RAM: u64 = 64 << 30;

const PAGE: u64 = 4096;

/// Why guest memory cannot be had or reached.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("{asked} bytes of guest memory are fewer than the machine needs; give it at least {MIN_RAM} (--memory 2M)")]
    TooSmall { asked: u64 },
    #[error(
        "{asked} bytes of guest memory are more than the machine can have; give it at most {MAX_RAM} (--memory 64G)"
    )]
    TooLarge { asked: u64 },
    #[error("guest memory has whole pages only: {asked} is not a multiple of {PAGE}")]
    NotPages { asked: u64 },
    #[error("the host does not give {asked} bytes of memory ({reason}); ask for less with --memory")]
    Host { asked: u64, reason: String },
    #[error("{len} bytes at guest-physical {gpa:#x} are outside of guest memory")]
    Outside { gpa: u64, len: u64 },
}

/// What a range of the physical address map is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    Ram,
    Reserved,
}

/// One line of the memory map that a kernel gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRange {
    pub start: u64,
    pub size: u64,
    pub kind: RangeKind,
}

/// The guest's RAM.
#[derive(Clone, Debug)]
pub struct GuestRam {
    inner: Arc<GuestMemoryMmap>,
    size: u64,
}

impl GuestRam {
    /// Reserves `size` bytes of host memory, filled with zeroes.
    pub fn new(size: u64) -> Result<Self, MemoryError> {
        if size < MIN_RAM {
            return Err(MemoryError::TooSmall { asked: size });
        }
        if size > MAX_RAM {
            return Err(MemoryError::TooLarge { asked: size });
        }
        if !size.is_multiple_of(PAGE) {
            return Err(MemoryError::NotPages { asked: size });
        }
        let low = size.min(LOW_RAM_END);
        let mut ranges = vec![(GuestAddress(0), low as usize)];
        if size > low {
            ranges.push((GuestAddress(HIGH_RAM_START), (size - low) as usize));
        }
        let inner = GuestMemoryMmap::from_ranges(&ranges)
            .map_err(|error| MemoryError::Host { asked: size, reason: error.to_string() })?;
        Ok(Self { inner: Arc::new(inner), size })
    }

    /// Bytes of RAM in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// First address after the RAM below 4 GiB.
    pub fn low_end(&self) -> u64 {
        self.size.min(LOW_RAM_END)
    }

    /// The memory as rust-vmm's crates take it.
    pub fn mmap(&self) -> &Arc<GuestMemoryMmap> {
        &self.inner
    }

    /// Start and size of each region, in the order of slots.
    pub fn regions(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner.iter().map(|region| (region.start_addr().0, region.len()))
    }

    pub fn write(&self, gpa: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.inner
            .write_slice(bytes, GuestAddress(gpa))
            .map_err(|_| MemoryError::Outside { gpa, len: bytes.len() as u64 })
    }

    pub fn read(&self, gpa: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let len = bytes.len() as u64;
        self.inner.read_slice(bytes, GuestAddress(gpa)).map_err(|_| MemoryError::Outside { gpa, len })
    }

    /// Whether the whole range is RAM.
    pub fn contains(&self, gpa: u64, len: u64) -> bool {
        usize::try_from(len).is_ok_and(|len| self.inner.check_range(GuestAddress(gpa), len))
    }

    /// The memory map for e820, PVH and multiboot.
    pub fn map(&self) -> Vec<MapRange> {
        let ram = |start, end: u64| MapRange { start, size: end - start, kind: RangeKind::Ram };
        let mut map = vec![
            ram(0, CONVENTIONAL_END),
            MapRange { start: CONVENTIONAL_END, size: EXTENDED_START - CONVENTIONAL_END, kind: RangeKind::Reserved },
            ram(EXTENDED_START, self.low_end()),
        ];
        if self.size > LOW_RAM_END {
            map.push(ram(HIGH_RAM_START, HIGH_RAM_START + (self.size - LOW_RAM_END)));
        }
        map
    }
}

/// Read-only memory: firmware.
#[derive(Clone, Debug)]
pub struct GuestRom {
    inner: Arc<GuestMemoryMmap>,
    start: u64,
    size: u64,
}

impl GuestRom {
    /// Memory at `start` with this content, of whole pages.
    pub fn new(start: u64, content: &[u8]) -> Result<Self, MemoryError> {
        let size = content.len() as u64;
        if size == 0 || !size.is_multiple_of(PAGE) {
            return Err(MemoryError::NotPages { asked: size });
        }
        let inner = GuestMemoryMmap::from_ranges(&[(GuestAddress(start), content.len())])
            .map_err(|error| MemoryError::Host { asked: size, reason: error.to_string() })?;
        inner.write_slice(content, GuestAddress(start)).map_err(|_| MemoryError::Outside { gpa: start, len: size })?;
        Ok(Self { inner: Arc::new(inner), start, size })
    }

    /// The memory as rust-vmm's crates take it.
    pub fn mmap(&self) -> &Arc<GuestMemoryMmap> {
        &self.inner
    }

    /// First guest-physical address.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_above_3_gib_goes_on_at_4_gib() {
        let ram = GuestRam::new(LOW_RAM_END + (1 << 20)).unwrap();
        assert_eq!(ram.regions().collect::<Vec<_>>(), [(0, LOW_RAM_END), (HIGH_RAM_START, 1 << 20)]);
        assert_eq!(ram.map().last(), Some(&MapRange { start: HIGH_RAM_START, size: 1 << 20, kind: RangeKind::Ram }));
    }

    #[test]
    fn too_little_too_much_and_odd_sizes_are_refused() {
        assert!(matches!(GuestRam::new(4096), Err(MemoryError::TooSmall { asked: 4096 })));
        assert!(matches!(GuestRam::new(MAX_RAM + 4096), Err(MemoryError::TooLarge { .. })));
        assert!(matches!(GuestRam::new(MIN_RAM + 1), Err(MemoryError::NotPages { .. })));
    }

    #[test]
    fn writes_past_the_end_are_refused() {
        let ram = GuestRam::new(MIN_RAM).unwrap();
        assert!(ram.write(MIN_RAM - 2, &[0; 4]).is_err());
        assert!(ram.write(u64::MAX - 1, &[0; 4]).is_err());
        assert!(!ram.contains(MIN_RAM - 2, 4));
    }
}
