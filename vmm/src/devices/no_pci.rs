//! The ports of PCI configuration mechanism 1, on a machine without PCI.

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::power::{PowerSwitch, ResetPort};
use crate::acpi::RESET_PORT;

/// First of the ports: CONFIG_ADDRESS; CONFIG_DATA follows four ports on.
pub const PCI_CONFIG: u16 = 0xcf8;
/// Both registers.
pub const PCI_CONFIG_PORTS: u16 = 8;

/// Reads as ones and keeps nothing, by which kernels see that there is no host bridge; a byte at 0xcf9 is the chipset's
/// reset register, as on machines with PCI.
pub struct NoPci {
    reset: ResetPort,
}

impl NoPci {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { reset: ResetPort::new(switch) }
    }
}

fn is_reset(offset: PioAddressOffset, len: usize) -> bool {
    PCI_CONFIG + offset == RESET_PORT && len == 1
}

impl MutDevicePio for NoPci {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        data.fill(0xff);
        if is_reset(offset, data.len()) {
            self.reset.pio_read(PioAddress(RESET_PORT), 0, data);
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        if is_reset(offset, data.len()) {
            self.reset.pio_write(PioAddress(RESET_PORT), 0, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PowerRequest;
    use super::*;

    #[test]
    fn the_address_register_keeps_nothing_and_the_reset_register_in_it_resets() {
        let switch = PowerSwitch::default();
        let mut device = NoPci::new(switch.clone());
        let base = PioAddress(PCI_CONFIG);
        device.pio_write(base, 0, &0x8000_0000u32.to_le_bytes());
        let mut data = [0; 4];
        device.pio_read(base, 0, &mut data);
        assert_eq!(data, [0xff; 4]);
        device.pio_write(base, 1, &[6, 6]);
        assert_eq!(switch.requested(), None, "two bytes are not the reset register");
        device.pio_write(base, 1, &[6]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
    }
}
