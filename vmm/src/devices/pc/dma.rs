//! Registers of the two 8237 DMA controllers and their page registers.
//!
//! Firmware programs them at start; no device of this machine asks for a transfer, so what is written is kept and
//! does nothing.

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

/// A range of registers that keep what was written.
pub struct DmaRegisters {
    values: Vec<u8>,
}

impl DmaRegisters {
    /// `count` byte-wide registers, zero at first.
    pub fn new(count: u16) -> Self {
        Self { values: vec![0; usize::from(count)] }
    }
}

impl MutDevicePio for DmaRegisters {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        for (index, byte) in data.iter_mut().enumerate() {
            *byte = self.values.get(usize::from(offset) + index).copied().unwrap_or(0xff);
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        for (index, &byte) in data.iter().enumerate() {
            if let Some(value) = self.values.get_mut(usize::from(offset) + index) {
                *value = byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_keep_their_values_and_an_access_over_the_end_does_no_harm() {
        let mut registers = DmaRegisters::new(2);
        registers.pio_write(PioAddress(0), 1, &[5, 6]);
        let mut data = [0; 2];
        registers.pio_read(PioAddress(0), 1, &mut data);
        assert_eq!(data, [5, 0xff]);
    }
}
