//! The block device as a driver sees it, well-behaved and not.

use std::io::Write;
use std::path::PathBuf;

use vm_device::MutDeviceMmio;
use vm_device::bus::MmioAddress;

use super::*;
use crate::devices::IrqLines;
use crate::memory::GuestRam;

const DESCRIPTORS: u64 = 0x10_0000;
const AVAILABLE: u64 = 0x10_2000;
const USED: u64 = 0x10_3000;
const HEADER: u64 = 0x11_0000;
const DATA: u64 = 0x11_1000;
const STATUS: u64 = 0x11_f000;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const SECTORS: u64 = 64;

/// A file that goes away with the test.
struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("glassvisor-{name}-{}.img", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        for sector in 0..SECTORS {
            file.write_all(&[sector as u8; 512]).unwrap();
        }
        Self(path)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Driver {
    device: MmioTransport,
    ram: GuestRam,
    lines: IrqLines,
    dirty: DirtyRanges,
    image: Image,
    next: u16,
}

impl Driver {
    fn new(name: &str) -> Self {
        let image = Image::new(name);
        Self::on(image)
    }

    fn on(image: Image) -> Self {
        let ram = GuestRam::new(4 << 20).unwrap();
        let (lines, dirty) = (IrqLines::default(), DirtyRanges::default());
        let block = Block::open(&image.0).unwrap();
        let device = MmioTransport::new(block, &ram, lines.clone(), 16, dirty.clone());
        let mut driver = Self { device, ram, lines, dirty, image, next: 0 };
        driver.start();
        driver
    }

    fn get(&mut self, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.device.mmio_read(MmioAddress(0), offset, &mut word);
        u32::from_le_bytes(word)
    }

    fn set(&mut self, offset: u64, value: u32) {
        self.device.mmio_write(MmioAddress(0), offset, &value.to_le_bytes());
    }

    /// The specification's order: features, queue, driver ok.
    fn start(&mut self) {
        self.set(0x70, 0);
        self.set(0x70, 3);
        self.set(0x24, 1);
        self.set(0x20, 1);
        self.set(0x70, 11);
        assert_eq!(self.get(0x70), 11, "VERSION_1 must be accepted");
        self.set(0x30, 0);
        self.set(0x38, 256);
        for (register, address) in [(0x80, DESCRIPTORS), (0x90, AVAILABLE), (0xa0, USED)] {
            self.set(register, address as u32);
            self.set(register + 4, 0);
        }
        self.set(0x44, 1);
        self.set(0x70, 15);
    }

    fn descriptor(&self, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        let mut bytes = Vec::new();
        bytes.extend(address.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.ram.write(DESCRIPTORS + u64::from(index) * 16, &bytes).unwrap();
    }

    fn submit(&mut self, head: u16) {
        self.ram.write(AVAILABLE + 4 + u64::from(self.next % 256) * 2, &head.to_le_bytes()).unwrap();
        self.next = self.next.wrapping_add(1);
        self.ram.write(AVAILABLE + 2, &self.next.to_le_bytes()).unwrap();
        self.set(0x50, 0);
    }

    /// Header, `len` bytes of data, status; returns the status.
    fn request(&mut self, kind: u32, sector: u64, data: WhoWrites, len: u32) -> u8 {
        let mut header = Vec::new();
        header.extend(kind.to_le_bytes());
        header.extend(0u32.to_le_bytes());
        header.extend(sector.to_le_bytes());
        self.ram.write(HEADER, &header).unwrap();
        self.ram.write(STATUS, &[0xee]).unwrap();
        self.descriptor(0, HEADER, 16, NEXT, 1);
        let flags = match data {
            WhoWrites::Device => NEXT | WRITE,
            WhoWrites::Driver => NEXT,
        };
        self.descriptor(1, DATA, len, flags, 2);
        self.descriptor(2, STATUS, 1, WRITE, 0);
        self.submit(0);
        let mut status = [0];
        self.ram.read(STATUS, &mut status).unwrap();
        status[0]
    }

    fn data(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.ram.read(DATA, &mut bytes).unwrap();
        bytes
    }
}

enum WhoWrites {
    Device,
    Driver,
}
use WhoWrites::{Device, Driver as DriverWrites};

#[test]
fn the_registers_tell_a_modern_block_device() {
    let mut driver = Driver::new("registers");
    assert_eq!([0, 4, 8].map(|offset| driver.get(offset)), [0x7472_6976, 2, 2]);
    assert_eq!(driver.get(0x34), 256);
    assert_eq!(driver.get(0x100), SECTORS as u32);
    driver.set(0x14, 1);
    assert_eq!(driver.get(0x10) & 1, 1, "VERSION_1");
}

#[test]
fn sectors_are_read_with_an_interrupt_and_the_processor_is_told() {
    let mut driver = Driver::new("read");
    assert_eq!(driver.request(0, 3, Device, 1024), 0);
    let data = driver.data(1024);
    assert!(data[..512].iter().all(|&b| b == 3) && data[512..].iter().all(|&b| b == 4));
    assert_eq!(driver.get(0x60), 1);
    assert_eq!(driver.lines.take().len(), 2);
    let dirty = driver.dirty.take();
    assert!(dirty.contains(&(DATA, 1024)) && dirty.contains(&(STATUS, 1)), "{dirty:x?}");
    driver.set(0x64, 1);
    assert_eq!(driver.get(0x60), 0);
}

#[test]
fn written_sectors_reach_the_file() {
    let mut driver = Driver::new("write");
    driver.ram.write(DATA, &[0xab; 512]).unwrap();
    assert_eq!(driver.request(1, 5, DriverWrites, 512), 0);
    assert_eq!(driver.request(4, 0, DriverWrites, 0), 0, "flush");
    let file = std::fs::read(&driver.image.0).unwrap();
    assert!(file[5 * 512..6 * 512].iter().all(|&b| b == 0xab));
    assert_eq!((file[5 * 512 - 1], file[6 * 512]), (4, 6));
}

#[test]
fn a_read_only_file_is_a_read_only_disk() {
    let image = Image::new("readonly");
    let mut permissions = std::fs::metadata(&image.0).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&image.0, permissions).unwrap();
    let mut driver = Driver::on(image);
    driver.set(0x14, 0);
    assert_eq!(driver.get(0x10) & 1 << 5, 1 << 5);
    assert_eq!(driver.request(1, 0, DriverWrites, 512), 1);
    assert_eq!(driver.request(0, 0, Device, 512), 0);
}

#[test]
fn requests_past_the_end_of_half_sectors_and_of_unknown_kinds_fail() {
    let mut driver = Driver::new("bounds");
    assert_eq!(driver.request(0, SECTORS - 1, Device, 1024), 1);
    assert_eq!(driver.request(0, u64::MAX, Device, 512), 1);
    assert_eq!(driver.request(0, u64::MAX / 512, Device, 512), 1);
    assert_eq!(driver.request(0, 0, Device, 100), 1);
    assert_eq!(driver.request(99, 0, Device, 512), 2);
    assert_eq!(driver.request(0, SECTORS - 1, Device, 512), 0, "and the device still works");
}

#[test]
fn data_outside_of_memory_fails_the_request_only() {
    let mut driver = Driver::new("outside");
    let mut header = vec![0; 16];
    header[0] = 0;
    driver.ram.write(HEADER, &header).unwrap();
    driver.descriptor(0, HEADER, 16, NEXT, 1);
    driver.descriptor(1, u64::MAX - 100, 512, NEXT | WRITE, 2);
    driver.descriptor(2, STATUS, 1, WRITE, 0);
    driver.submit(0);
    let mut status = [0xee];
    driver.ram.read(STATUS, &mut status).unwrap();
    assert_eq!(status, [1]);
    assert_eq!(driver.request(0, 0, Device, 512), 0);
}

#[test]
fn the_identifier_is_the_file_name() {
    let mut driver = Driver::new("id");
    assert_eq!(driver.request(8, 0, Device, 20), 0);
    assert!(driver.data(20).starts_with(b"glassvisor-id-"));
}

#[test]
fn an_available_index_that_jumps_needs_a_reset_and_a_reset_helps() {
    let mut driver = Driver::new("jump");
    driver.ram.write(AVAILABLE + 2, &5000u16.to_le_bytes()).unwrap();
    driver.set(0x50, 0);
    assert_eq!(driver.get(0x70) & 0x40, 0x40);
    driver.ram.write(AVAILABLE, &[0; 1024]).unwrap();
    driver.ram.write(USED, &[0; 1024]).unwrap();
    driver.next = 0;
    driver.start();
    assert_eq!(driver.request(0, 0, Device, 512), 0);
}

#[test]
fn a_queue_outside_of_memory_needs_a_reset() {
    let mut driver = Driver::new("queue");
    driver.set(0x70, 0);
    driver.set(0x70, 3);
    driver.set(0x24, 1);
    driver.set(0x20, 1);
    driver.set(0x70, 11);
    driver.set(0x84, 0xffff_fff0);
    driver.set(0x44, 1);
    driver.set(0x70, 15);
    driver.set(0x50, 0);
    assert_eq!(driver.get(0x70) & 0x40, 0x40);
}

#[test]
fn no_chain_of_descriptors_brings_the_device_down() {
    let mut driver = Driver::new("random");
    let mut state = 7u64;
    let mut random = move |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    for _ in 0..3000 {
        for index in 0..8 {
            let address = match random(5) {
                0 => random(u64::MAX),
                1 => HEADER,
                2 => STATUS,
                3 => [DESCRIPTORS, AVAILABLE, USED, (4 << 20) - 8][random(4) as usize],
                _ => DATA,
            };
            let len = [0, 1, 15, 16, 17, 512, 4096, u32::MAX][random(8) as usize];
            driver.descriptor(index, address, len, random(8) as u16, random(10) as u16);
        }
        let mut header = Vec::new();
        header.extend(([0u32, 1, 4, 8, 77][random(5) as usize]).to_le_bytes());
        header.extend(0u32.to_le_bytes());
        header.extend(random(SECTORS + 4).to_le_bytes());
        driver.ram.write(HEADER, &header).unwrap();
        driver.submit(random(10) as u16);
        if driver.get(0x70) & 0x40 != 0 {
            driver.ram.write(AVAILABLE, &[0; 0x1000]).unwrap();
            driver.ram.write(USED, &[0; 0x1000]).unwrap();
            driver.next = 0;
            driver.start();
        }
        for offset in [random(0x200), random(u64::MAX)] {
            driver.device.mmio_read(MmioAddress(0), offset, &mut vec![0; random(9) as usize]);
        }
        driver.lines.take();
        driver.dirty.take();
    }
    driver.set(0x70, 0);
    driver.ram.write(AVAILABLE, &[0; 0x1000]).unwrap();
    driver.ram.write(USED, &[0; 0x1000]).unwrap();
    driver.next = 0;
    driver.start();
    assert_eq!(driver.request(0, 1, Device, 512), 0);
}

#[test]
fn unusable_files_are_refused_with_advice() {
    let open = |path: &std::path::Path| Block::open(path).unwrap_err().to_string();
    assert!(open(std::path::Path::new("/nonexistent/disk.img")).contains("cannot open"));
    assert!(open(&std::env::temp_dir()).contains("a directory"));
    assert!(open(std::path::Path::new("/dev/null")).contains("special file"));
    let empty = Image::new("empty");
    std::fs::write(&empty.0, b"tiny").unwrap();
    assert!(open(&empty.0).contains("less than one sector"));
}
