//! Which vCPU runs next, and for how long; what happens when all are idle.
//!
//! Virtual time: each vCPU has a clock of its own (modelled cycles). The one that is furthest behind runs, until it is a
//! quantum ahead of the others or a timer is due. A halted vCPU is where its next timer is. This order depends on
//! nothing but the guest. Real time: the same with slices in turn, and idle vCPUs wait for the host's clock.

use std::time::Duration;

use host::Wait;
use irqchip::{Now, Signal};
use silicon_x86::core::Clock;
use silicon_x86::mem::DeviceAccess;

use super::{VcpuExit, Vm};
use crate::error::Error;
use crate::exit::{Next, UserExit};
use crate::notice::Notice;
use crate::pv::OnProcessor;
use crate::pv::hypercall::Effect;
use crate::time::ticks_to_ns;
use crate::vcpu::MpState;
use crate::vcpu::run::SliceEnd;

/// The slice in real time, in quarter cycles.
const REAL_SLICE: u64 = 4 * 250_000;
/// Idle virtual time passes at once; this many idle jumps without an instruction in between count as progress anyway.
const IDLE_KICK_CHECK: u32 = 1024;

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Run {
        vcpu: usize,
        until: u64,
    },
    /// The local APIC timer of a halted vCPU.
    Timer {
        vcpu: usize,
        tsc: u64,
    },
    /// The 8254.
    Pit {
        tsc: u64,
    },
    /// The VMM's own timer.
    Wakeup {
        tsc: u64,
    },
    /// Nothing will happen by itself.
    Nothing,
}

impl Vm {
    /// Runs the machine until the VMM has to act. The exit belongs to the vCPU given; what the VMM fills in is taken when
    /// it calls again.
    ///
    /// # Errors
    /// The machine has no vCPU, or a fault of this program was found.
    pub fn run(&mut self) -> Result<(usize, VcpuExit<'_>), Error> {
        if self.vcpus.is_empty() {
            return Err(Error::NoVcpu);
        }
        if let Some(vcpu) = self.complete_user_exit() {
            return Ok((vcpu, self.user_exit(vcpu)));
        }
        let mut idle = 0_u32;
        loop {
            if self.kicker.take() {
                return Ok((self.current, VcpuExit::Interrupted));
            }
            self.deliver_signals(self.time_tsc());
            let choice = self.choose();
            if let Clock::Real(_) = self.clock
                && let Some(exit) = self.wait_for(choice)
            {
                return Ok((self.current, exit));
            }
            match choice {
                Choice::Run { vcpu, until } => {
                    idle = 0;
                    self.current = vcpu;
                    if self.run_vcpu(vcpu, until)? {
                        return Ok((vcpu, self.user_exit(vcpu)));
                    }
                }
                Choice::Timer { vcpu, tsc } => {
                    self.advance_to(tsc);
                    let guest_tsc = self.now_tsc.wrapping_add(self.vcpus[vcpu].tsc_offset);
                    let vm_ns = self.shared.clock.vm_ns(self.now_tsc);
                    self.shared.irqchip.lapic_timer_expired(vcpu, Now { vm_ns, guest_tsc });
                }
                Choice::Pit { tsc } => {
                    self.advance_to(tsc);
                    self.shared.irqchip.advance(Now::at_ns(self.shared.clock.vm_ns(self.now_tsc)));
                }
                Choice::Wakeup { tsc } => {
                    self.advance_to(tsc);
                    self.wakeup_ns = None;
                    return Ok((self.current, VcpuExit::Interrupted));
                }
                Choice::Nothing => {
                    if !self.can_be_woken() {
                        return Ok((self.current, VcpuExit::Deadlock));
                    }
                    // Only the world outside can go on: the console, or the user.
                    let _ = self.kicker.wait(None);
                }
            }
            idle += 1;
            if idle == IDLE_KICK_CHECK {
                idle = 0;
                std::thread::yield_now();
            }
        }
    }

