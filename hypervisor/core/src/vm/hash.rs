//! The state hash: two runs with the same inputs end with the same one.

use std::hash::{Hash, Hasher};

use silicon_memory::HostPhysical;
use xxhash_rust::xxh3::Xxh3;

use super::Vm;

impl Vm {
    /// A hash of guest memory, processor state, interrupt controllers, clocks and counts.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let mut h = Xxh3::new();
        let mut page = [0_u8; 4096];
        for slot in self.shared.memory.slots.iter() {
            (slot.guest, slot.len).hash(&mut h);
            for at in (slot.host.0..slot.host.0 + slot.len).step_by(4096) {
                if let Some((frame, _)) = self.machine.page(HostPhysical(at)) {
                    frame.read(0, &mut page);
                    h.update(&page);
                }
            }
        }
        for vcpu in &self.vcpus {
            let c = &vcpu.processor.core;
            c.gpr[..16].hash(&mut h);
            (c.rip, c.rflags(), c.cr0, c.cr2, c.cr3, c.cr4, c.efer, c.dr, c.xcr0, c.pkru).hash(&mut h);
            (&c.seg, c.gdtr, c.idtr, &c.msrs, &c.fpu, &c.events).hash(&mut h);
            (&vcpu.msrs, &vcpu.pv, vcpu.tsc_offset, vcpu.mp_state).hash(&mut h);
            c.now_quarter_cycles().hash(&mut h);
        }
        self.statistics().hash(&mut h);
        self.shared.irqchip.hash(&mut h);
        h.finish()
    }
}
