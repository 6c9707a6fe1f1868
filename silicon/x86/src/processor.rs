//! A logical processor as the hypervisor uses it: enter the guest, run, and get a VM-exit.

mod attend;
mod emulate;
mod enter;
mod step;

pub use emulate::Emulated;
pub use enter::Refused;

use std::sync::Arc;

use silicon_memory::PhysicalMemory;

use crate::code::{Block, CodeCache, Crossing, Link, MOST_INSTRUCTIONS, decode};
use crate::core::Core;
use crate::exec::chain;
use crate::mem::FetchPage;
use crate::model::Model;
use crate::op::{BLOCK_RIP, Leave, Stop};

/// Why [`Processor::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A VM-exit: `core.vmx.exit` says why.
    Exit,
    /// The time slice is over; the guest is as it was, and [`Processor::run`] goes on with it.
    Paused,
}

/// A logical processor: its state and the blocks it has decoded.
#[derive(Debug)]
pub struct Processor {
    pub core: Core,
    code: CodeCache,
}

/// What became of a block.
enum Ran {
    /// Go on at `core.rip`.
    On,
    /// Same, in the same page if RIP still is.
    Near,
    Exit,
}

impl Processor {
    /// A processor after RESET.
    #[must_use]
    pub fn new(memory: Arc<PhysicalMemory>, model: Arc<Model>) -> Self {
        Self { core: Core::new(memory, model), code: CodeCache::default() }
    }

    /// Runs the guest, which VM-entry has loaded, until a VM-exit or until `until` (quarter cycles of
    /// [`Core::now_quarter_cycles`]) has come.
    pub fn run(&mut self, until: u64) -> Outcome {
        self.core.sync_code_marks();
        self.core.mmu.leave_page();
        self.core.events.attention = true;
        self.limit_budget(until);
        let mut previous: Option<u32> = None;
        loop {
            let core = &mut self.core;
            core.budget -= core.stall as i64;
            core.stall = 0;
            if core.budget <= 0
                && let Some(outcome) = self.time_is_up(until)
            {
                return outcome;
            }
            if self.core.events.attention {
                previous = None;
                if let Err(outcome) = self.attend() {
                    return outcome;
                }
                if self.core.stall > 0 {
                    continue;
                }
                if self.core.events.attention {
                    // A shadow or a trap: one instruction at a time.
                    match self.step() {
                        Ran::Exit => return Outcome::Exit,
                        Ran::On | Ran::Near => continue,
                    }
                }
            }
            let block = match self.next_block(previous) {
                Ok(block) => block,
                Err(leave) => {
                    previous = None;
                    match self.leave_before(leave) {
                        Ran::Exit => return Outcome::Exit,
                        Ran::On | Ran::Near => continue,
                    }
                }
            };
            match self.run_blocks(block) {
                (last, Ran::Near) => previous = Some(last),
                (_, Ran::On) => previous = None,
                (_, Ran::Exit) => return Outcome::Exit,
            }
        }
    }

    /// The block at RIP: a successor of `previous` in the same page, or looked up, or decoded.
    #[inline]
    fn next_block(&mut self, previous: Option<u32>) -> Result<u32, Leave> {
        let core = &mut self.core;
        let linear = core.rip_linear();
        if linear & !0xfff == core.mmu.fetch_linear {
            let offset = (linear & 0xfff) as u16;
            if let Some(previous) = previous {
                if let Some(next) = self.code.blocks[previous as usize].successor(offset) {
                    return Ok(next);
                }
                let block = self.look_up(linear)?;
                let from = &mut self.code.blocks[previous as usize];
                let at = from.next_link as usize;
                from.links[at] = Link { offset, block };
                from.next_link ^= 1;
                return Ok(block);
            }
        }
        self.look_up(linear)
    }

    /// The block at `linear`, in 64-bit mode, where the fetch look-up and the block cache both have it at hand.
    #[inline(always)]
    fn look_up_fast(&mut self, linear: u64) -> Option<u32> {
        let mmu = &mut self.core.mmu;
        let (host, generation) = mmu.fetch_hit(linear, self.core.mode.cpl)?;
        let index = self.code.find_first(host | (linear & 0xfff), self.core.mode.key, generation)?;
        mmu.fetch_page = host;
        mmu.fetch_linear = linear & !0xfff;
        Some(index)
    }

