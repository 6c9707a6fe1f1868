//! Posted-interrupt processing ("Posted-Interrupt Processing").
//!
//! The descriptor has the requests in bits 255:0 and the outstanding-notification bit in bit 256. Processors of the
//! machine run one after the other, so plain loads and stores do what the locked ones of hardware do.

use silicon_memory::HostPhysical;

use super::page::offset;
use crate::Core;

/// Bytes 63:32 of the descriptor; bit 0 is "outstanding notification".
const NOTIFICATION: u64 = 32;
const OUTSTANDING: u64 = 1;

impl Core {
    /// Whether an external interrupt with `vector` is a notification of posted interrupts.
    pub(crate) fn is_notification(&self, vector: u8) -> bool {
        self.vmx.apic.notification == Some(vector)
    }

    /// Takes the posted requests over into VIRR.
    #[cold]
    pub(crate) fn process_posted_interrupts(&mut self) {
        let Some((HostPhysical(address), frame)) = self.vmx.apic.descriptor else { return };
        let at = address & 0xfff;
        let outstanding: u64 = frame.load(at + NOTIFICATION);
        frame.store(at + NOTIFICATION, outstanding & !OUTSTANDING);
        let mut highest = 0;
        for i in 0..8_u16 {
            let posted: u32 = frame.load(at + u64::from(i) * 4);
            if posted == 0 {
                continue;
            }
            frame.store(at + u64::from(i) * 4, 0_u32);
            let register = offset::IRR + i * 0x10;
            self.set_vapic(register, self.vapic(register) | posted);
            highest = (i * 32) as u8 + posted.ilog2() as u8;
        }
        self.vmx.apic.rvi = self.vmx.apic.rvi.max(highest);
        self.evaluate_virtual_interrupts();
    }
}
