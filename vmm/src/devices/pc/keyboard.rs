//! Keyboard controller with a keyboard on which nobody types.
//!
//! Source: IBM *Personal System/2 Hardware Interface Technical Reference*, "Keyboard and Auxiliary Device Controller",
//! and Intel *UPI-41/42: Universal Peripheral Interface (8042) Keyboard Controller*. There is no auxiliary device: what
//! is sent to it stays unanswered. Keys come over the serial port.

use std::collections::VecDeque;

use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::super::lines::IrqLines;
use super::super::power::{PowerRequest, PowerSwitch};
use super::KEYBOARD_GSI;

/// The controller's second port, counted from its first at 60h.
const COMMAND_PORT: u16 = 4;

/// Status: a byte waits to be read.
const OUTPUT_FULL: u8 = 1 << 0;
/// Status: the self-test has passed.
const SYSTEM_FLAG: u8 = 1 << 2;
/// Status: the last write went to the command port.
const LAST_WAS_COMMAND: u8 = 1 << 3;
/// Status: the key lock is open.
const NOT_LOCKED: u8 = 1 << 4;

/// Command byte: interrupt when the keyboard's output is full.
const INTERRUPT: u8 = 1 << 0;
/// Command byte: copy of the status register's system flag.
const COMMAND_SYSTEM_FLAG: u8 = 1 << 2;
/// Command byte: the keyboard's clock is held.
const KEYBOARD_OFF: u8 = 1 << 4;
/// Command byte: the auxiliary device's clock is held.
const AUXILIARY_OFF: u8 = 1 << 5;
/// Command byte: translate scan codes to set 1.
const TRANSLATE: u8 = 1 << 6;

/// Output port: reset is not asserted, A20 on.
const OUTPUT_PORT: u8 = 0x03;
/// Output port: not asserting the processor's reset.
const NOT_RESET: u8 = 1;

const ACKNOWLEDGE: u8 = 0xfa;
const RESEND: u8 = 0xfe;
const SELF_TEST_PASSED: u8 = 0x55;
const KEYBOARD_PASSED: u8 = 0xaa;
/// Most answers that wait; a keyboard's own buffer is as small.
const BUFFER: usize = 16;

/// Where the next byte at the data port goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataTarget {
    Keyboard,
    /// The argument of the keyboard's own command before.
    KeyboardArgument(u8),
    /// The controller's RAM, byte 0 is the command byte.
    Ram(u8),
    OutputPort,
    /// Answered as if the keyboard had sent it.
    KeyboardOutput,
    /// A device that is not there.
    Nobody,
}

/// Ports 60h and 64h.
pub struct KeyboardController {
    lines: IrqLines,
    switch: PowerSwitch,
    output: VecDeque<u8>,
    ram: [u8; 32],
    system_flag: u8,
    last_was_command: bool,
    target: DataTarget,
    /// Scan code set of the keyboard.
    scan_codes: u8,
}

impl KeyboardController {
    pub fn new(lines: IrqLines, switch: PowerSwitch) -> Self {
        let mut ram = [0; 32];
        ram[0] = INTERRUPT | COMMAND_SYSTEM_FLAG | TRANSLATE | AUXILIARY_OFF;
        Self {
            lines,
            switch,
            output: VecDeque::new(),
            ram,
            system_flag: 0,
            last_was_command: false,
            target: DataTarget::Keyboard,
            scan_codes: 2,
        }
    }

    /// A byte from the controller itself.
    fn answer(&mut self, byte: u8) {
        if self.output.len() < BUFFER {
            self.output.push_back(byte);
        }
        if self.ram[0] & INTERRUPT != 0 {
            self.lines.pulse(KEYBOARD_GSI);
        }
    }

    fn status(&self) -> u8 {
        let full = if self.output.is_empty() { 0 } else { OUTPUT_FULL };
        let command = if self.last_was_command { LAST_WAS_COMMAND } else { 0 };
        full | command | self.system_flag | NOT_LOCKED
    }

    fn command(&mut self, command: u8) {
        self.last_was_command = true;
        self.target = DataTarget::Keyboard;
        match command {
            0x20..=0x3f => self.answer(self.ram[usize::from(command & 0x1f)]),
            0x60..=0x7f => self.target = DataTarget::Ram(command & 0x1f),
            0xa7 => self.ram[0] |= AUXILIARY_OFF,
            0xa8 => self.ram[0] &= !AUXILIARY_OFF,
            // The auxiliary device's interface test: its clock line is stuck low, as nothing holds it up.
            0xa9 => self.answer(1),
            0xaa => {
                self.system_flag = SYSTEM_FLAG;
                self.answer(SELF_TEST_PASSED);
            }
            // The keyboard's interface is as it should be.
            0xab => self.answer(0),
            0xad => self.ram[0] |= KEYBOARD_OFF,
            0xae => self.ram[0] &= !KEYBOARD_OFF,
            0xc0 => self.answer(0),
            0xd0 => self.answer(OUTPUT_PORT),
            0xd1 => self.target = DataTarget::OutputPort,
            0xd2 => self.target = DataTarget::KeyboardOutput,
            0xd3 | 0xd4 => self.target = DataTarget::Nobody,
            // Pulses output lines that are zero in the low bits; line 0 is the processor's reset.
            0xf0..=0xff if command & NOT_RESET == 0 => self.switch.request(PowerRequest::Reset),
            _ => {}
        }
    }

