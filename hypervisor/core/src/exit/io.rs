//! IN, OUT, INS and OUTS.

use irqchip::Claim;
use silicon_x86::mem::AccessKind;
use silicon_x86::op::Leave;
use x86_defs::rflags;
use x86_defs::segment::index;

use super::{Next, Shared, UserExit};
use crate::vcpu::Vcpu;

/// Ticks of the ACPI power-management timer a second.
const PM_TIMER_HZ: u128 = 3_579_545;

/// Exit qualification for I/O instructions.
#[derive(Clone, Copy, Debug)]
struct IoAccess {
    len: usize,
    input: bool,
    string: bool,
    repeat: bool,
    port: u16,
}

impl IoAccess {
    fn new(qualification: u64) -> Self {
        Self {
            len: (qualification & 7) as usize + 1,
            input: qualification & 8 != 0,
            string: qualification & 16 != 0,
            repeat: qualification & 32 != 0,
            port: (qualification >> 16) as u16,
        }
    }
}

impl Vcpu {
    pub(super) fn io_exit(&mut self, shared: &mut Shared) -> Next {
        let access = IoAccess::new(self.processor.core.vmx.exit.qualification);
        self.with_port_breakpoints(access, |vcpu| vcpu.port_access(shared, access))
    }

    /// An I/O breakpoint traps after the access: where `access_port` has completed one, the trap is queued.
    fn with_port_breakpoints<R>(&mut self, access: IoAccess, access_port: impl FnOnce(&mut Self) -> R) -> R {
        let hits = self.processor.core.port_breakpoints(access.port, access.len as u8);
        let before = (self.processor.core.rip, self.processor.core.gpr[1]);
        let result = access_port(self);
        if hits != 0 && before != (self.processor.core.rip, self.processor.core.gpr[1]) {
            self.queue_db(hits);
        }
        result
    }

    fn port_access(&mut self, shared: &mut Shared, access: IoAccess) -> Next {
        let mut data = [0_u8; 8];
        if access.string {
            return self.string_io(shared, access);
        }
        if access.input {
            if self.port_read(shared, access.port, &mut data[..access.len]) {
                self.finish_in(&data[..access.len]);
                return self.skip();
            }
            self.user_exit = Some(UserExit::IoIn { port: access.port, data, len: access.len });
            return Next::User;
        }
        data = self.processor.core.gpr[0].to_le_bytes();
        let claimed = self.port_write(shared, access.port, &data[..access.len]);
        self.skip();
        if claimed {
            return Next::Resume;
        }
        self.user_exit = Some(UserExit::IoOut { port: access.port, data, len: access.len });
        Next::User
    }

    /// Puts what a port gave into AL, AX or EAX.
    pub(crate) fn finish_in(&mut self, data: &[u8]) {
        let rax = &mut self.processor.core.gpr[0];
        let mut bytes = [0_u8; 8];
        bytes[..data.len()].copy_from_slice(data);
        let value = u64::from_le_bytes(bytes);
        *rax = match data.len() {
            1 => *rax & !0xff | value,
            2 => *rax & !0xffff | value,
            _ => value,
        };
    }

    /// The VMM has answered [`UserExit::IoIn`].
    pub(crate) fn complete_io_in(&mut self, data: &[u8]) {
        let access = IoAccess::new(self.processor.core.vmx.exit.qualification);
        self.with_port_breakpoints(access, |vcpu| {
            if !access.string {
                vcpu.finish_in(data);
                vcpu.skip();
                return;
            }
            vcpu.processor.core.self_modify = true;
            if let Err(Leave::Fault) = vcpu.store_string_element(data) {
                vcpu.queue_processor_fault();
            }
            vcpu.processor.core.self_modify = false;
        });
    }

    fn port_read(&mut self, shared: &mut Shared, port: u16, data: &mut [u8]) -> bool {
        if port == shared.pm_timer_port {
            let ns = self.now(&shared.clock).vm_ns;
            let ticks = (u128::from(ns) * PM_TIMER_HZ / 1_000_000_000) as u32 & 0xff_ffff;
            let len = data.len().min(4);
            data.fill(0);
            data[..len].copy_from_slice(&ticks.to_le_bytes()[..len]);
            return true;
        }
        let now = self.now(&shared.clock);
        shared.irqchip.port_read(port, data, now) == Claim::Claimed
    }

    fn port_write(&mut self, shared: &mut Shared, port: u16, data: &[u8]) -> bool {
        let now = self.now(&shared.clock);
        shared.irqchip.port_write(port, data, now) == Claim::Claimed
    }

