//! The PIIX3's PCI-to-ISA bridge.
//!
//! Source: Intel *82371FB (PIIX) and 82371SB (PIIX3) PCI ISA IDE Xcelerator*, order number 290550, "PCI to ISA Bridge
//! Register Description". No PCI device has an interrupt, so the routing registers are kept and route nothing; the IDE
//! and USB functions are left out.

use super::pci::Function;

/// PIRQ route control A to D.
const PIRQ: std::ops::RangeInclusive<usize> = 0x60..=0x63;
/// Not routed.
const PIRQ_RESET: u8 = 0x80;
/// Disable bit and the number of the ISA interrupt.
const PIRQ_BITS: u8 = 0x8f;
/// X-bus chip select.
const XBCS: usize = 0x4e;
const XBCS_RESET: [u8; 2] = [0x03, 0x00];

/// Device 1, function 0.
pub fn function() -> Function {
    let mut function = Function::new(1 << 3, 0x8086, 0x7000, 0x06_0100, 0);
    // Command: always decodes ports and memory, and masters the bus. Status: medium decode timing.
    function.set(0x04, &[0x07, 0x00, 0x00, 0x02]);
    function.set(XBCS, &XBCS_RESET);
    for at in PIRQ {
        function.set(at, &[PIRQ_RESET]);
        function.allow(at, PIRQ_BITS);
    }
    function
}
