//! What firmware expects of a PC's chipset and a kernel booted directly does without.
//!
//! A 440FX host bridge and a PIIX3 ISA bridge in PCI configuration space, a keyboard controller, DMA controllers that
//! take their settings, port 92h, and the firmware configuration device by which QEMU's machines hand tables and
//! settings to SeaBIOS.

mod debug_port;
mod dma;
mod fw_cfg;
mod host_bridge;
mod isa_bridge;
mod keyboard;
mod pci;
mod port92;

pub use debug_port::DebugPort;
pub use dma::DmaRegisters;
pub use fw_cfg::{FirmwareConfig, Item};
pub use keyboard::KeyboardController;
pub use pci::PciConfig;
pub use port92::Port92;

/// Selector and data register of the firmware configuration device.
pub const FW_CFG: u16 = 0x510;
/// Firmware prints its messages here.
pub const DEBUG_CONSOLE: u16 = 0x402;
/// System control port A: A20 gate and fast reset.
pub const SYSTEM_CONTROL_A: u16 = 0x92;
/// The keyboard's interrupt.
pub const KEYBOARD_GSI: u32 = 1;
/// First 8237: addresses, counts, commands.
pub const DMA_1: (u16, u16) = (0x00, 0x10);
/// Page registers of both: all but the first, whose port takes power-on self-test codes.
pub const DMA_PAGES: (u16, u16) = (0x81, 0x0f);
/// Second 8237: a register on every other port.
pub const DMA_2: (u16, u16) = (0xc0, 0x20);
