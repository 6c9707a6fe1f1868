//! EPT violations and misconfigurations: memory on demand, and emulation of device accesses.

use irqchip::Claim;
use silicon_x86::mem::DeviceAccess;
use silicon_x86::processor::Emulated;
use x86_defs::vmx::ExitReason;

use super::{Next, Shared, UserExit};
use crate::memory::Mapped;
use crate::vcpu::Vcpu;

impl Vcpu {
    /// A guest-physical address without translation: memory is mapped, a device access is emulated.
    pub(super) fn ept_violation(&mut self, shared: &mut Shared) -> Next {
        let info = self.processor.core.vmx.exit;
        let write = info.qualification & 2 != 0;
        let Shared { memory, ept, pool, .. } = shared;
        match ept.map(&memory.machine, pool, &memory.slots, info.guest_physical, write) {
            Mapped::Memory => Next::Resume,
            Mapped::Device => {
                // The entry was not present: nothing cached has to go.
                if info.qualification & 4 != 0 {
                    return self.fail(format!(
                        "the guest jumped to guest-physical address {:#x}, where there is no memory",
                        info.guest_physical
                    ));
                }
                self.emulate(shared)
            }
            Mapped::ReadOnly => self.emulate(shared),
        }
    }

    /// Emulates the instruction at RIP, which touches device memory.
    pub(super) fn emulate(&mut self, shared: &mut Shared) -> Next {
        self.device_reads.clear();
        self.emulating = true;
        self.continue_emulation(shared)
    }

    /// Executes the instruction with the device loads known so far.
    pub(crate) fn continue_emulation(&mut self, shared: &mut Shared) -> Next {
        loop {
            match self.processor.emulate(&mut self.device_reads) {
                Emulated::Done { writes } => {
                    self.emulating = false;
                    self.statistics.emulated += 1;
                    self.device_writes.extend(writes);
                    return self.drain_device_writes(shared);
                }
                Emulated::Wants(access) => {
                    let mut data = [0_u8; 8];
                    let len = usize::from(access.bytes).min(8);
                    // Memory that is not mapped yet, or that is read-only and read before it is written.
                    if shared.memory.read(access.guest_physical, &mut data[..len]).is_ok() {
                        self.device_reads.push(DeviceAccess { value: u64::from_le_bytes(data), ..access });
                        continue;
                    }
                    let now = self.now(&shared.clock);
                    let claim = shared.irqchip.mmio_read(self.index, access.guest_physical, &mut data[..len], now);
                    if claim == Claim::Foreign {
                        self.user_exit = Some(UserExit::MmioRead { access, data });
                        return Next::User;
                    }
                    self.device_reads.push(DeviceAccess { value: u64::from_le_bytes(data), ..access });
                }
                Emulated::Fault => {
                    self.emulating = false;
                    self.queue_processor_fault();
                    return Next::Resume;
                }
                Emulated::Exit => {
                    // The code or the page tables are in memory that is not mapped yet. What devices have given stays.
                    let info = self.processor.core.vmx.exit;
                    let write = info.qualification & 2 != 0;
                    let Shared { memory, ept, pool, .. } = shared;
                    // An access to the guest's page tables: those in device memory are marked as such, and not present
                    // to the emulation.
                    let table = info.qualification & 1 << 8 == 0;
                    if info.reason == Some(ExitReason::EptViolation) {
                        match ept.map(&memory.machine, pool, &memory.slots, info.guest_physical, write) {
                            Mapped::Memory => continue,
                            Mapped::Device if table => continue,
                            _ => {}
                        }
                    }
                    self.emulating = false;
                    return self.fail(format!(
                        "cannot emulate the access to guest-physical address {:#x} ({})",
                        info.guest_physical,
                        info.reason.map_or("no reason", |r| r.name())
                    ));
                }
            }
        }
    }

    /// Carries out collected device stores: in the interrupt controllers, or by the VMM.
    pub(crate) fn drain_device_writes(&mut self, shared: &mut Shared) -> Next {
        while let Some(access) = self.device_writes.pop_front() {
            let data = access.value.to_le_bytes();
            let len = usize::from(access.bytes).min(8);
            if shared.memory.is_writable(access.guest_physical) {
                // Cannot fail: an access does not cross a page.
                let _ = shared.memory.write(access.guest_physical, &data[..len]);
                continue;
            }
            let now = self.now(&shared.clock);
            if shared.irqchip.mmio_write(self.index, access.guest_physical, &data[..len], now) == Claim::Foreign {
                self.user_exit = Some(UserExit::MmioWrite { access, data });
                return Next::User;
            }
        }
        Next::Resume
    }
}