    /// Takes what the VMM has filled in. Gives the vCPU when it has another exit for the VMM at once.
    fn complete_user_exit(&mut self) -> Option<usize> {
        let index = self.current;
        let vcpu = &mut self.vcpus[index];
        let next = match vcpu.user_exit.take()? {
            UserExit::IoIn { data, len, .. } => {
                vcpu.complete_io_in(&data[..len]);
                Next::Resume
            }
            UserExit::IoOut { .. } => Next::Resume,
            UserExit::MmioRead { access, data } => {
                let value = u64::from_le_bytes(data);
                vcpu.device_reads.push(DeviceAccess { value, ..access });
                vcpu.continue_emulation(&mut self.shared)
            }
            UserExit::MmioWrite { .. } => vcpu.drain_device_writes(&mut self.shared),
            // The guest cannot go on: the VMM gets the same again.
            stuck @ (UserExit::Shutdown | UserExit::InternalError(_)) => {
                vcpu.user_exit = Some(stuck);
                Next::User
            }
        };
        (next == Next::User).then_some(index)
    }

    /// Runs a vCPU for a slice; `true` when it has an exit for the VMM.
    fn run_vcpu(&mut self, index: usize, until: u64) -> Result<bool, Error> {
        let vcpu = &mut self.vcpus[index];
        if vcpu.mp_state == MpState::Halted {
            vcpu.mp_state = MpState::Runnable;
            vcpu.unhalted = false;
            if let Clock::Virtual { .. } = self.clock {
                let wake = vcpu.wake_tsc.saturating_mul(4);
                let now = vcpu.processor.core.now_quarter_cycles();
                vcpu.statistics.halted_cycles += wake.saturating_sub(now) / 4;
                vcpu.processor.core.idle_until(wake);
            }
            vcpu.write_steal_time(&self.shared.memory, OnProcessor::Running);
        }
        let end = vcpu
            .run_slice(&mut self.shared, until, &mut self.trace)
            .map_err(|failure| Error::Entry { vcpu: index, failure })?;
        match end {
            SliceEnd::Time | SliceEnd::Signals => {}
            SliceEnd::Effect(Effect::Kick { apic_id }) => {
                let now = self.vcpus[index].processor.core.now_quarter_cycles() / 4;
                if let Some(target) = self.vcpus.iter_mut().find(|v| v.apic_id == apic_id) {
                    target.unhalted = true;
                    target.wake_tsc = target.wake_tsc.max(now);
                }
            }
            SliceEnd::Effect(_) => self.yield_from(index),
            SliceEnd::Blocked => {
                let vcpu = &mut self.vcpus[index];
                vcpu.wake_tsc = vcpu.processor.core.now_quarter_cycles() / 4;
                vcpu.write_steal_time(&self.shared.memory, OnProcessor::Preempted);
            }
            SliceEnd::User => return Ok(true),
        }
        Ok(false)
    }

    /// A vCPU that spins gives way: it goes on after the others have caught up with it.
    fn yield_from(&mut self, index: usize) {
        if self.vcpus.len() > 1 && matches!(self.clock, Clock::Virtual { .. }) {
            let ahead = self.vcpus[index].processor.core.now_quarter_cycles() + self.slices.quantum_cycles / 2;
            self.vcpus[index].processor.core.idle_until(ahead);
        }
    }

    /// Passes on what the interrupt controllers have for vCPUs, at host TSC `now`.
    pub(super) fn deliver_signals(&mut self, now: u64) {
        while self.shared.irqchip.has_signals() {
            for signal in self.shared.irqchip.take_signals() {
                let Some(vcpu) = self.vcpus.get_mut(signal.vcpu) else { continue };
                let halted = vcpu.mp_state != MpState::Runnable;
                match signal.signal {
                    Signal::Fixed | Signal::ExtInt => {}
                    Signal::Nmi => vcpu.nmi_pending = true,
                    Signal::Init => {
                        vcpu.init();
                        self.shared.irqchip.init_lapic(signal.vcpu);
                    }
                    Signal::Sipi(page) if vcpu.mp_state == MpState::WaitForSipi => {
                        vcpu.start_up(page);
                        vcpu.processor.core.idle_until(now.saturating_mul(4));
                    }
                    Signal::Sipi(_) => {}
                    Signal::Smi => self.notices.add(Notice::SystemManagementInterrupt),
                }
                if halted {
                    vcpu.wake_tsc = vcpu.wake_tsc.max(now);
                }
            }
        }
    }

