//! The firmware configuration device: numbered items and named files that firmware reads byte by byte.
//!
//! Source: QEMU documentation, *QEMU Firmware Configuration (fw_cfg) Device* (`docs/specs/fw_cfg.rst`). Only the
//! traditional interface is there; the identification item says that DMA is not.

use std::collections::BTreeMap;

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

const SIGNATURE: u16 = 0x00;
const ID: u16 = 0x01;
const FILE_DIRECTORY: u16 = 0x19;
/// Files have keys from here on.
const FIRST_FILE: u16 = 0x20;
/// Room for a file's name, NUL included.
const NAME_LEN: usize = 56;
/// Bit 0: the traditional interface.
const TRADITIONAL: u32 = 1;
/// Offset of the data register; the selector is before it, two bytes wide.
const DATA: u16 = 1;

/// Items that firmware asks for by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Item {
    /// Processors that are there (16 bits).
    Cpus = 0x05,
    /// Whether the boot menu is offered (16 bits).
    BootMenu = 0x0e,
    /// Largest number of processors (16 bits).
    MaxCpus = 0x0f,
}

/// Selector at the first port, data at the second.
pub struct FirmwareConfig {
    items: BTreeMap<u16, Vec<u8>>,
    selected: u16,
    position: usize,
}

impl FirmwareConfig {
    /// A device with these numbers and files; names are cut to 55 bytes.
    pub fn new(numbers: &[(Item, u16)], files: Vec<(String, Vec<u8>)>) -> Self {
        let mut items = BTreeMap::from([(SIGNATURE, b"QEMU".to_vec()), (ID, TRADITIONAL.to_le_bytes().to_vec())]);
        for &(item, value) in numbers {
            items.insert(item as u16, value.to_le_bytes().to_vec());
        }
        // The directory is big-endian.
        let mut directory = (files.len() as u32).to_be_bytes().to_vec();
        for (key, (name, content)) in (FIRST_FILE..).zip(files) {
            directory.extend((content.len() as u32).to_be_bytes());
            directory.extend(key.to_be_bytes());
            directory.extend([0; 2]);
            let mut padded = [0; NAME_LEN];
            for (to, from) in padded[..NAME_LEN - 1].iter_mut().zip(name.bytes()) {
                *to = from;
            }
            directory.extend(padded);
            items.insert(key, content);
        }
        items.insert(FILE_DIRECTORY, directory);
        Self { items, selected: SIGNATURE, position: 0 }
    }

    fn next(&mut self) -> u8 {
        let byte = self.items.get(&self.selected).and_then(|item| item.get(self.position)).copied();
        self.position = self.position.saturating_add(1);
        // After the end, and where there is no item, zeroes follow.
        byte.unwrap_or(0)
    }
}

impl MutDevicePio for FirmwareConfig {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        if offset == DATA {
            data.fill_with(|| self.next());
        } else {
            data.fill(0);
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        // Data cannot be written, and a selector has two bytes.
        if let (0, &[low, high]) = (offset, data) {
            self.selected = u16::from_le_bytes([low, high]);
            self.position = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(device: &mut FirmwareConfig, key: u16, len: usize) -> Vec<u8> {
        device.pio_write(PioAddress(0x510), 0, &key.to_le_bytes());
        let mut bytes = vec![0; len];
        for byte in bytes.chunks_mut(1) {
            device.pio_read(PioAddress(0x510), DATA, byte);
        }
        bytes
    }

    #[test]
    fn a_file_is_found_through_the_directory_and_zeroes_follow_it() {
        let files = vec![("etc/one".to_owned(), vec![7]), ("etc/two".to_owned(), b"content".to_vec())];
        let mut device = FirmwareConfig::new(&[(Item::Cpus, 3)], files);
        assert_eq!(read(&mut device, SIGNATURE, 4), b"QEMU");
        assert_eq!(read(&mut device, ID, 4), [1, 0, 0, 0]);
        assert_eq!(read(&mut device, Item::Cpus as u16, 2), [3, 0]);
        let directory = read(&mut device, FILE_DIRECTORY, 4 + 2 * 64);
        assert_eq!(directory[..4], [0, 0, 0, 2]);
        let second = &directory[4 + 64..];
        assert_eq!(second[..4], [0, 0, 0, 7]);
        assert!(second[8..].starts_with(b"etc/two\0"));
        let key = u16::from_be_bytes([second[4], second[5]]);
        assert_eq!(read(&mut device, key, 9), b"content\0\0");
        assert_eq!(read(&mut device, 0x7777, 2), [0; 2]);
    }
}
