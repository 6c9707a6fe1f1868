//! Ways to end or restart the machine: ACPI sleep, the reset register, the keyboard controller's reset line.

use std::sync::{Arc, Mutex, PoisonError};

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};
use vm_superio::{I8042Device, Trigger};

use crate::acpi::SLEEP_TYPE_S5;

/// What the guest asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRequest {
    Off,
    Reset,
    /// Debug exit with this code.
    Exit(u32),
}

/// Shared by all devices that end the machine; the first request counts.
#[derive(Clone, Debug, Default)]
pub struct PowerSwitch(Arc<Mutex<Option<PowerRequest>>>);

impl PowerSwitch {
    pub fn request(&self, request: PowerRequest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request);
    }

    pub fn requested(&self) -> Option<PowerRequest> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trigger for PowerSwitch {
    type E = std::convert::Infallible;

    fn trigger(&self) -> Result<(), Self::E> {
        self.request(PowerRequest::Reset);
        Ok(())
    }
}

/// ACPI PM1a event and control registers: six bytes of ports.
pub struct SleepControl {
    switch: PowerSwitch,
    enable: u16,
    control: u16,
}

const STATUS_AT: u16 = 0;
const ENABLE_AT: u16 = 2;
const CONTROL_AT: u16 = 4;
/// The machine is in ACPI mode.
const SCI_ENABLED: u16 = 1;
const SLEEP_TYPE_SHIFT: u16 = 10;
const SLEEP_ENABLE: u16 = 1 << 13;

impl SleepControl {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { switch, enable: 0, control: SCI_ENABLED }
    }
}

impl MutDevicePio for SleepControl {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        let registers = [(STATUS_AT, 0), (ENABLE_AT, self.enable), (CONTROL_AT, self.control)];
        for (index, byte) in data.iter_mut().enumerate() {
            let at = offset + index as u16;
            *byte = registers
                .iter()
                .find(|(start, _)| at & !1 == *start)
                .map_or(0xff, |(start, value)| value.to_le_bytes()[usize::from(at - start)]);
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        for (index, &byte) in data.iter().enumerate() {
            let at = offset + index as u16;
            let (register, start) = match at & !1 {
                ENABLE_AT => (&mut self.enable, ENABLE_AT),
                CONTROL_AT => (&mut self.control, CONTROL_AT),
                // Status bits are cleared by writing ones, and none is ever set.
                _ => continue,
            };
            let mut bytes = register.to_le_bytes();
            bytes[usize::from(at - start)] = byte;
            *register = u16::from_le_bytes(bytes);
        }
        if self.control & SLEEP_ENABLE != 0 {
            let sleep_type = self.control >> SLEEP_TYPE_SHIFT & 7;
            if sleep_type == u16::from(SLEEP_TYPE_S5) {
                self.switch.request(PowerRequest::Off);
            }
        }
        // SLP_EN reads as zero, SCI_EN as one.
        self.control = self.control & !SLEEP_ENABLE | SCI_ENABLED;
    }
}

/// The chipset's reset control register at port 0xcf9.
pub struct ResetPort {
    switch: PowerSwitch,
    value: u8,
}

/// A write with this bit set resets the processor.
const RESET_CPU: u8 = 1 << 2;

impl ResetPort {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { switch, value: 0 }
    }
}

impl MutDevicePio for ResetPort {
    fn pio_read(&mut self, _: PioAddress, _: PioAddressOffset, data: &mut [u8]) {
        data.fill(self.value);
    }

    fn pio_write(&mut self, _: PioAddress, _: PioAddressOffset, data: &[u8]) {
        for &byte in data {
            self.value = byte & !RESET_CPU;
            if byte & RESET_CPU != 0 {
                self.switch.request(PowerRequest::Reset);
            }
        }
    }
}

/// Keyboard controller (command 0xfe resets) and system control port 0x61.
pub struct SystemController {
    i8042: I8042Device<PowerSwitch>,
}

impl SystemController {
    pub fn new(switch: PowerSwitch) -> Self {
        Self { i8042: I8042Device::new(switch) }
    }
}

impl MutDevicePio for SystemController {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        data.fill(self.i8042.read(offset as u8));
    }

    fn pio_write(&mut self, base: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        // The device counts offsets from port 0x60; it may be registered in pieces around port 0x61.
        let offset = base.0 - super::I8042 + offset;
        for &byte in data {
            let Ok(()) = self.i8042.write(offset as u8, byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_type_5_with_sleep_enable_powers_off_and_others_do_not() {
        let switch = PowerSwitch::default();
        let mut device = SleepControl::new(switch.clone());
        device.pio_write(PioAddress(0x600), 4, &(3 << 10 | SLEEP_ENABLE).to_le_bytes());
        device.pio_write(PioAddress(0x600), 4, &(5u16 << 10).to_le_bytes());
        assert_eq!(switch.requested(), None);
        device.pio_write(PioAddress(0x600), 4, &(5u16 << 10 | SLEEP_ENABLE).to_le_bytes());
        assert_eq!(switch.requested(), Some(PowerRequest::Off));
    }

    #[test]
    fn control_reads_as_acpi_mode_and_odd_accesses_do_no_harm() {
        let mut device = SleepControl::new(PowerSwitch::default());
        let mut data = [0; 2];
        device.pio_read(PioAddress(0x600), 4, &mut data);
        assert_eq!(u16::from_le_bytes(data) & 1, 1);
        device.pio_read(PioAddress(0x600), 5, &mut [0; 4]);
        device.pio_write(PioAddress(0x600), 5, &[0xff; 4]);
    }

    #[test]
    fn both_reset_lines_reset() {
        let switch = PowerSwitch::default();
        ResetPort::new(switch.clone()).pio_write(PioAddress(0xcf9), 0, &[0x02]);
        assert_eq!(switch.requested(), None);
        ResetPort::new(switch.clone()).pio_write(PioAddress(0xcf9), 0, &[0x06]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
        let switch = PowerSwitch::default();
        SystemController::new(switch.clone()).pio_write(PioAddress(0x64), 0, &[0xfe]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
    }
}
