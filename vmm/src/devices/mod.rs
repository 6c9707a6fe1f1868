//! The machine's devices and the buses they sit on.

mod bus;
mod debug_exit;
mod lines;
mod no_pci;
pub mod pc;
mod power;
mod rtc;
mod serial;
pub mod virtio;

pub use bus::{Bus, BusError, PortCounts};
pub use debug_exit::{DebugExit, PostPort};
pub use lines::{IrqLines, LineEvent};
pub use no_pci::{NoPci, PCI_CONFIG, PCI_CONFIG_PORTS};
pub use power::{PowerRequest, PowerSwitch, ResetPort, SleepControl, SystemController};
pub use rtc::{Clock, Rtc};
pub use serial::Com1;

/// First serial port.
pub const COM1: u16 = 0x3f8;
/// Its interrupt.
pub const COM1_GSI: u32 = 4;
/// Index port of the real-time clock; data follows.
pub const RTC_PORT: u16 = 0x70;
/// Its interrupt.
pub const RTC_GSI: u32 = 8;
/// Keyboard controller, of which only the reset line is there.
pub const I8042: u16 = 0x60;
/// Power-on self-test codes: written by kernels as a delay.
pub const POST_PORT: u16 = 0x80;
/// A write of `code` ends the program with exit status `(code << 1) | 1`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// First interrupt for virtio devices: pins above the ISA ones.
pub const VIRTIO_FIRST_GSI: u32 = 16;
/// Pins 16 to 23.
pub const VIRTIO_MAX: usize = 8;