    fn data(&mut self, byte: u8) {
        self.last_was_command = false;
        match std::mem::replace(&mut self.target, DataTarget::Keyboard) {
            DataTarget::Keyboard => self.keyboard(byte),
            DataTarget::KeyboardArgument(command) => self.keyboard_argument(command, byte),
            DataTarget::Ram(at) => {
                self.ram[usize::from(at)] = byte;
                if at == 0 {
                    self.system_flag = byte & COMMAND_SYSTEM_FLAG;
                }
            }
            DataTarget::OutputPort if byte & NOT_RESET == 0 => self.switch.request(PowerRequest::Reset),
            DataTarget::KeyboardOutput => self.answer(byte),
            DataTarget::OutputPort | DataTarget::Nobody => {}
        }
    }

    /// A command to the keyboard.
    fn keyboard(&mut self, byte: u8) {
        // Any transmission starts its clock again.
        self.ram[0] &= !KEYBOARD_OFF;
        match byte {
            0xff => {
                self.scan_codes = 2;
                self.answer(ACKNOWLEDGE);
                self.answer(KEYBOARD_PASSED);
            }
            0xf2 => {
                self.answer(ACKNOWLEDGE);
                self.answer(0xab);
                self.answer(if self.ram[0] & TRANSLATE != 0 { 0x41 } else { 0x83 });
            }
            0xee => self.answer(0xee),
            0xed | 0xf0 | 0xf3 => {
                self.target = DataTarget::KeyboardArgument(byte);
                self.answer(ACKNOWLEDGE);
            }
            0xf4..=0xfa => self.answer(ACKNOWLEDGE),
            _ => self.answer(RESEND),
        }
    }

    fn keyboard_argument(&mut self, command: u8, byte: u8) {
        self.answer(ACKNOWLEDGE);
        match (command, byte) {
            (0xf0, 0) => self.answer(self.scan_codes),
            (0xf0, 1..=3) => self.scan_codes = byte,
            _ => {}
        }
    }
}

impl MutDevicePio for KeyboardController {
    fn pio_read(&mut self, base: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        let at = base.0 - super::super::I8042 + offset;
        for byte in data {
            *byte = if at == COMMAND_PORT {
                self.status()
            } else {
                let byte = self.output.pop_front().unwrap_or(0);
                if !self.output.is_empty() && self.ram[0] & INTERRUPT != 0 {
                    self.lines.pulse(KEYBOARD_GSI);
                }
                byte
            };
        }
    }

    fn pio_write(&mut self, base: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        let at = base.0 - super::super::I8042 + offset;
        for &byte in data {
            if at == COMMAND_PORT {
                self.command(byte);
            } else {
                self.data(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: PioAddress = PioAddress(0x60);
    const COMMAND: PioAddress = PioAddress(0x64);

    fn controller() -> (KeyboardController, IrqLines, PowerSwitch) {
        let (lines, switch) = (IrqLines::default(), PowerSwitch::default());
        (KeyboardController::new(lines.clone(), switch.clone()), lines, switch)
    }

    fn answers(device: &mut KeyboardController) -> Vec<u8> {
        let mut answers = vec![];
        let mut byte = [0];
        loop {
            device.pio_read(COMMAND, 0, &mut byte);
            if byte[0] & OUTPUT_FULL == 0 {
                return answers;
            }
            device.pio_read(DATA, 0, &mut byte);
            answers.push(byte[0]);
        }
    }

    #[test]
    fn controller_and_keyboard_pass_their_tests() {
        let (mut device, _, _) = controller();
        device.pio_write(COMMAND, 0, &[0xaa]);
        assert_eq!(answers(&mut device), [0x55]);
        device.pio_write(COMMAND, 0, &[0xab]);
        assert_eq!(answers(&mut device), [0]);
        device.pio_write(DATA, 0, &[0xff]);
        assert_eq!(answers(&mut device), [0xfa, 0xaa]);
        device.pio_write(DATA, 0, &[0xf0, 1, 0xf0, 0]);
        assert_eq!(answers(&mut device), [0xfa, 0xfa, 0xfa, 0xfa, 1]);
    }

    #[test]
    fn the_command_byte_reads_back_and_says_whether_answers_interrupt() {
        let (mut device, lines, _) = controller();
        device.pio_write(COMMAND, 0, &[0x60]);
        device.pio_write(DATA, 0, &[0x30]);
        device.pio_write(COMMAND, 0, &[0x20]);
        assert_eq!(answers(&mut device), [0x30]);
        device.pio_write(DATA, 0, &[0xf4]);
        assert!(lines.take().is_empty(), "interrupts are off");
        answers(&mut device);
        device.pio_write(COMMAND, 0, &[0x60]);
        device.pio_write(DATA, 0, &[0x31]);
        device.pio_write(DATA, 0, &[0xf4]);
        assert_eq!(lines.take().len(), 2);
    }

    #[test]
    fn nothing_answers_for_the_auxiliary_device_and_a_flood_of_commands_is_bounded() {
        let (mut device, _, _) = controller();
        device.pio_write(COMMAND, 0, &[0xd4]);
        device.pio_write(DATA, 0, &[0xff]);
        assert!(answers(&mut device).is_empty());
        device.pio_write(DATA, 0, &[0xf4; 1000]);
        assert_eq!(answers(&mut device).len(), BUFFER);
    }

    #[test]
    fn the_reset_line_is_pulsed_by_command_and_by_output_port() {
        let (mut device, _, switch) = controller();
        device.pio_write(COMMAND, 0, &[0xff]);
        assert_eq!(switch.requested(), None, "no line is pulsed");
        device.pio_write(COMMAND, 0, &[0xfe]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
        let (mut device, _, switch) = controller();
        device.pio_write(COMMAND, 0, &[0xd1]);
        device.pio_write(DATA, 0, &[0x02]);
        assert_eq!(switch.requested(), Some(PowerRequest::Reset));
    }
}
