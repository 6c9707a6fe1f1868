//! Executing one instruction for the hypervisor, with its device accesses replayed.
//!
//! This is the hypervisor's instruction emulation: it uses the semantics of the processor itself.

use crate::event::Step;
use crate::exec::far::{Switched, TaskSwitchRequest};
use crate::mem::{DeviceAccess, MmioReplay};
use crate::op::{BLOCK_RIP, Leave};

use super::Processor;
use x86_defs::rflags;

/// What became of an emulated instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emulated {
    /// It completed (a repeated string instruction: one element). The device stores are the hypervisor's to carry out.
    Done { writes: Vec<DeviceAccess> },
    /// It needs the value of this device load; nothing has changed.
    Wants(DeviceAccess),
    /// It raised the exception in [`crate::Core::fault`]; nothing has changed.
    Fault,
    /// It caused a VM-exit of its own, recorded; nothing has changed.
    Exit,
}

impl Processor {
    /// Executes the instruction at RIP with the device loads given.
    pub fn emulate(&mut self, reads: &mut Vec<DeviceAccess>) -> Emulated {
        self.core.sync_watch();
        let exit = self.core.vmx.exit;
        self.core.mmu.mmio = MmioReplay { active: true, reads: std::mem::take(reads), ..MmioReplay::default() };
        let done = self.emulate_one();
        let replay = std::mem::take(&mut self.core.mmu.mmio);
        *reads = replay.reads;
        match done {
            Ok(()) => {
                self.core.vmx.exit = exit;
                Emulated::Done { writes: replay.writes }
            }
            Err(Leave::Fault) => {
                self.core.vmx.exit = exit;
                Emulated::Fault
            }
            Err(_) => match replay.wanted {
                Some(access) => {
                    self.core.vmx.exit = exit;
                    Emulated::Wants(access)
                }
                None => Emulated::Exit,
            },
        }
    }

    fn emulate_one(&mut self) -> Result<(), Leave> {
        let op = self.fetch_one()?;
        let core = &mut self.core;
        let flags = core.rflags_rest;
        core.gpr[BLOCK_RIP as usize] = core.rip;
        core.self_modify = true;
        core.mmu.watch.hits = 0;
        let done = (op.exec)(core, &op);
        core.self_modify = false;
        match done {
            Ok(()) | Err(Leave::End) => core.rip = core.next_rip(&op),
            Err(Leave::Branch) => {}
            // One element of a string is done; the instruction exits again for the next.
            Err(Leave::Again) => {
                core.end_of_step(flags & !rflags::RF, Step::Straight);
                return Ok(());
            }
            Err(other) => {
                core.mmu.watch.hits = 0;
                return Err(other);
            }
        }
        core.count.instructions += 1;
        (core.events.sti_shadow, core.events.mov_ss_shadow) = (false, false);
        let step = if done == Err(Leave::Branch) { Step::Branch } else { Step::Straight };
        core.end_of_step(flags, step);
        Ok(())
    }

    /// Carries out the task switch that exited.
    ///
    /// # Errors
    /// See [`crate::Core::switch_task`].
    pub fn switch_task(&mut self, request: &TaskSwitchRequest) -> Result<Switched, Leave> {
        let exit = self.core.vmx.exit;
        let done = self.core.switch_task(request);
        if !matches!(done, Err(Leave::Exit)) {
            self.core.vmx.exit = exit;
        }
        self.core.mmu.leave_page();
        done
    }

    /// Up to `most` bytes of code at RIP, for a message; fewer where they cannot be fetched.
    pub fn peek_code(&mut self, most: usize) -> Vec<u8> {
        let core = &mut self.core;
        let (exit, fault) = (core.vmx.exit, core.fault);
        let linear = core.rip_linear();
        let mut bytes = Vec::new();
        for i in 0..most as u64 {
            let at = linear.wrapping_add(i);
            let Ok(page) = core.fetch_translate(at) else { break };
            bytes.push(page.frame.load::<u8>(at));
        }
        (core.vmx.exit, core.fault) = (exit, fault);
        bytes
    }
}
