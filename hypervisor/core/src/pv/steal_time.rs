use crate::memory::GuestMemory;
use crate::vcpu::Vcpu;

const ENABLED: u64 = 1;
/// Bit of `preempted`: the vCPU does not run now.
const PREEMPTED: u8 = 1;

/// Whether a vCPU is on a processor, as `kvm_steal_time.preempted` tells other vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnProcessor {
    Running,
    Preempted,
}

impl Vcpu {
    /// Publishes `kvm_steal_time`: stolen nanoseconds, and whether the vCPU is preempted.
    pub(crate) fn write_steal_time(&mut self, memory: &GuestMemory, state: OnProcessor) {
        if self.pv.steal_time & ENABLED == 0 {
            return;
        }
        let at = self.pv.steal_time & !0x3f;
        let mut record = [0_u8; 17];
        if memory.read(at, &mut record).is_err() {
            return;
        }
        let version = u32::from_le_bytes([record[8], record[9], record[10], record[11]]).wrapping_add(2) & !1;
        record[0..8].copy_from_slice(&self.pv.steal_ns.to_le_bytes());
        record[8..12].copy_from_slice(&version.to_le_bytes());
        record[16] = if state == OnProcessor::Preempted { PREEMPTED } else { 0 };
        let _ = memory.write(at, &record);
    }
}
