//! Port 92h: A20 gate and fast reset.
//!
//! Source: Intel *82371SB PCI ISA IDE Xcelerator (PIIX3)*, "Port 92 Register". The address line itself is always on:
//! wrapping at 1 MiB is not modelled, as in a VM by VMX, which has no such line.

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::super::power::{PowerRequest, PowerSwitch};

/// INIT on a change from zero to one.
const FAST_RESET: u8 = 1;
/// A20 on.
const A20: u8 = 2;

/// System control port A.
pub struct Port92 {
    switch: PowerSwitch,
    value: u8,
}

impl Port92 {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { switch, value: A20 }
    }
}

impl MutDevicePio for Port92 {
    fn pio_read(&mut self, _: PioAddress, _: PioAddressOffset, data: &mut [u8]) {
        data.fill(self.value);
    }

    fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, data: &[u8]) {
        for &byte in data {
            if byte & !self.value & FAST_RESET != 0 {
                self.switch.request(PowerRequest::Reset);
            }
            self.value = byte & (FAST_RESET | A20);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_reads_back_and_only_the_reset_bit_resets() {
        let switch = PowerSwitch::default();
        let mut port = Port92::new(switch.clone());
        let mut data = [0];
        for value in [0, A20] {
            port.pio_write(PioAddress(0x92), 0, &[value]);
            port.pio_read(PioAddress(0x92), 0, &mut data);
            assert_eq!(data, [value]);
        }
        assert_eq!(switch.requested(), None);
        port.pio_write(PioAddress(0x92), 0, &[A20 | FAST_RESET]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
    }
}
