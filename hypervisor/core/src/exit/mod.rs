//! VM-exits: what KVM does for each reason.

mod control_register;
mod cpuid;
mod device_memory;
mod exception;
mod io;
mod msr;
mod task_switch;
mod xsetbv;

use irqchip::Irqchip;
use silicon_x86::event::debugctl;
use silicon_x86::mem::DeviceAccess;
use x86_defs::rflags;
use x86_defs::vmx::ExitReason;

use crate::memory::{Ept, GuestMemory, Pool};
use crate::pv::hypercall::Effect;
use crate::time::VmClock;
use crate::vcpu::inject::dr6;
use crate::vcpu::{MpState, Vcpu};

/// What of a VM its vCPUs share.
#[derive(Debug)]
pub struct Shared {
    pub memory: GuestMemory,
    pub ept: Ept,
    pub pool: Pool,
    pub irqchip: Irqchip,
    pub clock: VmClock,
    pub vcpus: usize,
    /// ACPI power-management timer: 24 bits at 3.579545 MHz.
    pub pm_timer_port: u16,
}

/// What the VMM has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserExit {
    IoIn { port: u16, data: [u8; 8], len: usize },
    IoOut { port: u16, data: [u8; 8], len: usize },
    MmioRead { access: DeviceAccess, data: [u8; 8] },
    MmioWrite { access: DeviceAccess, data: [u8; 8] },
    Shutdown,
    InternalError(String),
}

/// What follows an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Enter the guest again.
    Resume,
    /// Another vCPU's state may have to change first.
    Effect(Effect),
    /// The vCPU halted or waits.
    Block,
    /// [`Vcpu::user_exit`] says what the VMM has to do.
    User,
}

impl Vcpu {
    /// Handles the exit that the processor has recorded.
    pub(crate) fn handle_exit(&mut self, shared: &mut Shared) -> Next {
        let info = self.processor.core.vmx.exit;
        let Some(reason) = info.reason else {
            return self.fail("the processor left the guest without a reason".into());
        };
        match reason {
            // The interrupt was the host's, and has been acknowledged with the exit.
            ExitReason::ExternalInterrupt | ExitReason::InterruptWindow | ExitReason::NmiWindow => Next::Resume,
            ExitReason::PreemptionTimer => {
                let now = self.now(&shared.clock);
                shared.irqchip.lapic_timer_expired(self.index, now);
                Next::Resume
            }
            ExitReason::ExceptionOrNmi => self.exception_exit(),
            ExitReason::TripleFault => {
                self.user_exit = Some(UserExit::Shutdown);
                Next::User
            }
            ExitReason::Cpuid if self.msrs.cpuid_faults() && self.processor.core.cpl() != 0 => {
                self.queue_gp();
                Next::Resume
            }
            ExitReason::Cpuid => {
                self.cpuid_exit(shared);
                self.skip()
            }
            ExitReason::Hlt => {
                self.skip();
                // A single-step trap ends it at once.
                if self.exception.is_some() {
                    return Next::Resume;
                }
                self.mp_state = MpState::Halted;
                Next::Block
            }
            ExitReason::Rdmsr => self.rdmsr_exit(shared),
            ExitReason::Wrmsr => self.wrmsr_exit(shared),
            ExitReason::IoInstruction => self.io_exit(shared),
            ExitReason::EptViolation => self.ept_violation(shared),
            ExitReason::EptMisconfiguration => self.emulate(shared),
            ExitReason::ControlRegisterAccess => self.control_register_exit(shared),
            ExitReason::MovDr => self.debug_register_exit(),
            ExitReason::Vmcall => {
                let effect = self.hypercall(&mut shared.irqchip);
                self.skip();
                if effect == Effect::None { Next::Resume } else { Next::Effect(effect) }
            }
            ExitReason::Pause => {
                self.skip();
                Next::Effect(Effect::Yield)
            }
            // No-operations: caches are coherent, and MWAIT may end its wait at once.
            ExitReason::WbinvdOrWbnoinvd | ExitReason::Invd | ExitReason::Mwait | ExitReason::Monitor => self.skip(),
            ExitReason::Xsetbv => self.xsetbv_exit(),
            ExitReason::Rdpmc => {
                self.queue_gp();
                Next::Resume
            }
            ExitReason::Vmclear
            | ExitReason::Vmlaunch
            | ExitReason::Vmptrld
            | ExitReason::Vmptrst
            | ExitReason::Vmread
            | ExitReason::Vmresume
            | ExitReason::Vmwrite
            | ExitReason::Vmxoff
            | ExitReason::Vmxon
            | ExitReason::Invept
            | ExitReason::Invvpid
            | ExitReason::Vmfunc
            | ExitReason::Getsec
            | ExitReason::Encls => {
                self.queue_ud();
                Next::Resume
            }
            ExitReason::TaskSwitch => self.task_switch_exit(shared),
            other => self.fail(format!("VM-exit that this hypervisor does not ask for: {}", other.name())),
        }
    }

    /// Ends the VM with a message for its user.
    pub(crate) fn fail(&mut self, why: String) -> Next {
        let bytes = self.bytes_at_rip();
        let core = &self.processor.core;
        self.user_exit = Some(UserExit::InternalError(format!(
            "{why}\n  on vCPU {} at RIP {:#x} (linear {:#x}), instruction bytes {bytes}\n{core:?}",
            self.index,
            core.rip,
            core.rip_linear(),
        )));
        Next::User
    }

    fn bytes_at_rip(&mut self) -> String {
        let bytes = self.processor.peek_code(15);
        bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
    }

    /// Steps over the instruction that exited.
    pub(crate) fn skip(&mut self) -> Next {
        let core = &mut self.processor.core;
        let length = u64::from(core.vmx.exit.instruction_length);
        core.rip = core.rip.wrapping_add(length) & core.mode.rip_mask;
        // The instruction has been executed: its shadow is over.
        core.events.sti_shadow = false;
        core.events.mov_ss_shadow = false;
        core.count.instructions += 1;
        let flags = core.rflags_rest;
        core.rflags_rest &= !rflags::RF;
        // With BTF set only branches trap, and no instruction that exits is one.
        if flags & rflags::TF != 0 && core.msrs.debugctl & debugctl::BTF == 0 {
            self.queue_db(dr6::BS);
        }
        Next::Resume
    }
}