    /// One element of INS or OUTS; RIP moves on after the last.
    fn string_io(&mut self, shared: &mut Shared, access: IoAccess) -> Next {
        let mask = self.string_mask();
        if access.repeat && self.processor.core.gpr[1] & mask == 0 {
            return self.skip();
        }
        let Ok(linear) = self.string_linear(access) else {
            self.queue_processor_fault();
            return Next::Resume;
        };
        // The instruction runs alone: it may touch its own code, and what a data breakpoint watches.
        self.processor.core.self_modify = true;
        let next = self.string_element(shared, access, linear);
        self.processor.core.self_modify = false;
        next
    }

    fn string_element(&mut self, shared: &mut Shared, access: IoAccess, linear: u64) -> Next {
        let mut data = [0_u8; 8];
        if access.input {
            // A device is read once only: what could go wrong with the store comes first.
            match self.processor.core.check_store(linear, index::ES as u8, access.len as u64) {
                Ok(()) => {}
                Err(Leave::Fault) => {
                    self.queue_processor_fault();
                    return Next::Resume;
                }
                Err(_) => return self.ept_violation(shared),
            }
            if !self.port_read(shared, access.port, &mut data[..access.len]) {
                self.user_exit = Some(UserExit::IoIn { port: access.port, data, len: access.len });
                return Next::User;
            }
            if let Err(Leave::Fault) = self.store_string_element(&data[..access.len]) {
                self.queue_processor_fault();
            }
            return Next::Resume;
        }
        let core = &mut self.processor.core;
        for (i, byte) in data[..access.len].iter_mut().enumerate() {
            match core.load_linear::<u8>(linear.wrapping_add(i as u64), index::DS as u8) {
                Ok(b) => *byte = b,
                Err(Leave::Fault) => {
                    self.queue_processor_fault();
                    return Next::Resume;
                }
                // An EPT violation: map the page and execute the instruction again.
                Err(_) => return self.ept_violation(shared),
            }
        }
        let claimed = self.port_write(shared, access.port, &data[..access.len]);
        self.advance_string(access, 6);
        if claimed {
            return Next::Resume;
        }
        self.user_exit = Some(UserExit::IoOut { port: access.port, data, len: access.len });
        Next::User
    }

    /// Linear address of the element, checked against its segment.
    fn string_linear(&mut self, access: IoAccess) -> Result<u64, Leave> {
        let mask = self.string_mask();
        let core = &mut self.processor.core;
        let (segment, pointer, kind) = if access.input {
            (index::ES as u8, 7, AccessKind::Write)
        } else {
            ((core.vmx.exit.instruction_info >> 15 & 7) as u8, 6, AccessKind::Read)
        };
        core.linear(segment, core.gpr[pointer] & mask, access.len as u64, kind)
    }

    fn store_string_element(&mut self, data: &[u8]) -> Result<(), Leave> {
        let access = IoAccess::new(self.processor.core.vmx.exit.qualification);
        let linear = self.string_linear(access)?;
        let core = &mut self.processor.core;
        core.check_store(linear, index::ES as u8, data.len() as u64)?;
        for (i, &byte) in data.iter().enumerate() {
            core.store_linear(linear.wrapping_add(i as u64), index::ES as u8, byte)?;
        }
        self.advance_string(access, 7);
        Ok(())
    }

    /// Moves RSI or RDI by one element, counts RCX down, and leaves the instruction after the last one.
    fn advance_string(&mut self, access: IoAccess, pointer: usize) {
        let mask = self.string_mask();
        let core = &mut self.processor.core;
        let step = access.len as u64;
        let step = if core.rflags_rest & rflags::DF != 0 { step.wrapping_neg() } else { step };
        let merge = |old: u64, new: u64| if mask == 0xffff { old & !mask | new & mask } else { new & mask };
        core.gpr[pointer] = merge(core.gpr[pointer], core.gpr[pointer].wrapping_add(step));
        if access.repeat {
            core.gpr[1] = merge(core.gpr[1], core.gpr[1].wrapping_sub(1));
            if core.gpr[1] & mask != 0 {
                return;
            }
        }
        self.skip();
    }

    /// Address size of the string instruction, from the instruction information (bits 9:7).
    fn string_mask(&self) -> u64 {
        match self.processor.core.vmx.exit.instruction_info >> 7 & 7 {
            0 => 0xffff,
            1 => 0xffff_ffff,
            _ => u64::MAX,
        }
    }

    /// A fault that the processor raised while the hypervisor accessed memory for the guest.
    pub(crate) fn queue_processor_fault(&mut self) {
        let fault = self.processor.core.fault;
        self.exception = Some(crate::vcpu::QueuedException {
            vector: fault.vector,
            error_code: fault.error_code,
            address: fault.address,
        });
    }
}
