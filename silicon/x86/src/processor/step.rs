//! Leaving a block before its end, and executing one instruction at a time.

use super::{Processor, Ran};
use crate::code::{self, decode};
use crate::core::Core;
use crate::event::Step;
use crate::op::{BLOCK_RIP, Leave, Op};
use x86_defs::rflags;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{interruption, primary};

/// Accounts for what of `ops` did not complete, and does what `leave` of the op at index `at` asks for.
#[inline(never)]
pub(super) fn leave(core: &mut Core, ops: &[Op], at: u8, leave: Leave) -> Ran {
    let op = &ops[usize::from(at)];
    let completed = usize::from(at) + usize::from(matches!(leave, Leave::Branch | Leave::End));
    let rest = &ops[completed..];
    core.count.instructions -= rest.len() as u64;
    core.budget += rest.iter().map(|op| i64::from(op.cost)).sum::<i64>();
    match leave {
        Leave::Branch => Ran::On,
        Leave::End => {
            core.rip = core.next_rip(op);
            core.events.attention = true;
            Ran::On
        }
        Leave::Again => {
            core.rip = core.this_rip(op);
            Ran::On
        }
        Leave::Fault => {
            core.rip = core.this_rip(op);
            deliver(core)
        }
        Leave::Exit => {
            core.rip = core.this_rip(op);
            if core.becomes_virtualization_exception() {
                return deliver(core);
            }
            with_length(core, op);
            Ran::Exit
        }
        Leave::Refetch => {
            core.rip = core.this_rip(op);
            core.self_modify = true;
            core.events.attention = true;
            Ran::On
        }
    }
}

/// VM-exits due to a memory access know the instruction only here. The manual leaves the length of most of them undefined;
/// processors give it, and hypervisors step over the instruction with it.
fn with_length(core: &mut Core, op: &Op) {
    let exit = &mut core.vmx.exit;
    let access = matches!(
        exit.reason,
        Some(ExitReason::ApicAccess | ExitReason::EptViolation | ExitReason::EptMisconfiguration)
    );
    if access && exit.idt_vectoring & interruption::VALID == 0 {
        exit.instruction_length = u32::from(op.len);
    }
}

/// Delivers `core.fault`, raised by the instruction at `core.rip`.
fn deliver(core: &mut Core) -> Ran {
    match core.deliver_fault() {
        Ok(()) => Ran::On,
        Err(_) => Ran::Exit,
    }
}

impl Processor {
    /// A fault or VM-exit of the fetch at RIP.
    pub(super) fn leave_before(&mut self, leave: Leave) -> Ran {
        match leave {
            Leave::Fault => deliver(&mut self.core),
            _ if self.core.becomes_virtualization_exception() => deliver(&mut self.core),
            _ => Ran::Exit,
        }
    }

    /// Executes as much of a block as the budget allows.
    #[inline(never)]
    pub(super) fn run_block_to_deadline(&mut self, index: u32) -> Ran {
        let core = &mut self.core;
        let block = &self.code.blocks[index as usize];
        for op in &block.ops {
            if core.budget <= 0 {
                core.rip = core.this_rip(op);
                return Ran::On;
            }
            core.budget -= i64::from(op.cost);
            core.count.instructions += 1;
            if let Err(left) = (op.exec)(core, op) {
                return leave(core, &block.ops[..=op.idx as usize], op.idx, left);
            }
        }
        core.rip = core.gpr[BLOCK_RIP as usize].wrapping_add(u64::from(block.len)) & core.mode.rip_mask;
        Ran::On
    }

    /// Executes the one instruction at RIP, freshly decoded.
    pub(super) fn step(&mut self) -> Ran {
        // A breakpoint comes before whatever the fetch raises.
        if self.core.instruction_breakpoint().is_err() {
            return deliver(&mut self.core);
        }
        let op = match self.fetch_one() {
            Ok(op) => op,
            Err(leave) => return self.leave_before(leave),
        };
        self.core.execute_one(&op)
    }

    /// Decodes the instruction at RIP without keeping it.
    pub(super) fn fetch_one(&mut self) -> Result<Op, Leave> {
        let core = &mut self.core;
        let linear = core.rip_linear();
        core.check_fetch_limit()?;
        let page = core.fetch_translate(linear)?;
        let offset = (linear & 0xfff) as usize;
        core.mmu.fetch_page = page.host;
        core.mmu.leave_page();
        let size = core.mode.code;
        let mut ops = match decode::decode_block(page.frame, offset, size, 1, &core.model) {
            decode::Decoded::Block(ops) => ops,
            decode::Decoded::Crosses => {
                let second = core.fetch_translate(core.next_page(linear))?;
                let mut bytes = [0_u8; 15];
                let head = 4096 - offset;
                page.frame.read(offset, &mut bytes[..head]);
                second.frame.read(0, &mut bytes[head..]);
                code::decode_one(&bytes, size, &core.model)
            }
        };
        ops.pop().ok_or_else(|| core.ud())
    }
}

impl Core {
    /// Executes one instruction with all that surrounds it: breakpoints, shadows, traps.
    fn execute_one(&mut self, op: &Op) -> Ran {
        self.events.attention = true;
        let flags = self.rflags_rest;
        let shadows = (self.events.sti_shadow, self.events.mov_ss_shadow);
        (self.events.sti_shadow, self.events.mov_ss_shadow) = (false, false);
        self.gpr[BLOCK_RIP as usize] = self.rip;
        self.budget -= i64::from(op.cost);
        self.count.instructions += 1;
        // Whatever this instruction touches, it is alone.
        self.self_modify = true;
        self.mmu.watch.hits = 0;
        let done = (op.exec)(self, op);
        self.self_modify = false;
        let ran = match done {
            Ok(()) => {
                self.rip = self.next_rip(op);
                Ran::On
            }
            Err(left) => {
                if matches!(left, Leave::Fault | Leave::Exit | Leave::Refetch | Leave::Again) {
                    // The instruction has not happened yet: it is still in its shadow.
                    (self.events.sti_shadow, self.events.mov_ss_shadow) = shadows;
                }
                if matches!(left, Leave::Fault | Leave::Exit | Leave::Refetch) {
                    self.mmu.watch.hits = 0;
                }
                leave(self, std::slice::from_ref(op), 0, left)
            }
        };
        let completed = matches!(done, Ok(()) | Err(Leave::Branch | Leave::End));
        if done == Err(Leave::Again) {
            // Between two iterations; the breakpoint at the instruction has been passed.
            self.end_of_step(flags & !rflags::RF, Step::Straight);
            self.rflags_rest |= rflags::RF;
        }
        if completed {
            let step = if done == Err(Leave::Branch) { Step::Branch } else { Step::Straight };
            self.end_of_step(flags, step);
        }
        // One iteration of a string instruction, and the delivery of a fault, count for the monitor trap too.
        if matches!(ran, Ran::On | Ran::Near) && done != Err(Leave::Refetch) {
            self.vmx.monitor_trap_pending |= self.vmx.controls.primary & primary::MONITOR_TRAP_FLAG != 0;
        }
        ran
    }
}