    /// The block at `linear` through the fetch look-up and the block cache.
    #[inline]
    fn look_up(&mut self, linear: u64) -> Result<u32, Leave> {
        if self.core.mode.is_64()
            && let Some(index) = self.look_up_fast(linear)
        {
            return Ok(index);
        }
        self.look_up_slow(linear)
    }

    #[inline(never)]
    fn look_up_slow(&mut self, linear: u64) -> Result<u32, Leave> {
        self.core.check_fetch_limit()?;
        let page = self.core.fetch_translate(linear)?;
        let key = self.core.mode.key;
        let host = page.host | (linear & 0xfff);
        if let Some(index) = self.code.find(host, key, page.state.generation()) {
            let crossing = self.code.blocks[index as usize].crossing;
            match crossing {
                None => {
                    self.core.mmu.fetch_page = page.host;
                    self.core.mmu.fetch_linear = linear & !0xfff;
                    return Ok(index);
                }
                Some(crossing) => {
                    let second = self.core.fetch_translate(self.core.next_page(linear))?;
                    if second.host == crossing.host && second.state.generation() == crossing.generation {
                        self.core.mmu.fetch_page = page.host;
                        self.core.mmu.leave_page();
                        return Ok(index);
                    }
                }
            }
        }
        self.decode(linear, page)
    }

    #[cold]
    fn decode(&mut self, linear: u64, page: FetchPage) -> Result<u32, Leave> {
        let key = self.core.mode.key;
        let size = self.core.mode.code;
        let offset = (linear & 0xfff) as usize;
        let host = page.host | offset as u64;
        let (generation, new) = page.state.mark_code();
        if new {
            self.core.code_marked(page.frame);
        }
        self.core.count.blocks_decoded += 1;
        self.core.mmu.fetch_page = page.host;
        let block = match decode::decode_block(page.frame, offset, size, MOST_INSTRUCTIONS, &self.core.model) {
            decode::Decoded::Block(ops) => {
                self.core.mmu.fetch_linear = linear & !0xfff;
                Block::new(ops, host, key, generation, None)
            }
            decode::Decoded::Crosses => {
                let second = self.core.fetch_translate(self.core.next_page(linear))?;
                let (second_generation, new) = second.state.mark_code();
                if new {
                    self.core.code_marked(second.frame);
                }
                let mut bytes = [0_u8; 15];
                let head = 4096 - offset;
                page.frame.read(offset, &mut bytes[..head]);
                second.frame.read(0, &mut bytes[head..]);
                self.core.mmu.leave_page();
                let crossing = Crossing { host: second.host, state: second.state, generation: second_generation };
                Block::new(decode::decode_one(&bytes, size, &self.core.model), host, key, generation, Some(crossing))
            }
        };
        Ok(self.code.insert(block))
    }

    /// Executes a block, and the blocks that follow it for as long as nothing has to be looked at in between and
    /// the way to the next is known. Gives the last block with what became of it.
    #[inline]
    fn run_blocks(&mut self, mut index: u32) -> (u32, Ran) {
        loop {
            let core = &mut self.core;
            let block = &self.code.blocks[index as usize];
            core.gpr[BLOCK_RIP as usize] = core.rip;
            if core.budget < i64::from(block.cost) {
                return (index, self.run_block_to_deadline(index));
            }
            core.budget -= i64::from(block.cost);
            core.count.instructions += block.ops.len() as u64;
            let stop = chain::next(core, block.ops.iter());
            // A branch is the last instruction of its block.
            if stop != Stop::BRANCH {
                if let Some((left, at)) = stop.leave() {
                    return (index, step::leave(core, &block.ops, at, left));
                }
                core.rip = core.gpr[BLOCK_RIP as usize].wrapping_add(u64::from(block.len)) & core.mode.rip_mask;
            }
            if core.stall != 0 || core.events.attention {
                return (index, Ran::Near);
            }
            let linear = core.rip_linear();
            let next = if linear & !0xfff == core.mmu.fetch_linear {
                block.successor((linear & 0xfff) as u16)
            } else if core.mode.is_64() {
                self.look_up_fast(linear)
            } else {
                None
            };
            match next {
                Some(next) => index = next,
                None => return (index, Ran::Near),
            }
        }
    }
}
