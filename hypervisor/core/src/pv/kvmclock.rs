use crate::memory::GuestMemory;
use crate::time::{VmClock, pvclock_scale};
use crate::vcpu::Vcpu;

/// `PVCLOCK_TSC_STABLE_BIT`: the time of all vCPUs is comparable.
const TSC_STABLE: u8 = 1;
/// The enable bit of MSR_KVM_SYSTEM_TIME.
const ENABLED: u64 = 1;

impl Vcpu {
    /// Publishes the vCPU's `pvclock_vcpu_time_info`: the pair (TSC, VM time) of now and the scale from then on.
    pub(crate) fn write_kvmclock(&mut self, memory: &GuestMemory, clock: &VmClock) {
        if self.pv.system_time & ENABLED == 0 {
            return;
        }
        let at = self.pv.system_time & !ENABLED;
        let host_tsc = self.processor.core.host_tsc();
        let guest_tsc = host_tsc.wrapping_add(self.tsc_offset);
        let scale = pvclock_scale(clock.khz);
        let mut old = [0_u8; 4];
        if memory.read(at, &mut old).is_err() {
            return;
        }
        // An odd version tells the guest that the structure is being written.
        let version = u32::from_le_bytes(old).wrapping_add(2) & !1;
        let mut info = [0_u8; 32];
        info[0..4].copy_from_slice(&version.to_le_bytes());
        info[8..16].copy_from_slice(&guest_tsc.to_le_bytes());
        info[16..24].copy_from_slice(&clock.vm_ns(host_tsc).to_le_bytes());
        info[24..28].copy_from_slice(&scale.multiplier.to_le_bytes());
        info[28] = scale.shift as u8;
        info[29] = TSC_STABLE;
        // A guest that gives an address without memory gets no clock, as in KVM.
        let _ = memory.write(at, &info);
    }

    /// Publishes `pvclock_wall_clock`: the wall clock at VM time zero.
    pub(crate) fn write_wall_clock(memory: &GuestMemory, at: u64, clock: &VmClock) {
        let mut old = [0_u8; 4];
        if memory.read(at, &mut old).is_err() {
            return;
        }
        let version = u32::from_le_bytes(old).wrapping_add(2) & !1;
        let seconds = (clock.wall_clock_ns / 1_000_000_000) as u32;
        let nanoseconds = (clock.wall_clock_ns % 1_000_000_000) as u32;
        let mut wall = [0_u8; 12];
        wall[0..4].copy_from_slice(&version.to_le_bytes());
        wall[4..8].copy_from_slice(&seconds.to_le_bytes());
        wall[8..12].copy_from_slice(&nanoseconds.to_le_bytes());
        let _ = memory.write(at, &wall);
    }
}
