//! ACPI tables: what the machine has, in the form that operating systems expect.
//!
//! Source: "Advanced Configuration and Power Interface Specification", chapters "ACPI Software Programming Model" and
//! "ACPI Hardware Specification".

mod dsdt;
mod fadt;
mod madt;

use acpi_tables::{Aml, facs::FACS, rsdp::Rsdp, xsdt::XSDT};

use crate::memory::{ACPI_END, ACPI_START, GuestRam, MemoryError};

pub use fadt::{PM1A_CONTROL, PM1A_EVENT, PM_TIMER, RESET_PORT, RESET_VALUE, SCI_GSI, SLEEP_TYPE_S5};

const OEM_ID: [u8; 6] = *b"GLASSV";
const OEM_TABLE_ID: [u8; 8] = *b"GLASSVIS";
const OEM_REVISION: u32 = 1;
/// FACS must be aligned to this; the rest may be.
const ALIGN: u64 = 64;

/// A virtio-mmio window to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioWindow {
    pub base: u32,
    pub size: u32,
    pub gsi: u32,
}

/// What the tables tell of.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Number of processors; local APIC ids are 0, 1, 2, ...
    pub cpus: u8,
    pub virtio: Vec<VirtioWindow>,
}

/// Tables as placed.
struct Area<'a> {
    ram: &'a GuestRam,
    next: u64,
}

impl Area<'_> {
    fn place(&mut self, table: &[u8]) -> Result<u64, MemoryError> {
        let at = self.next;
        let len = table.len() as u64;
        if at + len > ACPI_END {
            return Err(MemoryError::Outside { gpa: at, len });
        }
        self.ram.write(at, table)?;
        self.next = (at + len).next_multiple_of(ALIGN);
        Ok(at)
    }
}

fn bytes_of(table: &dyn Aml) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.to_aml_bytes(&mut bytes);
    bytes
}

/// Writes all tables into the BIOS area; returns the address of the root pointer.
pub fn write_tables(ram: &GuestRam, platform: &Platform) -> Result<u64, MemoryError> {
    let rsdp_at = ACPI_START;
    let mut area = Area { ram, next: rsdp_at + ALIGN };
    let facs = area.place(&bytes_of(&FACS::new()))?;
    let dsdt = area.place(&dsdt::dsdt(platform))?;
    // All addresses are below 1 MiB.
    let fadt = area.place(&bytes_of(&fadt::fadt(dsdt as u32, facs as u32)))?;
    let madt = area.place(&madt::madt(platform.cpus))?;
    let mut xsdt = XSDT::new(OEM_ID, OEM_TABLE_ID, OEM_REVISION);
    xsdt.add_entry(fadt);
    xsdt.add_entry(madt);
    let xsdt = area.place(&bytes_of(&xsdt))?;
    ram.write(rsdp_at, &bytes_of(&Rsdp::new(OEM_ID, xsdt)))?;
    Ok(rsdp_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MIN_RAM;

    fn table(ram: &GuestRam, at: u64) -> Vec<u8> {
        let mut header = [0; 8];
        ram.read(at, &mut header).unwrap();
        let mut bytes = vec![0; u32::from_le_bytes(header[4..].try_into().unwrap()) as usize];
        ram.read(at, &mut bytes).unwrap();
        bytes
    }

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0, |sum, &b| sum.wrapping_add(b))
    }

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn tables_are_found_from_the_root_with_right_checksums() {
        let ram = GuestRam::new(MIN_RAM).unwrap();
        let virtio = vec![VirtioWindow { base: 0xd000_0000, size: 0x1000, gsi: 16 }];
        let root = write_tables(&ram, &Platform { cpus: 16, virtio }).unwrap();
        let mut rsdp = [0; 36];
        ram.read(root, &mut rsdp).unwrap();
        assert_eq!(&rsdp[..8], b"RSD PTR ");
        assert_eq!((sum(&rsdp[..20]), sum(&rsdp)), (0, 0));
        let xsdt = table(&ram, u64_at(&rsdp, 24));
        let mut signatures = vec![];
        for entry in xsdt[36..].chunks(8) {
            let table = table(&ram, u64_at(entry, 0));
            assert_eq!(sum(&table), 0);
            signatures.push(table[..4].to_vec());
            if &table[..4] == b"FACP" {
                let dsdt = self::table(&ram, u64::from(u32::from_le_bytes(table[40..44].try_into().unwrap())));
                assert_eq!((&dsdt[..4], sum(&dsdt)), (&b"DSDT"[..], 0));
            }
        }
        assert_eq!(signatures, [b"FACP", b"APIC"]);
    }
}
