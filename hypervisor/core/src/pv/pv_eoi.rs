use irqchip::{Irqchip, PvEoiFlag};

use crate::memory::GuestMemory;
use crate::vcpu::Vcpu;

const ENABLED: u64 = 1;

impl Vcpu {
    fn pv_eoi_address(&self) -> Option<u64> {
        (self.pv.pv_eoi & ENABLED != 0).then_some(self.pv.pv_eoi & !3)
    }

    /// After an exit: if the guest has cleared the flag, the interrupt in service has ended.
    pub(crate) fn settle_pv_eoi(&mut self, irqchip: &mut Irqchip, memory: &GuestMemory) {
        if !irqchip.lapic(self.index).pv_eoi_pending() {
            return;
        }
        let Some(at) = self.pv_eoi_address() else { return };
        let mut flag = [0_u8; 1];
        if memory.read(at, &mut flag).is_err() {
            return;
        }
        let found = if flag[0] & 1 == 0 { PvEoiFlag::Cleared } else { PvEoiFlag::StillSet };
        let _ = memory.write(at, &[flag[0] & !1]);
        irqchip.pv_eoi_clear(self.index, found);
    }

    /// Before an entry: lets the guest end the interrupt in service by clearing a flag, where that is enough.
    pub(crate) fn offer_pv_eoi(&mut self, irqchip: &mut Irqchip, memory: &GuestMemory) {
        let Some(at) = self.pv_eoi_address() else { return };
        if !irqchip.pv_eoi_can_set(self.index) {
            return;
        }
        let mut flag = [0_u8; 1];
        if memory.read(at, &mut flag).is_ok() && memory.write(at, &[flag[0] | 1]).is_ok() {
            irqchip.lapic_mut(self.index).pv_eoi_set();
        }
    }
}
