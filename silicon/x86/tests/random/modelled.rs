//! The modelled processor at CPL 3, with the memory of the cases.

use std::sync::Arc;

use silicon_float::x87::F80;
use silicon_memory::{Frame, HostPhysical, PhysicalMemory};
use silicon_x86::code::decode_one;
use silicon_x86::core::{Fault, SegmentRegister};
use silicon_x86::model::Model;
use silicon_x86::op::BLOCK_RIP;
use silicon_x86::{Core, Leave};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::rflags;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::controls::secondary;

use super::case::Slot;
use super::mode::Mode;
use super::native::State;
use super::place::{CODE, DATA, DATA_BYTES, READ_ONLY, START, read_only_byte};

const TABLES: u64 = 0x8000;
const MEMORY: u64 = 0x10000;
const CODE_FRAME: u64 = 0x1000;
const DATA_FRAME: u64 = 0x2000;
const READ_ONLY_FRAME: u64 = 0x4000;

/// XCR0: all that the kernel enables of what the model has.
const X87_SSE_AVX: u64 = 7;

/// How the model ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// All instructions done, RIP.
    At(u64),
    /// The exception of the instruction at this RIP.
    Fault(Fault, u64),
    /// A VM-exit, or no end.
    Other(&'static str),
}

pub struct Modelled {
    pub core: Core,
    pub instructions: u32,
    mode: Mode,
}

impl Modelled {
    pub fn new(model: &Model) -> Self {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
        let mut core = Core::new(Arc::new(memory), Arc::new(model.clone()));
        let poke = |at: u64, value: u64| frame(&core, at).store(at, value);
        const NX: u64 = 1 << 63;
        const USER: u64 = 5;
        const WRITABLE: u64 = 2;
        poke(TABLES, (TABLES + 0x1000) | USER | WRITABLE);
        poke(TABLES + 0x1000, (TABLES + 0x2000) | USER | WRITABLE);
        poke(TABLES + 0x2000 + (CODE >> 21) * 8, (TABLES + 0x3000) | USER | WRITABLE);
        let map = |linear: u64, frame: u64, bits: u64| poke(TABLES + 0x3000 + (linear >> 12 & 511) * 8, frame | bits);
        map(CODE, CODE_FRAME, USER);
        for page in (0..DATA_BYTES as u64).step_by(0x1000) {
            map(DATA + page, DATA_FRAME + page, USER | WRITABLE | NX);
        }
        map(READ_ONLY, READ_ONLY_FRAME, USER | NX);
        frame(&core, CODE_FRAME).write(0, &[0xcc; 0x1000]);
        let read_only: Vec<u8> = (0..0x1000).map(read_only_byte).collect();
        frame(&core, READ_ONLY_FRAME).write(0, &read_only);
        core.vmx.controls.vpid = 1;
        core.vmx.controls.secondary |= secondary::ENABLE_INVPCID | secondary::ENABLE_XSAVES;
        core.cr0 = cr0::PE | cr0::PG | cr0::WP | cr0::NE | cr0::ET | cr0::MP;
        core.cr4 = cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT | cr4::FSGSBASE | cr4::OSXSAVE;
        core.xcr0 = X87_SSE_AVX;
        core.cr3 = TABLES;
        core.efer = efer::LME | efer::LMA | efer::NXE | efer::SCE;
        core.seg[index::TR] = SegmentRegister { selector: 0x40, base: 0, limit: 0x60, rights: rights::P | 11 };
        for register in index::ES..=index::GS {
            core.seg[register] = Mode::Long64.segment(register);
        }
        core.update_mode();
        core.tlb_select();
        Self { core, instructions: 0, mode: Mode::Long64 }
    }

    fn enter(&mut self, mode: Mode) {
        let core = &mut self.core;
        for register in index::ES..=index::GS {
            core.seg[register] = mode.segment(register);
        }
        if self.mode != mode {
            self.mode = mode;
            core.update_mode();
        }
    }

    /// Executes a case. Registers and memory stay in the core.
    pub fn run(&mut self, slot: &Slot) -> End {
        self.enter(slot.mode);
        self.load(&slot.before);
        for page in (0..DATA_BYTES).step_by(0x1000) {
            frame(&self.core, DATA_FRAME + page as u64).write(0, &slot.data[page..page + 0x1000]);
        }
        let code = slot.bytes();
        let place = (START - CODE) as usize;
        frame(&self.core, CODE_FRAME).write(place, code);
        let end = self.execute(code);
        frame(&self.core, CODE_FRAME).write(place, &[0xcc; 64][..code.len()]);
        end
    }

    fn execute(&mut self, code: &[u8]) -> End {
        let core = &mut self.core;
        let model = core.model.clone();
        let start = self.mode.start();
        core.rip = start;
        self.instructions = 0;
        let mut bytes = [0xcc; 64];
        bytes[..code.len()].copy_from_slice(code);
        for _ in 0..100_000 {
            let at = core.rip.wrapping_sub(start);
            if at >= code.len() as u64 {
                return End::At(core.rip);
            }
            let ops = decode_one(&bytes[at as usize..], self.mode.size(), &model);
            core.gpr[usize::from(BLOCK_RIP)] = core.rip;
            match (ops[0].exec)(core, &ops[0]) {
                Ok(()) | Err(Leave::End) => core.rip = core.next_rip(&ops[0]),
                Err(Leave::Branch) => {}
                Err(Leave::Again) => continue,
                Err(Leave::Fault) => return End::Fault(core.fault, core.rip),
                Err(Leave::Exit) => return End::Other("a VM-exit"),
                Err(Leave::Refetch) => return End::Other("a store to its own code"),
            }
            self.instructions += 1;
        }
        End::Other("no end")
    }

    /// Two pages of data.
    pub fn data(&self) -> [u8; DATA_BYTES] {
        let mut out = [0; DATA_BYTES];
        for page in (0..DATA_BYTES).step_by(0x1000) {
            frame(&self.core, DATA_FRAME + page as u64).read(0, &mut out[page..page + 0x1000]);
        }
        out
    }

    fn load(&mut self, state: &State) {
        let core = &mut self.core;
        core.gpr[..16].copy_from_slice(&state.gpr);
        core.set_rflags(state.rflags | rflags::IF);
        core.seg[index::GS].base = self.mode.segment(index::GS).base;
        let fpu = &mut core.fpu;
        (fpu.fcw, fpu.fsw, fpu.ftw, fpu.mxcsr) = (state.fcw(), state.fsw(), state.ftw(), state.mxcsr());
        let top = usize::from(state.fsw() >> 11 & 7);
        for i in 0..8 {
            let (significand, sign_exponent) = state.st(i);
            fpu.st[(i + top) & 7] = F80 { significand, sign_exponent };
        }
        for i in 0..16 {
            fpu.xmm[i] = state.xmm(i);
        }
        fpu.ymm_high = state.ymm_high;
    }
}

fn frame(core: &Core, at: u64) -> Frame {
    core.memory.page(HostPhysical(at)).expect("memory").0
}
