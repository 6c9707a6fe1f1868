//! The 440FX host bridge.
//!
//! Source: Intel *440FX PCIset, 82441FX PCI and Memory Controller (PMC) and 82442FX Data Bus Accelerator (DBX)*, order
//! number 290549, "PAM[6:0]: Programmable Attribute Map Registers". The attributes are kept and not enforced: the
//! memory from C0000h to FFFFFh is always RAM, which starts with a copy of the firmware's end, as if each byte had been
//! copied to shadow memory before power-on.

use super::pci::Function;

/// Attributes of F0000h to FFFFFh, in the upper half of the register.
const PAM0: usize = 0x59;
const PAM0_BITS: u8 = 0x30;
/// PAM1 to PAM6: 16 KiB from C0000h on in each half.
const PAM: std::ops::RangeInclusive<usize> = 0x5a..=0x5f;
/// Read enable and write enable of both halves.
const PAM_BITS: u8 = 0x33;
/// System management RAM control; there is no such memory, so it stays at its reset value.
const SMRAM: usize = 0x72;
const SMRAM_RESET: u8 = 0x02;

/// Vendor and device of the board: by these SeaBIOS knows that the machine follows QEMU's conventions.
const SUBSYSTEM: [u8; 4] = [0xf4, 0x1a, 0x00, 0x11];

/// Device 0, function 0.
pub fn function() -> Function {
    let mut function = Function::new(0, 0x8086, 0x1237, 0x06_0000, 2);
    // Command: bus master and memory enabled, and fixed so. Status: medium decode timing.
    function.set(0x04, &[0x06, 0x00, 0x80, 0x02]);
    function.set(0x2c, &SUBSYSTEM);
    function.allow(PAM0, PAM0_BITS);
    for at in PAM {
        function.allow(at, PAM_BITS);
    }
    function.set(SMRAM, &[SMRAM_RESET]);
    function
}
