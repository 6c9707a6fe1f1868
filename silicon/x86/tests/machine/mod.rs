//! A modelled processor whose state can be set from, and compared with, that of a native run.
#![allow(dead_code, reason = "each test uses its part")]

use std::sync::Arc;

use silicon_float::x87::F80;
use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::code::decode_one;
use silicon_x86::core::SegmentRegister;
use silicon_x86::model::Model;
use silicon_x86::op::{BLOCK_RIP, CodeSize, Done};
use silicon_x86::{Core, Leave};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::{index, rights};

use crate::native::{STATUS_FLAGS, State};

/// Where the memory operands of tests are.
pub const BUFFER: u64 = 0x2000;
const TABLES: u64 = 0x8000;
const MEMORY: u64 = 0x10000;

/// A core in 64-bit mode, its 64 KiB of memory mapped one to one.
pub struct Machine {
    pub core: Core,
}

impl Machine {
    pub fn new() -> Self {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
        let mut core = Core::new(Arc::new(memory), Arc::new(Model::default()));
        let poke = |at: u64, value: u64| core.memory.page(HostPhysical(at)).expect("memory").0.store(at, value);
        for level in 0..3 {
            poke(TABLES + level * 0x1000, (TABLES + (level + 1) * 0x1000) | 7);
        }
        for page in 0..MEMORY >> 12 {
            poke(TABLES + 0x3000 + page * 8, page << 12 | 7);
        }
        core.vmx.controls.vpid = 1;
        core.cr0 = cr0::PE | cr0::PG | cr0::WP | cr0::NE | cr0::ET;
        core.cr4 = cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT;
        core.cr3 = TABLES;
        core.efer = efer::LME | efer::LMA | efer::NXE;
        let data = rights::P | rights::S | rights::WRITABLE | rights::ACCESSED | rights::DB | rights::G;
        let code = rights::P | rights::S | rights::CODE | rights::READABLE | rights::ACCESSED | rights::L | rights::G;
        for i in index::ES..=index::GS {
            core.seg[i] = SegmentRegister { selector: 0x10, base: 0, limit: u32::MAX, rights: data };
        }
        core.seg[index::CS] = SegmentRegister { selector: 8, base: 0, limit: u32::MAX, rights: code };
        core.update_mode();
        core.tlb_select();
        Self { core }
    }

    /// Takes over the registers of `state`.
    pub fn load(&mut self, state: &State) {
        let core = &mut self.core;
        core.gpr[..16].copy_from_slice(&state.gpr);
        core.flags.set_bits(state.rflags & STATUS_FLAGS);
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
    }

    /// Executes one instruction as a block of its own.
    pub fn step(&mut self, bytes: &[u8]) -> Done {
        self.core.gpr[BLOCK_RIP as usize] = 0x1000;
        let ops = decode_one(bytes, CodeSize::Bits64, &self.core.model);
        match (ops[0].exec)(&mut self.core, &ops[0]) {
            Err(Leave::End | Leave::Branch) => Ok(()),
            done => done,
        }
    }

    /// Where the core differs from `state`, apart from RSP and the x87 pointers.
    pub fn differences(&self, state: &State) -> Vec<String> {
        let (core, fpu) = (&self.core, &self.core.fpu);
        let mut out = Vec::new();
        let mut check = |name: String, model: u128, native: u128| {
            if model != native {
                out.push(format!("{name} is {model:#x}, not {native:#x}"));
            }
        };
        for i in (0..16).filter(|&i| i != 4) {
            check(format!("gpr{i}"), core.gpr[i].into(), state.gpr[i].into());
        }
        check("flags".into(), core.flags.bits().into(), state.rflags.into());
        check("fcw".into(), fpu.fcw.into(), state.fcw().into());
        check("fsw".into(), fpu.fsw.into(), state.fsw().into());
        check("ftw".into(), fpu.ftw.into(), state.ftw().into());
        check("mxcsr".into(), fpu.mxcsr.into(), state.mxcsr().into());
        let top = usize::from(state.fsw() >> 11 & 7);
        for i in 0..8 {
            let (significand, sign_exponent) = state.st(i);
            let st = fpu.st[(i + top) & 7];
            check(format!("st{i}"), st.significand.into(), significand.into());
            check(format!("st{i} exponent"), st.sign_exponent.into(), sign_exponent.into());
        }
        for i in 0..16 {
            check(format!("xmm{i}"), fpu.xmm[i], state.xmm(i));
        }
        out
    }

