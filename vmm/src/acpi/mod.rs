//! ACPI tables: what the machine has, in the form that operating systems expect.
//!
//! Source: "Advanced Configuration and Power Interface Specification", chapters "ACPI Software Programming Model" and
//! "ACPI Hardware Specification".

mod dsdt;
mod fadt;
pub mod loader;
mod madt;

use acpi_tables::{Aml, facs::FACS, rsdp::Rsdp, xsdt::XSDT};

use crate::memory::{ACPI_END, ACPI_START, GuestRam, MemoryError};

pub use fadt::{PM_TIMER, PM1A_CONTROL, PM1A_EVENT, RESET_PORT, RESET_VALUE, SCI_GSI, SLEEP_TYPE_S5};

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
    pub keyboard: Keyboard,
}

/// Whether there is a keyboard controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyboard {
    Present,
    Absent,
}

/// All tables in one block, as bytes, with what must change when the block moves.
pub struct Tables {
    /// The tables, each aligned.
    pub bytes: Vec<u8>,
    /// Root pointer.
    pub rsdp: Vec<u8>,
    /// Offset and size of addresses of other tables.
    pub pointers: Vec<(u32, u8)>,
    /// Start and length of tables that hold such addresses.
    pub summed: Vec<(u32, u32)>,
}

/// Byte of a table that makes all bytes add up to zero.
const CHECKSUM_AT: u32 = 9;
/// Bytes before a table's content.
const HEADER: u32 = 36;
/// Offset of the XSDT's address in the root pointer.
const RSDP_XSDT_AT: u32 = 24;
/// Offsets of the FACS's and the DSDT's addresses in the FADT.
const FADT_FACS_AT: u32 = 36;
const FADT_DSDT_AT: u32 = 40;

/// Tables, one after the other from `base` on.
struct Area {
    base: u64,
    bytes: Vec<u8>,
}

impl Area {
    fn place(&mut self, table: &[u8]) -> u64 {
        let at = self.bytes.len();
        self.bytes.extend(table);
        self.bytes.resize((at + table.len()).next_multiple_of(ALIGN as usize), 0);
        self.base + at as u64
    }
}

fn bytes_of(table: &dyn Aml) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.to_aml_bytes(&mut bytes);
    bytes
}

/// Builds all tables for a block at `base`, which is below 4 GiB; with a base of zero addresses are offsets.
pub fn tables(platform: &Platform, base: u32) -> Tables {
    let mut area = Area { base: base.into(), bytes: Vec::new() };
    let facs = area.place(&bytes_of(&FACS::new()));
    let dsdt = area.place(&dsdt::dsdt(platform));
    let fadt_bytes = bytes_of(&fadt::fadt(dsdt as u32, facs as u32, platform.keyboard));
    let fadt = area.place(&fadt_bytes);
    let madt = area.place(&madt::madt(platform.cpus));
    let mut xsdt = XSDT::new(OEM_ID, OEM_TABLE_ID, OEM_REVISION);
    xsdt.add_entry(fadt);
    xsdt.add_entry(madt);
    let xsdt_bytes = bytes_of(&xsdt);
    let xsdt = area.place(&xsdt_bytes);
    let offset = |address: u64| (address - u64::from(base)) as u32;
    let (fadt, xsdt_at) = (offset(fadt), offset(xsdt));
    Tables {
        bytes: area.bytes,
        rsdp: bytes_of(&Rsdp::new(OEM_ID, xsdt)),
        pointers: vec![
            (fadt + FADT_FACS_AT, 4),
            (fadt + FADT_DSDT_AT, 4),
            (xsdt_at + HEADER, 8),
            (xsdt_at + HEADER + 8, 8),
        ],
        summed: vec![(fadt, fadt_bytes.len() as u32), (xsdt_at, xsdt_bytes.len() as u32)],
    }
}

/// Writes all tables into the BIOS area; returns the address of the root pointer.
pub fn write_tables(ram: &GuestRam, platform: &Platform) -> Result<u64, MemoryError> {
    let (rsdp_at, tables_at) = (ACPI_START, ACPI_START + ALIGN);
    let tables = tables(platform, tables_at as u32);
    let len = tables.bytes.len() as u64;
    if tables_at + len > ACPI_END {
        return Err(MemoryError::Outside { gpa: tables_at, len });
    }
    ram.write(tables_at, &tables.bytes)?;
    ram.write(rsdp_at, &tables.rsdp)?;
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
        let root = write_tables(&ram, &Platform { cpus: 16, virtio, keyboard: Keyboard::Absent }).unwrap();
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
