//! The register window.
//!
//! Source: 82093AA data sheet, "Memory Mapped Registers for Accessing IOAPIC Registers", "IOAPIC Registers".

use super::{Bus, Ioapic, PINS};
use crate::lapic::{Eoi, EoiBroadcast};
use crate::message::TriggerMode;

const IOREGSEL: u64 = 0x00;
const IOWIN: u64 = 0x10;
/// Of version 0x20: ends the interrupts of a vector.
const EOI: u64 = 0x40;

const ID: u8 = 0;
const VERSION: u8 = 1;
const ARBITRATION: u8 = 2;
const FIRST_ENTRY: u8 = 0x10;

/// Versions without and with an EOI register.
const VERSION_WITHOUT_EOI: u32 = 0x11;
const VERSION_WITH_EOI: u32 = 0x20;
/// The number of the last entry, in the version register.
const LAST_ENTRY: u32 = (PINS as u32 - 1) << 16;

impl Ioapic {
    /// Read at `offset` from the address of the registers. Registers are 16 bytes apart; bytes that belong to none read
    /// as 0.
    pub fn mmio_read(&self, offset: u64, data: &mut [u8]) {
        data.fill(0);
        let value = match offset & !0xf {
            IOREGSEL => u32::from(self.select),
            IOWIN => self.read_selected(),
            _ => 0,
        };
        let within = (offset & 0xf) as usize;
        for (byte, source) in data.iter_mut().zip(value.to_le_bytes().into_iter().skip(within)) {
            *byte = source;
        }
    }

    /// Write at `offset` from the address of the registers: 1 to 8 bytes, of which the first four count. Writes that are
    /// not aligned to a register are ignored.
    pub fn mmio_write(&mut self, offset: u64, data: &[u8], bus: &mut Bus<'_>) {
        let mut bytes = [0; 4];
        for (byte, source) in bytes.iter_mut().zip(data) {
            *byte = *source;
        }
        let value = u32::from_le_bytes(bytes);
        match offset {
            IOREGSEL => self.select = value as u8,
            IOWIN => self.write_selected(value, bus),
            EOI if self.eoi_broadcast == EoiBroadcast::Suppressible => {
                self.end_of_interrupt(Eoi { vector: value as u8, trigger: TriggerMode::Level }, bus);
            }
            _ => {}
        }
    }

    fn selected_entry(&self) -> Option<(u8, bool)> {
        let index = self.select.checked_sub(FIRST_ENTRY)?;
        (index / 2 < PINS).then_some((index / 2, index % 2 != 0))
    }

    fn read_selected(&self) -> u32 {
        match self.select {
            ID | ARBITRATION => u32::from(self.id) << 24,
            VERSION => {
                LAST_ENTRY
                    | match self.eoi_broadcast {
                        EoiBroadcast::Always => VERSION_WITHOUT_EOI,
                        EoiBroadcast::Suppressible => VERSION_WITH_EOI,
                    }
            }
            _ => match self.selected_entry() {
                Some((pin, high)) => {
                    let bits = self.entries[usize::from(pin)].bits();
                    (if high { bits >> 32 } else { bits }) as u32
                }
                None => u32::MAX,
            },
        }
    }

    fn write_selected(&mut self, value: u32, bus: &mut Bus<'_>) {
        if self.select == ID {
            self.id = (value >> 24) as u8 & 0xf;
        } else if let Some((pin, high)) = self.selected_entry() {
            let entry = &mut self.entries[usize::from(pin)];
            if high {
                entry.write_high(value);
            } else {
                entry.write_low(value);
            }
            // An asserted level that was held back by the old entry goes out by the new one. An edge that came while
            // masked is lost, as on the chip.
            self.send_if_asserted(pin, bus);
        }
    }
}