    /// Writes physical memory, inside of a page.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.core.memory.page(HostPhysical(at)).expect("memory").0.write((at & 0xfff) as usize, bytes);
    }

    /// Reads physical memory, inside of a page.
    pub fn read<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut out = [0; N];
        self.core.memory.page(HostPhysical(at)).expect("memory").0.read((at & 0xfff) as usize, &mut out);
        out
    }
}

/// Random numbers, the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number that is likely special: of a floating-point format, or a small integer.
    fn single(&mut self) -> u32 {
        let sign = (self.next() as u32) << 31;
        sign | match self.below(12) {
            0 => 0,
            1 => 0x7f80_0000,
            2 => 0x7fc0_0000 | self.next() as u32 & 0x3f_ffff,
            3 => 0x7f80_0001 | self.next() as u32 & 0x3f_ffff,
            4 => self.next() as u32 & 0x7f_ffff,
            5 => 0x0080_0000 | self.next() as u32 & 0xff_ffff,
            6 => 0x7f00_0000 | self.next() as u32 & 0x7f_ffff,
            7 => (self.below(200) as f32 / 2.0).to_bits(),
            8 => 0x4e80_0000 | self.next() as u32 & 0x1ff_ffff,
            _ => (self.next() as u32 & 0x7fff_ffff) % 0x2000_0000 + 0x3000_0000,
        }
    }

    fn double(&mut self) -> u64 {
        let sign = self.next() << 63;
        let fraction = self.next() & 0xf_ffff_ffff_ffff;
        sign | match self.below(12) {
            0 => 0,
            1 => 0x7ff << 52,
            2 => 0x7ff8 << 48 | fraction >> 1,
            3 => 0x7ff0 << 48 | fraction >> 1 | 1,
            4 => fraction,
            5 => 1 << 52 | fraction,
            6 => 0x7fe << 52 | fraction,
            7 => (self.below(200) as f64 / 2.0).to_bits(),
            8 => 0x41d << 52 | fraction,
            9 => (0x3ff - 127 + self.below(3)) << 52 | fraction,
            _ => (0x3ff - 64 + self.below(128)) << 52 | fraction,
        }
    }

    /// A vector: of bytes, small bytes, singles or doubles.
    pub fn vector(&mut self) -> u128 {
        match self.below(4) {
            0 => u128::from(self.next()) << 64 | u128::from(self.next()),
            1 => (0..16).fold(0, |v, _| v << 8 | u128::from(self.below(4))),
            2 => (0..4).fold(0, |v, _| v << 32 | u128::from(self.single())),
            _ => (0..2).fold(0, |v, _| v << 64 | u128::from(self.double())),
        }
    }

    /// Vectors one after the other.
    pub fn vectors<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        for chunk in out.chunks_mut(16) {
            chunk.copy_from_slice(&self.vector().to_le_bytes()[..chunk.len()]);
        }
        out
    }

    /// Registers of all kinds, with exceptions masked.
    pub fn fill(&mut self, state: &mut State) {
        for gpr in &mut state.gpr {
            *gpr = match self.below(4) {
                0 => self.below(40).wrapping_sub(20),
                _ => self.next() >> self.below(64),
            };
        }
        state.rflags = self.next() & STATUS_FLAGS;
        state.set_fsw(self.next() as u16 & 0x7f7f);
        state.set_ftw(self.next() as u8);
        state.set_mxcsr(match self.below(4) {
            0 => 0x1f80,
            _ => self.next() as u32 & 0xffff | 0x1f80,
        });
        for i in 0..8 {
            state.set_st(i, self.vector() as u64, self.next() as u16);
        }
        for i in 0..16 {
            let previous = if i > 0 { state.xmm(i - 1) } else { 0 };
            state.set_xmm(i, if self.below(8) == 0 { previous } else { self.vector() });
        }
    }
}
