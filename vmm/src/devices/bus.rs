//! Port and memory-mapped I/O buses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use vm_device::bus::{MmioAddress, MmioRange, PioAddress, PioRange};
use vm_device::device_manager::{IoManager, MmioManager, PioManager};
use vm_device::{MutDeviceMmio, MutDevicePio};

/// Two devices claim one address.
#[derive(Debug, thiserror::Error)]
#[error("the machine has two devices at {at:#x} ({reason}); this is a defect of the machine, please report it")]
pub struct BusError {
    at: u64,
    reason: String,
}

/// Accesses that no device answered, by address.
pub type PortCounts = BTreeMap<u64, u64>;

/// Whether a device took an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Device,
    Nobody,
}

/// At most so many addresses are told apart, as a guest could walk through all of physical memory.
const MAX_COUNTED: usize = 256;

/// Finds the device for an address; what nobody answers reads as ones, and is counted.
#[derive(Default)]
pub struct Bus {
    devices: IoManager,
    unclaimed_ports: PortCounts,
    unclaimed_memory: PortCounts,
}

fn count(counts: &mut PortCounts, address: u64) {
    if counts.len() < MAX_COUNTED || counts.contains_key(&address) {
        *counts.entry(address).or_default() += 1;
    }
}

impl Bus {
    /// Puts a device at ports `base..base + size`.
    pub fn add_ports<D>(&mut self, base: u16, size: u16, device: &Arc<Mutex<D>>) -> Result<(), BusError>
    where
        D: MutDevicePio + Send + 'static,
    {
        let error = |reason: vm_device::bus::Error| BusError { at: base.into(), reason: reason.to_string() };
        let range = PioRange::new(PioAddress(base), size).map_err(error)?;
        self.devices.register_pio(range, device.clone()).map_err(error)
    }

    /// Puts a device at guest-physical addresses `base..base + size`.
    pub fn add_memory<D>(&mut self, base: u64, size: u64, device: &Arc<Mutex<D>>) -> Result<(), BusError>
    where
        D: MutDeviceMmio + Send + 'static,
    {
        let error = |reason: vm_device::bus::Error| BusError { at: base, reason: reason.to_string() };
        let range = MmioRange::new(MmioAddress(base), size).map_err(error)?;
        self.devices.register_mmio(range, device.clone()).map_err(error)
    }

    /// A guest reads a port.
    pub fn read_port(&mut self, port: u16, data: &mut [u8]) {
        data.fill(0xff);
        for element in elements(data.len()) {
            if self.devices.pio_read(PioAddress(port), &mut data[element]).is_err() {
                count(&mut self.unclaimed_ports, port.into());
            }
        }
    }

    /// A guest writes a port.
    pub fn write_port(&mut self, port: u16, data: &[u8]) -> Answer {
        let mut answer = Answer::Device;
        for element in elements(data.len()) {
            if self.devices.pio_write(PioAddress(port), &data[element]).is_err() {
                count(&mut self.unclaimed_ports, port.into());
                answer = Answer::Nobody;
            }
        }
        answer
    }

    /// A guest reads memory that is not RAM.
    pub fn read_memory(&mut self, address: u64, data: &mut [u8]) -> Answer {
        data.fill(0xff);
        if data.is_empty() || self.devices.mmio_read(MmioAddress(address), data).is_err() {
            count(&mut self.unclaimed_memory, address);
            return Answer::Nobody;
        }
        Answer::Device
    }

    /// A guest writes memory that is not RAM.
    pub fn write_memory(&mut self, address: u64, data: &[u8]) -> Answer {
        if data.is_empty() || self.devices.mmio_write(MmioAddress(address), data).is_err() {
            count(&mut self.unclaimed_memory, address);
            return Answer::Nobody;
        }
        Answer::Device
    }

    /// Port accesses that nobody answered.
    pub fn unclaimed_ports(&self) -> &PortCounts {
        &self.unclaimed_ports
    }

    /// Memory accesses that nobody answered.
    pub fn unclaimed_memory(&self) -> &PortCounts {
        &self.unclaimed_memory
    }
}

/// One access of 1, 2 or 4 bytes as it is; longer ones are string instructions, byte by byte at the same port.
fn elements(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let step = if matches!(len, 1 | 2 | 4) { len } else { 1 };
    (0..len).step_by(step).map(move |start| start..start + step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_device::bus::PioAddressOffset;

    struct Last(Vec<u8>);
    impl MutDevicePio for Last {
        fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
            data.fill(offset as u8);
        }
        fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, data: &[u8]) {
            self.0.extend_from_slice(data);
        }
    }

    #[test]
    fn unclaimed_ports_read_as_ones_and_are_counted() {
        let mut bus = Bus::default();
        let device = Arc::new(Mutex::new(Last(vec![])));
        bus.add_ports(0x10, 2, &device).unwrap();
        let mut data = [0; 2];
        bus.read_port(0x20, &mut data);
        assert_eq!(data, [0xff; 2]);
        bus.write_port(0x20, &[1]);
        assert_eq!(bus.unclaimed_ports().get(&0x20), Some(&2));
        let mut byte = [0];
        bus.read_port(0x11, &mut byte);
        assert_eq!(byte, [1]);
        bus.write_port(0x10, b"string");
        assert_eq!(device.lock().unwrap().0, b"string");
    }

    #[test]
    fn overlapping_devices_are_refused() {
        let mut bus = Bus::default();
        let device = Arc::new(Mutex::new(Last(vec![])));
        bus.add_ports(0x10, 4, &device).unwrap();
        assert!(bus.add_ports(0x13, 1, &device).is_err());
    }
}
