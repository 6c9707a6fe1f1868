//! Accesses that the fast look-up does not answer: misses, page crossings, devices, stores to decoded code.

use silicon_memory::Word;

use super::{Access, DeviceAccess, Place};
use crate::{Core, Leave};

impl Core {
    /// Loads through the modelled TLB, split at a page boundary where needed. For [`super::AccessKind::Write`], the same
    /// bytes are then stored: permissions are those of a store.
    ///
    /// # Errors
    /// The exception or VM-exit of the access.
    #[cold]
    #[inline(never)]
    pub fn load_slow<T: Word>(&mut self, linear: u64, access: Access) -> Result<T, Leave> {
        let linear = self.accessed(linear, access);
        if self.mmu.watch.active() {
            self.watch(linear, T::BYTES, access.kind)?;
        }
        if (linear & 0xfff) + T::BYTES <= 4096 {
            let place = self.translate(linear, access)?;
            self.check_alignment(linear, T::BYTES, access)?;
            return match place {
                Place::Memory { frame, .. } => Ok(frame.load(linear)),
                Place::Device { guest } if T::BYTES > 8 => {
                    let low = self.device_load(guest, 8)?;
                    let high = self.device_load(guest + 8, 8)?;
                    Ok(T::from_u128(u128::from(low) | u128::from(high) << 64))
                }
                Place::Device { guest } => self.device_load(guest, T::BYTES).map(T::from_u64),
                Place::Apic { linear } => self.apic_load(linear, T::BYTES, access).map(T::from_u64),
            };
        }
        let second = self.wrap((linear | 0xfff).wrapping_add(1));
        // No byte may be in the hole, whatever the tables say of the first page.
        self.check_canonical(second, access.segment)?;
        let places = [self.translate(linear, access)?, self.translate(second, access)?];
        self.check_alignment(linear, T::BYTES, access)?;
        let mut bytes = [0_u8; 16];
        let count = T::BYTES as usize;
        let head = (4096 - (linear & 0xfff)) as usize;
        for (place, at, range) in [(places[0], linear, 0..head), (places[1], second, head..count)] {
            match place {
                Place::Memory { frame, .. } => frame.read((at & 0xfff) as usize, &mut bytes[range]),
                Place::Device { guest } => {
                    for (guest, part) in (guest..).step_by(8).zip(bytes[range].chunks_mut(8)) {
                        let value = self.device_load(guest, part.len() as u64)?;
                        part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
                    }
                }
                // Never virtualized across pages.
                Place::Apic { linear } => self.check_apic_access(linear, T::BYTES.max(8), access)?,
            }
        }
        Ok(from_bytes(&bytes[..count]))
    }

    /// Stores through the modelled TLB.
    ///
    /// # Errors
    /// The exception or VM-exit of the access; then nothing is stored.
    #[cold]
    #[inline(never)]
    pub fn store_slow<T: Word>(&mut self, linear: u64, access: Access, value: T) -> Result<(), Leave> {
        let linear = self.accessed(linear, access);
        if self.mmu.watch.active() {
            self.watch(linear, T::BYTES, access.kind)?;
        }
        if (linear & 0xfff) + T::BYTES <= 4096 {
            let place = self.translate(linear, access)?;
            self.check_alignment(linear, T::BYTES, access)?;
            match place {
                Place::Memory { frame, .. } => frame.store(linear, value),
                Place::Device { guest } if T::BYTES > 8 => {
                    self.device_store(guest, 8, value.to_u64());
                    self.device_store(guest + 8, 8, (value.to_u128() >> 64) as u64);
                }
                Place::Device { guest } => self.device_store(guest, T::BYTES, value.to_u64()),
                Place::Apic { linear } => self.apic_store(linear, T::BYTES, access, value.to_u64())?,
            }
            return Ok(());
        }
        let second = self.wrap((linear | 0xfff).wrapping_add(1));
        // No byte may be in the hole, whatever the tables say of the first page.
        self.check_canonical(second, access.segment)?;
        let places = [self.translate(linear, access)?, self.translate(second, access)?];
        for place in places {
            if let Place::Apic { linear } = place {
                // Never virtualized across pages.
                self.check_apic_access(linear, T::BYTES.max(8), access)?;
            }
        }
        self.check_alignment(linear, T::BYTES, access)?;
        let bytes = to_bytes(value);
        let count = T::BYTES as usize;
        let head = (4096 - (linear & 0xfff)) as usize;
        for (place, at, range) in [(places[0], linear, 0..head), (places[1], second, head..count)] {
            match place {
                Place::Memory { frame, .. } => frame.write((at & 0xfff) as usize, &bytes[range]),
                Place::Device { guest } => {
                    for (guest, part) in (guest..).step_by(8).zip(bytes[range].chunks(8)) {
                        let mut value = [0_u8; 8];
                        value[..part.len()].copy_from_slice(part);
                        self.device_store(guest, part.len() as u64, u64::from_le_bytes(value));
                    }
                }
                Place::Apic { .. } => {}
            }
        }
        Ok(())
    }

    /// Translates every page of the range, without touching the bytes.
    ///
    /// # Errors
    /// The exception or VM-exit of the first page that does not allow the access.
    #[cold]
    #[inline(never)]
    pub fn check_slow(&mut self, linear: u64, bytes: u64, access: Access) -> Result<(), Leave> {
        let linear = self.accessed(linear, access);
        let mut at = linear;
        let mut left = bytes.max(1);
        // No byte may be in the hole, whatever the tables say of the first page.
        self.check_canonical(self.wrap(linear.wrapping_add(left - 1)), access.segment)?;
        loop {
            if let Place::Apic { linear } = self.translate(at, access)? {
                self.check_apic_access(linear, left, access)?;
            }
            let in_page = 4096 - (at & 0xfff);
            if left <= in_page {
                return Ok(());
            }
            left -= in_page;
            at = self.wrap(at.wrapping_add(in_page));
        }
    }

    fn device_load(&mut self, guest: u64, bytes: u64) -> Result<u64, Leave> {
        let replay = &mut self.mmu.mmio;
        if let Some(read) = replay.reads.get(replay.cursor)
            && read.guest_physical == guest
            && u64::from(read.bytes) == bytes
        {
            replay.cursor += 1;
            return Ok(read.value);
        }
        replay.wanted = Some(DeviceAccess { guest_physical: guest, bytes: bytes as u8, value: 0 });
        Err(Leave::Exit)
    }

    fn device_store(&mut self, guest: u64, bytes: u64, value: u64) {
        self.mmu.mmio.writes.push(DeviceAccess { guest_physical: guest, bytes: bytes as u8, value });
    }
}

fn from_bytes<T: Word>(bytes: &[u8]) -> T {
    let mut wide = [0_u8; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    T::from_u128(u128::from_le_bytes(wide))
}

fn to_bytes<T: Word>(value: T) -> [u8; 16] {
    value.to_u128().to_le_bytes()
}