    fn choose(&self) -> Choice {
        let mut best = Choice::Nothing;
        let mut best_tsc = u64::MAX;
        let mut consider = |choice: Choice, tsc: u64| {
            if tsc < best_tsc {
                best_tsc = tsc;
                best = choice;
            }
        };
        let round_robin = matches!(self.clock, Clock::Real(_));
        let n = self.vcpus.len();
        for step in 0..n {
            let i = if round_robin { (self.current + 1 + step) % n } else { step };
            let vcpu = &self.vcpus[i];
            if vcpu.wakes(&self.shared) {
                let own = vcpu.processor.core.now_quarter_cycles() / 4;
                let at = if vcpu.mp_state == MpState::Halted { own.max(vcpu.wake_tsc) } else { own };
                // In real time vCPUs take turns: the first that can run is as good as the present.
                consider(Choice::Run { vcpu: i, until: 0 }, if round_robin { 0 } else { at });
            } else if vcpu.mp_state == MpState::Halted
                && let Some(tsc) = vcpu.timer_host_tsc(&self.shared.irqchip, &self.shared.clock)
            {
                consider(Choice::Timer { vcpu: i, tsc }, if round_robin { tsc.max(1) } else { tsc });
            }
        }
        if let Some(ns) = self.shared.irqchip.next_timer_event() {
            let tsc = self.shared.clock.host_tsc(ns);
            consider(Choice::Pit { tsc }, tsc);
        }
        if let Some(ns) = self.wakeup_ns {
            let tsc = self.shared.clock.host_tsc(ns);
            consider(Choice::Wakeup { tsc }, tsc);
        }
        match best {
            Choice::Run { vcpu, .. } => Choice::Run { vcpu, until: self.slice_end(vcpu, best_tsc) },
            other => other,
        }
    }

    /// Quarter cycles up to which a vCPU may run now: a quantum past the next thing that could happen elsewhere.
    fn slice_end(&self, vcpu: usize, start_tsc: u64) -> u64 {
        if let Clock::Real(_) = self.clock {
            return self.vcpus[vcpu].processor.core.now_quarter_cycles() + REAL_SLICE;
        }
        let start = start_tsc.saturating_mul(4);
        let mut end = start + 4 * self.slices.longest_cycles;
        let quantum = 4 * self.slices.quantum_cycles;
        for (i, other) in self.vcpus.iter().enumerate() {
            if i == vcpu {
                continue;
            }
            if other.wakes(&self.shared) {
                let at = other
                    .processor
                    .core
                    .now_quarter_cycles()
                    .max(other.wake_tsc * 4 * u64::from(other.mp_state == MpState::Halted));
                end = end.min(at + quantum);
            } else if other.mp_state == MpState::Halted
                && let Some(tsc) = other.timer_host_tsc(&self.shared.irqchip, &self.shared.clock)
            {
                end = end.min(tsc.saturating_mul(4) + quantum);
            }
            // It could be woken by this one at any time; then it starts at the waker's clock.
        }
        if let Some(ns) = self.shared.irqchip.next_timer_event() {
            end = end.min(self.shared.clock.host_tsc(ns).saturating_mul(4));
        }
        if let Some(ns) = self.wakeup_ns {
            end = end.min(self.shared.clock.host_tsc(ns).saturating_mul(4));
        }
        end.max(start + 4)
    }

    fn advance_to(&mut self, tsc: u64) {
        if let Clock::Real(oscillator) = &self.clock {
            self.now_tsc = oscillator.ticks();
        } else {
            self.now_tsc = self.now_tsc.max(tsc);
        }
    }

    /// Real time: waits until the chosen event is due; `Some` when a kick came first.
    fn wait_for(&mut self, choice: Choice) -> Option<VcpuExit<'static>> {
        let tsc = match choice {
            Choice::Run { .. } | Choice::Nothing => return None,
            Choice::Timer { tsc, .. } | Choice::Pit { tsc } | Choice::Wakeup { tsc } => tsc,
        };
        loop {
            let now = self.time_tsc();
            if now >= tsc {
                return None;
            }
            let wait = Duration::from_nanos(ticks_to_ns(tsc - now, self.shared.clock.khz) + 1);
            if self.kicker.wait(Some(wait)) == Wait::Kicked {
                self.kicker.take();
                return Some(VcpuExit::Interrupted);
            }
        }
    }

    /// Whether an interrupt from outside could wake a vCPU.
    fn can_be_woken(&self) -> bool {
        self.vcpus.iter().any(|v| v.mp_state == MpState::Halted && v.processor.core.interrupts_open())
    }
}
