//! The tables as firmware gets them: files, and a script that places and links them.
//!
//! Firmware chooses where tables go. Addresses in the files are offsets, and the script says where they are: firmware
//! adds the address of the file that they point into, then puts the checksums right.
//!
//! Source: QEMU's `hw/acpi/bios-linker-loader.c`, whose comments are the description of the commands.

use super::{RSDP_XSDT_AT, Tables};

const TABLES_FILE: &str = "etc/acpi/tables";
const RSDP_FILE: &str = "etc/acpi/rsdp";
const SCRIPT_FILE: &str = "etc/table-loader";

/// Bytes of a command.
const COMMAND: usize = 128;
const NAME: usize = 56;

const ALLOCATE: u32 = 1;
const ADD_POINTER: u32 = 2;
const ADD_CHECKSUM: u32 = 3;

/// Anywhere in memory.
const ZONE_HIGH: u8 = 1;
/// In the BIOS area, where operating systems search for the root pointer.
const ZONE_F_SEGMENT: u8 = 2;

#[derive(Default)]
struct Script(Vec<u8>);

impl Script {
    fn command(&mut self, number: u32, names: &[&str], arguments: &[&[u8]]) {
        let end = self.0.len() + COMMAND;
        self.0.extend(number.to_le_bytes());
        for name in names {
            let mut padded = [0; NAME];
            padded[..name.len()].copy_from_slice(name.as_bytes());
            self.0.extend(padded);
        }
        for argument in arguments {
            self.0.extend(*argument);
        }
        self.0.resize(end, 0);
    }

    fn allocate(&mut self, file: &str, align: u32, zone: u8) {
        self.command(ALLOCATE, &[file], &[&align.to_le_bytes(), &[zone]]);
    }

    fn add_pointer(&mut self, in_file: &str, to_file: &str, at: u32, size: u8) {
        self.command(ADD_POINTER, &[in_file, to_file], &[&at.to_le_bytes(), &[size]]);
    }

    fn add_checksum(&mut self, file: &str, at: u32, start: u32, len: u32) {
        self.command(ADD_CHECKSUM, &[file], &[&at.to_le_bytes(), &start.to_le_bytes(), &len.to_le_bytes()]);
    }
}

/// Files for the firmware configuration device.
pub fn files(tables: Tables) -> Vec<(String, Vec<u8>)> {
    let mut script = Script::default();
    script.allocate(TABLES_FILE, super::ALIGN as u32, ZONE_HIGH);
    script.allocate(RSDP_FILE, 16, ZONE_F_SEGMENT);
    for &(at, size) in &tables.pointers {
        script.add_pointer(TABLES_FILE, TABLES_FILE, at, size);
    }
    for &(start, len) in &tables.summed {
        script.add_checksum(TABLES_FILE, start + super::CHECKSUM_AT, start, len);
    }
    script.add_pointer(RSDP_FILE, TABLES_FILE, RSDP_XSDT_AT, 8);
    // The first checksum is over the part that version 1 had, the second over everything.
    script.add_checksum(RSDP_FILE, 8, 0, 20);
    script.add_checksum(RSDP_FILE, 32, 0, 36);
    vec![(RSDP_FILE.into(), tables.rsdp), (TABLES_FILE.into(), tables.bytes), (SCRIPT_FILE.into(), script.0)]
}

#[cfg(test)]
mod tests {
    use super::super::{Keyboard, Platform, tables};
    use super::*;

    fn name(bytes: &[u8]) -> String {
        String::from_utf8(bytes.iter().copied().take_while(|&b| b != 0).collect()).unwrap()
    }

    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0, |sum, &b| sum.wrapping_add(b))
    }

    /// Does what firmware does with the script.
    #[test]
    fn the_script_links_the_tables_with_right_checksums() {
        let mut files = files(tables(&Platform { cpus: 2, virtio: vec![], keyboard: Keyboard::Present }, 0));
        let script = files.pop().unwrap().1;
        assert!(script.len().is_multiple_of(COMMAND));
        let base = |file: &str| if file == TABLES_FILE { 0x7fe_1000_u32 } else { 0xf_5a00 };
        let content = |files: &mut Vec<(String, Vec<u8>)>, name: &str| {
            files.iter().position(|(file, _)| file == name).unwrap_or_else(|| panic!("{name}"))
        };
        for command in script.chunks(COMMAND) {
            match u32_at(command, 0) {
                ALLOCATE => assert!(base(&name(&command[4..60])).is_multiple_of(u32_at(command, 60))),
                ADD_POINTER => {
                    let index = content(&mut files, &name(&command[4..60]));
                    let (at, size) = (u32_at(command, 116) as usize, command[120]);
                    assert!(matches!(size, 4 | 8));
                    let old = u32_at(&files[index].1, at);
                    let linked = old + base(&name(&command[60..116]));
                    files[index].1[at..at + 4].copy_from_slice(&linked.to_le_bytes());
                }
                ADD_CHECKSUM => {
                    let index = content(&mut files, &name(&command[4..60]));
                    let [at, start, len] = [60, 64, 68].map(|at| u32_at(command, at) as usize);
                    let wrong = sum(&files[index].1[start..start + len]);
                    files[index].1[at] = files[index].1[at].wrapping_sub(wrong);
                }
                other => panic!("command {other}"),
            }
        }
        let (rsdp, blob) = (&files[0].1, &files[1].1);
        assert_eq!((sum(&rsdp[..20]), sum(rsdp)), (0, 0));
        let table = |address: u32| {
            let at = (address - base(TABLES_FILE)) as usize;
            let len = u32_at(blob, at + 4) as usize;
            &blob[at..at + len]
        };
        let xsdt = table(u32_at(rsdp, 24));
        assert_eq!((&xsdt[..4], sum(xsdt)), (&b"XSDT"[..], 0));
        let fadt = table(u32_at(xsdt, 36));
        assert_eq!((&fadt[..4], sum(fadt)), (&b"FACP"[..], 0));
        let dsdt = table(u32_at(fadt, 40));
        assert_eq!((&dsdt[..4], sum(dsdt)), (&b"DSDT"[..], 0));
        assert_eq!(&table(u32_at(fadt, 36))[..4], b"FACS");
        assert_eq!(sum(table(u32_at(xsdt, 44))), 0);
    }
}
