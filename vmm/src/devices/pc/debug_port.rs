//! Debug console: firmware prints its messages to one port.

use std::io::Write;

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

/// What the port reads as when somebody listens, as on QEMU's and Bochs's machines; firmware asks before it prints.
const LISTENING: u8 = 0xe9;

/// Port 402h.
pub struct DebugPort {
    out: Option<Box<dyn Write + Send>>,
}

impl DebugPort {
    /// A port that prints to `out`, or tells firmware that nobody listens.
    pub fn new(out: Option<Box<dyn Write + Send>>) -> Self {
        Self { out }
    }
}

impl MutDevicePio for DebugPort {
    fn pio_read(&mut self, _: PioAddress, _: PioAddressOffset, data: &mut [u8]) {
        data.fill(if self.out.is_some() { LISTENING } else { 0 });
    }

    fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, data: &[u8]) {
        if let Some(out) = &mut self.out {
            // A full disk is not the guest's concern.
            let _ = out.write_all(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Screen;

    #[test]
    fn firmware_sees_whether_somebody_listens_and_is_heard() {
        let screen = Screen::default();
        let mut port = DebugPort::new(Some(Box::new(screen.clone())));
        let mut data = [0];
        port.pio_read(PioAddress(0x402), 0, &mut data);
        assert_eq!(data, [LISTENING]);
        port.pio_write(PioAddress(0x402), 0, b"hi");
        assert_eq!(*screen.0.lock().unwrap(), b"hi");
        DebugPort::new(None).pio_read(PioAddress(0x402), 0, &mut data);
        assert_eq!(data, [0]);
    }
}
