//! The modelled processor.

use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::Core;
use silicon_x86::code::decode_one;
use silicon_x86::op::{BLOCK_RIP, CodeSize};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::{index, rights};

use crate::state::{OPERAND, State};

/// Where the operand is: across a page boundary.
const OPERAND_AT: u64 = 0x5000 - 5;
const TABLES: u64 = 0x10000;

/// A core in 64-bit mode with 2 MiB mapped one to one.
pub struct Modelled {
    core: Core,
}

impl Modelled {
    pub fn new() -> Self {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0), 2 << 20).expect("an empty machine takes a bank");
        let mut core = Core::new(Arc::new(memory), Arc::default());
        core.vmx.controls.vpid = 1;
        let large = 0x80;
        for (at, entry) in [(0, TABLES + 0x1000), (0x1000, TABLES + 0x2000), (0x2000, large)] {
            core.memory.page(HostPhysical(TABLES + at)).expect("memory").0.store(TABLES + at, entry | 7);
        }
        core.cr0 = cr0::PE | cr0::PG | cr0::NE;
        core.cr4 = cr4::PAE;
        core.cr3 = TABLES;
        core.efer = efer::LME | efer::LMA;
        core.seg[index::CS].rights = rights::P | rights::S | rights::CODE | rights::READABLE | rights::L;
        core.update_mode();
        core.tlb_select();
        Self { core }
    }

    /// Executes the instructions one by one from `start`: their memory operand is at RSI.
    pub fn run(&mut self, code: &[u8], start: &State) -> State {
        let core = &mut self.core;
        let top = usize::from(start.fsw >> 11 & 7);
        core.fpu.st = start.stack;
        core.fpu.st.rotate_right(top);
        (core.fpu.fcw, core.fpu.fsw, core.fpu.ftw) = (start.fcw, start.fsw, start.ftw);
        (core.fpu.fop, core.fpu.fip, core.fpu.fdp) = (0, 0, 0);
        core.set_rflags(start.rflags);
        core.gpr[0] = start.rax;
        core.gpr[6] = OPERAND_AT;
        for (at, byte) in (OPERAND_AT..).zip(start.memory) {
            core.store_linear(at, 0, byte).expect("mapped memory");
        }
        let mut at = 0;
        while at < code.len() {
            core.gpr[usize::from(BLOCK_RIP)] = at as u64;
            for op in decode_one(&code[at..], CodeSize::Bits64, &core.model.clone()) {
                (op.exec)(core, &op).unwrap_or_else(|leave| panic!("{code:02x?} at {at}: {leave:?} {:?}", core.fault));
                at += usize::from(op.len);
            }
        }
        let mut end = start.clone();
        end.stack = core.fpu.st;
        end.stack.rotate_left(usize::from(core.fpu.fsw >> 11 & 7));
        (end.fcw, end.fsw, end.ftw) = (core.fpu.fcw, core.fpu.fsw, core.fpu.ftw);
        (end.fop, end.fip) = (core.fpu.fop, core.fpu.fip);
        end.rflags = core.rflags();
        end.rax = core.gpr[0];
        let mut memory = [0; OPERAND];
        for (at, byte) in (OPERAND_AT..).zip(&mut memory) {
            *byte = core.load_linear(at, 0).expect("mapped memory");
        }
        end.memory = memory;
        end
    }
}
