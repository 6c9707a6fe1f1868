//! One slice of a vCPU: enter, run, handle exits, until the slice is over or somebody else has to act.

use silicon_x86::processor::{Outcome, Refused};

use super::{MpState, Vcpu};
use crate::exit::{Next, Shared};
use crate::pv::hypercall::Effect;
use crate::trace::{ExitRecord, Trace};

/// Modelled cost of a VM-exit and the entry after it, in quarter cycles: 1000 cycles of the processor, and 1200 of KVM's
/// handling (measured: a CPUID exit on Emerald Rapids under KVM takes 2217-2337 cycles).
const EXIT_COST: u64 = 4 * 2200;
/// What an exit to the VMM costs on top, in quarter cycles: the way out of the kernel and back (measured by Dall et
/// al., ISCA 2016: 6732 cycles against 2565 in the kernel).
const VMM_EXIT_COST: u64 = 4 * 4200;

/// Why a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// Its time is over.
    Time,
    /// Signals for vCPUs wait in the interrupt controllers.
    Signals,
    Effect(Effect),
    Blocked,
    User,
}

impl Vcpu {
    /// Runs until `until` (quarter cycles of the processor's clock), or less.
    ///
    /// # Errors
    /// The text of a refused VM-entry: a fault of this program.
    pub(crate) fn run_slice(
        &mut self,
        shared: &mut Shared,
        until: u64,
        trace: &mut Option<Trace>,
    ) -> Result<SliceEnd, String> {
        if std::mem::take(&mut self.pdptes_in_memory) {
            // What cannot be loaded stays as it was, as in KVM.
            let _ = self.load_pdptes(&shared.memory);
        }
        loop {
            self.arm_timer(&shared.irqchip, &shared.clock);
            self.inject_next(&mut shared.irqchip);
            self.offer_pv_eoi(&mut shared.irqchip, &shared.memory);
            match self.processor.enter(&mut self.launched) {
                Ok(()) => {}
                Err(Refused::Exit) => {
                    if let Some(end) = self.after_exit(shared, trace)? {
                        return Ok(end);
                    }
                    continue;
                }
                Err(Refused::Failure(why)) => return Err(format!("{why}\n{:?}", self.processor.core)),
            }
            match self.processor.run(until) {
                Outcome::Paused => {
                    // The slice is no event of the modelled machine. The guest is left as it is; the next slice
                    // enters it as after an exit without effect.
                    self.processor.suspend()?;
                    self.settle_pv_eoi(&mut shared.irqchip, &shared.memory);
                    return Ok(SliceEnd::Time);
                }
                Outcome::Exit => {
                    if let Some(end) = self.after_exit(shared, trace)? {
                        return Ok(end);
                    }
                    if self.processor.core.now_quarter_cycles() >= until {
                        return Ok(SliceEnd::Time);
                    }
                }
            }
        }
    }

    fn after_exit(&mut self, shared: &mut Shared, trace: &mut Option<Trace>) -> Result<Option<SliceEnd>, String> {
        self.processor.left()?;
        let info = self.processor.core.vmx.exit;
        if let Some(reason) = info.reason {
            self.statistics.exit(reason);
            if let Some(trace) = trace {
                let core = &self.processor.core;
                trace(&ExitRecord {
                    vcpu: self.index,
                    guest_time_ns: shared.clock.vm_ns(core.host_tsc()),
                    reason,
                    qualification: info.qualification,
                    rip: core.rip,
                    instructions: core.count.instructions,
                });
            }
        }
        self.processor.core.charge(EXIT_COST);
        self.settle_pv_eoi(&mut shared.irqchip, &shared.memory);
        self.reinject();
        Ok(match self.handle_exit(shared) {
            Next::Resume if shared.irqchip.has_signals() => Some(SliceEnd::Signals),
            Next::Resume => None,
            Next::Effect(effect) => Some(SliceEnd::Effect(effect)),
            Next::Block => Some(SliceEnd::Blocked),
            Next::User => {
                self.statistics.vmm_exits += 1;
                self.processor.core.charge(VMM_EXIT_COST);
                Some(SliceEnd::User)
            }
        })
    }

    /// Whether an event ends the vCPU's HLT.
    pub(crate) fn wakes(&self, shared: &Shared) -> bool {
        match self.mp_state {
            MpState::Runnable => true,
            MpState::WaitForSipi => false,
            MpState::Halted => {
                self.unhalted
                    || self.exception.is_some()
                    || (self.nmi_pending && !self.processor.core.events.nmi_blocked)
                    || (shared.irqchip.pending_interrupt(self.index).is_some() && self.processor.core.interrupts_open())
            }
        }
    }
}
