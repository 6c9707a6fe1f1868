//! Debug exit: a guest test ends the whole program with a status of its choice.

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::power::{PowerRequest, PowerSwitch};

/// Port 0xf4.
pub struct DebugExit {
    switch: PowerSwitch,
}

impl DebugExit {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { switch }
    }
}

impl MutDevicePio for DebugExit {
    fn pio_read(&mut self, _: PioAddress, _: PioAddressOffset, data: &mut [u8]) {
        data.fill(0);
    }

    fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, data: &[u8]) {
        let mut code = [0; 4];
        let len = data.len().min(4);
        code[..len].copy_from_slice(&data[..len]);
        self.switch.request(PowerRequest::Exit(u32::from_le_bytes(code)));
    }
}

/// Port 0x80: takes power-on self-test codes, and shows none.
pub struct PostPort;

impl MutDevicePio for PostPort {
    fn pio_read(&mut self, _: PioAddress, _: PioAddressOffset, data: &mut [u8]) {
        data.fill(0);
    }

    fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, _: &[u8]) {}
}
