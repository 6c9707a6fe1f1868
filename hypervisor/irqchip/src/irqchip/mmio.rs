//! Accesses to guest-physical addresses.

use super::{Claim, Irqchip};
use crate::ioapic::MMIO_LENGTH;
use crate::lapic::deliver;
use crate::now::Now;

const PAGE: u64 = 0x1000;

/// Offset of `address` in a window, if it lies in it.
fn within(address: u64, base: u64, length: u64) -> Option<u64> {
    address.checked_sub(base).filter(|offset| *offset < length)
}

impl Irqchip {
    /// The vCPU reads guest-physical memory: its local APIC page (where IA32_APIC_BASE says) or the I/O APIC.
    pub fn mmio_read(&mut self, vcpu: usize, address: u64, data: &mut [u8], now: Now) -> Claim {
        let lapic = &mut self.lapics[vcpu];
        if let Some(offset) = within(address, lapic.base_address(), PAGE) {
            lapic.mmio_read(offset as u16, data, now);
            return Claim::Claimed;
        }
        if let Some(offset) = within(address, self.ioapic.address(), MMIO_LENGTH) {
            self.ioapic.mmio_read(offset, data);
            return Claim::Claimed;
        }
        Claim::Foreign
    }

    /// The vCPU writes guest-physical memory.
    pub fn mmio_write(&mut self, vcpu: usize, address: u64, data: &[u8], now: Now) -> Claim {
        let lapic = &mut self.lapics[vcpu];
        if let Some(offset) = within(address, lapic.base_address(), PAGE) {
            self.lapic_write(vcpu, offset as u16, data, now);
            return Claim::Claimed;
        }
        if let Some(offset) = within(address, self.ioapic.address(), MMIO_LENGTH) {
            let listeners = self.tick_listeners();
            let Self { ioapic, lapics, outbox, .. } = self;
            ioapic.mmio_write(offset, data, &mut |message| deliver(message, lapics, outbox));
            self.follow_tick_listeners(listeners);
            return Claim::Claimed;
        }
        Claim::Foreign
    }

    /// The vCPU reads its local APIC page, by offset.
    pub fn lapic_read(&mut self, vcpu: usize, offset: u16, data: &mut [u8], now: Now) {
        self.lapics[vcpu].mmio_read(offset, data, now);
    }

    /// The vCPU writes its local APIC page, by offset.
    pub fn lapic_write(&mut self, vcpu: usize, offset: u16, data: &[u8], now: Now) {
        let effect = self.lapics[vcpu].mmio_write(vcpu, offset, data, now);
        self.apply(effect);
    }
}
