//! PCI configuration mechanism 1, with the functions of bus 0.
//!
//! Source: PCI-SIG *PCI Local Bus Specification*, 3.0, "Configuration Mechanism #1" and "Configuration Space Decoding".

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::super::power::{PowerSwitch, ResetPort};
use super::{host_bridge, isa_bridge};
use crate::acpi::RESET_PORT;

const ENABLE: u32 = 1 << 31;
/// CONFIG_ADDRESS keeps these bits.
const ADDRESS_BITS: u32 = ENABLE | 0x00ff_fffc;
const DATA: u16 = 4;
const PORTS: u16 = super::super::PCI_CONFIG;

/// Bytes of a function's configuration space.
pub const SPACE: usize = 256;

/// One function: its registers, and which of their bits can be written.
pub struct Function {
    /// Device and function number: bits 7:3 and 2:0.
    pub devfn: u8,
    registers: [u8; SPACE],
    writable: [u8; SPACE],
}

impl Function {
    /// A function with the identification that every device has; nothing of it can be written but what is added.
    pub fn new(devfn: u8, vendor: u16, device: u16, class: u32, revision: u8) -> Self {
        let mut function = Self { devfn, registers: [0; SPACE], writable: [0; SPACE] };
        function.set(0x00, &vendor.to_le_bytes());
        function.set(0x02, &device.to_le_bytes());
        function.set(0x08, &(class << 8 | u32::from(revision)).to_le_bytes());
        function
    }

    /// Sets registers at reset.
    pub fn set(&mut self, at: usize, bytes: &[u8]) {
        self.registers[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes bits of one byte writable.
    pub fn allow(&mut self, at: usize, bits: u8) {
        self.writable[at] |= bits;
    }

    fn write(&mut self, at: usize, byte: u8) {
        let mask = self.writable[at];
        self.registers[at] = self.registers[at] & !mask | byte & mask;
    }
}

/// CONFIG_ADDRESS and CONFIG_DATA, the chipset's reset register between them, and the functions behind.
pub struct PciConfig {
    reset: ResetPort,
    address: u32,
    functions: Vec<Function>,
}

impl PciConfig {
    /// Bus 0 with a host bridge and an ISA bridge.
    pub fn new(switch: PowerSwitch) -> Self {
        let functions = vec![host_bridge::function(), isa_bridge::function()];
        Self { reset: ResetPort::new(switch), address: 0, functions }
    }

    /// The selected function of bus 0.
    fn selected(&mut self) -> Option<&mut Function> {
        let (bus, devfn) = ((self.address >> 16) as u8, (self.address >> 8) as u8);
        let enabled = self.address & ENABLE != 0;
        self.functions.iter_mut().find(|function| enabled && bus == 0 && function.devfn == devfn)
    }

    /// Offset in configuration space of the byte at CONFIG_DATA + `lane`.
    fn register(&self, lane: u16) -> usize {
        usize::from((self.address & 0xfc) as u8) + usize::from(lane & 3)
    }
}

fn is_reset(offset: PioAddressOffset, len: usize) -> bool {
    PORTS + offset == RESET_PORT && len == 1
}

impl MutDevicePio for PciConfig {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        data.fill(0xff);
        if is_reset(offset, data.len()) {
            self.reset.pio_read(PioAddress(RESET_PORT), 0, data);
        } else if offset == 0 && data.len() == 4 {
            data.copy_from_slice(&self.address.to_le_bytes());
        } else if offset >= DATA {
            let first = self.register(offset - DATA);
            if let Some(function) = self.selected() {
                for (byte, at) in data.iter_mut().zip(first..) {
                    *byte = function.registers.get(at).copied().unwrap_or(0xff);
                }
            }
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        if is_reset(offset, data.len()) {
            self.reset.pio_write(PioAddress(RESET_PORT), 0, data);
        } else if let (0, Ok(word)) = (offset, <[u8; 4]>::try_from(data)) {
            self.address = u32::from_le_bytes(word) & ADDRESS_BITS;
        } else if offset >= DATA {
            let first = self.register(offset - DATA);
            if let Some(function) = self.selected() {
                for (&byte, at) in data.iter().zip(first..SPACE) {
                    function.write(at, byte);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::PowerRequest;

    const BASE: PioAddress = PioAddress(PORTS);

    fn select(device: &mut PciConfig, address: u32) {
        device.pio_write(BASE, 0, &address.to_le_bytes());
    }

    fn read(device: &mut PciConfig, address: u32) -> u32 {
        select(device, address);
        let mut data = [0; 4];
        device.pio_read(BASE, DATA, &mut data);
        u32::from_le_bytes(data)
    }

    #[test]
    fn both_bridges_are_found_and_nothing_else() {
        let mut device = PciConfig::new(PowerSwitch::default());
        let found: Vec<u32> = (0..0x1_0000)
            .step_by(0x100)
            .map(|devfn| read(&mut device, ENABLE | devfn))
            .filter(|&id| id != u32::MAX)
            .collect();
        assert_eq!(found, [0x1237_8086, 0x7000_8086]);
        assert_eq!(read(&mut device, ENABLE | 0x1_0000), u32::MAX, "there is no bus 1");
        assert_eq!(read(&mut device, 0), u32::MAX, "not enabled");
    }

    #[test]
    fn identification_cannot_be_written_and_pam_can_byte_by_byte() {
        let mut device = PciConfig::new(PowerSwitch::default());
        select(&mut device, ENABLE);
        device.pio_write(BASE, DATA, &[0; 4]);
        assert_eq!(read(&mut device, ENABLE), 0x1237_8086);
        select(&mut device, ENABLE | 0x58);
        device.pio_write(BASE, DATA + 1, &[0xff]);
        assert_eq!(read(&mut device, ENABLE | 0x58), 0x0000_3000, "the upper half of PAM0");
        assert_eq!(read(&mut device, ENABLE | 0x10), 0, "no BAR to size");
    }

    #[test]
    fn a_byte_at_the_reset_register_resets() {
        let switch = PowerSwitch::default();
        let mut device = PciConfig::new(switch.clone());
        select(&mut device, ENABLE | 0x600);
        assert_eq!(switch.requested(), None);
        device.pio_write(BASE, 1, &[6]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
    }
}
