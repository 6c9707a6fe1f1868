//! Makes cases: bytes of instructions, and registers and memory that suit them.

use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic as M, OpKind, Register,
};
use silicon_x86::model::Model;

use super::case::{CODE_BYTES, Outcome, Slot};
use super::catalogue::{Map, SIB, Skeleton, is_lowered};
use super::exceptions::{is_excluded, missing};
use super::machine::Random;
use super::mode::Mode;
use super::native::State;
use super::place::{CODE, DATA, DATA_BYTES, READ_ONLY, START};
use x86_defs::rflags;

pub struct Generator<'a> {
    pub random: Random,
    pub model: &'a Model,
    pub mode: Mode,
}

impl Generator<'_> {
    pub fn below(&mut self, n: u64) -> u64 {
        self.random.next() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An instruction from a skeleton that may be compared, for the place `at` in the code; `None` where the dice
    /// gave something else.
    pub fn instruction(&mut self, skeleton: &Skeleton, at: usize) -> Option<Vec<u8>> {
        let vex = matches!(skeleton.map, Map::Vex(_));
        let mut more = Vec::new();
        let prefixes = match self.mode {
            Mode::Long64 => [(8, 0x65), (0, 0x26), (3, 0x2e), (3, 0x67), (2, 0x66), (2, 0xf3), (1, 0xf2)],
            _ => [(8, 0x65), (20, 0x26), (3, 0x2e), (15, 0x67), (5, 0x66), (2, 0xf3), (1, 0xf2)],
        };
        for (percent, prefix) in prefixes {
            if self.chance(percent) && !(vex && matches!(prefix, 0x66 | 0xf3 | 0xf2)) {
                more.push(prefix);
            }
        }
        let mut modrm = skeleton.modrm;
        let memory = modrm >> 6 != 3;
        if memory && !vex && self.chance(15) {
            more.push(0xf0);
        }
        let (rex, registers) = if self.mode.is_64() { (self.below(8) as u8, 16) } else { (0, 8) };
        let rex = if self.chance(60) { rex } else { 0 };
        let vvvv = if self.chance(50) { self.below(registers) as u8 } else { 0 };
        let mut bytes = skeleton.head(&more, rex, vvvv);
        if memory {
            let rm = if modrm & 7 == SIB { SIB } else { self.below(8) as u8 };
            modrm = modrm & 0x38 | (self.below(3) as u8) << 6 | rm;
        }
        bytes.push(modrm);
        for _ in 0..14 {
            bytes.push(self.random.next() as u8);
        }
        let mut decoder =
            Decoder::with_ip(self.mode.bits(), &bytes, self.mode.start() + at as u64, DecoderOptions::NONE);
        let insn = decoder.decode();
        if insn.code() == Code::INVALID {
            return None;
        }
        let offsets = decoder.get_constant_offsets(&insn);
        bytes.truncate(insn.len());
        self.place_constants(&mut bytes, &insn, offsets, at);
        let (insn, len) = decode(&bytes, at, self.mode);
        (len == bytes.len() && self.may_run(&insn, &bytes)).then_some(bytes)
    }

    /// A VEX encoding that is none: behind a prefix that it forbids, with a length or a register that it has not; or
    /// perhaps one by chance.
    pub fn spoilt(&mut self, skeleton: &Skeleton) -> Vec<u8> {
        const FORBIDDEN: [u8; 6] = [0x66, 0xf2, 0xf3, 0xf0, 0x40, 0x48];
        let mut skeleton = *skeleton;
        let (mut more, mut vvvv) = (Vec::new(), 0);
        match (self.below(3), &mut skeleton.map) {
            (0, _) => more.push(FORBIDDEN[self.below(6) as usize]),
            (1, Map::Vex(vex)) => vex.l ^= 1,
            _ => vvvv = 1 + self.below(15) as u8,
        }
        let mut bytes = skeleton.head(&more, 0, vvvv);
        bytes.extend([skeleton.modrm, 0x24, 0, 0, 0, 0, 0]);
        bytes
    }

    /// Whether an instruction can be compared on this host.
    pub fn may_run(&self, insn: &Instruction, bytes: &[u8]) -> bool {
        is_lowered(insn, bytes, self.model, self.mode)
            && !is_excluded(insn, bytes, self.mode)
            && missing(insn.code()).is_none()
    }

    /// Puts displacements and branch targets where they lead to something.
    fn place_constants(&mut self, bytes: &mut [u8], insn: &Instruction, offsets: ConstantOffsets, at: usize) {
        let next = self.mode.start() + (at + bytes.len()) as u64;
        if offsets.has_displacement() && self.chance(95) {
            let (place, size) = (offsets.displacement_offset(), offsets.displacement_size());
            let target = self.address();
            let value = match insn.memory_base() {
                Register::RIP | Register::EIP => Some(target.wrapping_sub(next)),
                Register::None if size >= 4 || self.mode == Mode::Protected16 => {
                    Some(target.wrapping_sub(self.mode.base(insn.memory_segment())))
                }
                _ if self.chance(50) => Some(self.below(256).wrapping_sub(128)),
                _ => None,
            };
            if let Some(value) = value {
                bytes[place..place + size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
        let relative = matches!(insn.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16);
        if insn.op_count() > 0 && relative && offsets.has_immediate() {
            let (place, size) = (offsets.immediate_offset(), offsets.immediate_size());
            let target = if size == 1 || self.chance(80) { self.code_address() } else { self.address() };
            let target = target.wrapping_sub(self.mode.code_base());
            let distance = target.wrapping_sub(next);
            bytes[place..place + size].copy_from_slice(&distance.to_le_bytes()[..size]);
        }
    }

    /// An address in the code page near, but not in, the instructions.
    fn code_address(&mut self) -> u64 {
        let distance = CODE_BYTES as u64 + self.below(60);
        if self.chance(50) { START + distance } else { START - distance + CODE_BYTES as u64 - 1 }
    }

    /// An address for data: mostly valid, often at the end of a page.
    pub fn address(&mut self) -> u64 {
        let near = self.below(128);
        let at = match self.below(40) {
            0 => READ_ONLY + self.below(0x1000),
            1 => READ_ONLY - 64 + near,
            2 => DATA - 64 + near,
            3 => READ_ONLY + 0x1000 - 64 + near,
            4 => CODE + self.below(0x1000),
            5..=13 => DATA + 0x1000 - 64 + near,
            _ => DATA + 64 + self.below(DATA_BYTES as u64 - 128),
        };
        if self.chance(50) { at & !15 } else { at }
    }

    /// An address for data, rarely one that is no address at all.
    fn wild_address(&mut self) -> u64 {
        match self.below(50) {
            0 => self.random.next(),
            1 => 0x8000_0000_0000 - 8 + self.below(16),
            2 => 0xffff_8000_0000_0000 - 8 + self.below(16),
            _ => self.address(),
        }
    }

    /// Registers and memory for instructions.
    pub fn prepare(&mut self, code: &[u8]) -> Slot {
        let mut state = State::default();
        self.random.fill(&mut state);
        state.set_mxcsr(state.mxcsr() & 0xffff);
        if self.chance(8) {
            state.set_mxcsr(self.random.next() as u32 & 0xffff);
        }
        if self.chance(30) {
            state.rflags |= rflags::DF;
        }
        state.rflags |= rflags::FIXED | rflags::IF;
        if std::arch::is_x86_feature_detected!("avx") {
            for high in &mut state.ymm_high {
                *high = if self.chance(10) { 0 } else { self.random.vector() };
            }
        }
        let stack = if self.chance(95) { self.address() } else { self.wild_address() };
        state.gpr[4] = stack.wrapping_sub(self.mode.base(Register::SS));
        for register in &mut state.gpr {
            *register &= self.mode.mask();
        }
        let mut slot = Slot {
            before: state,
            after: State::default(),
            code: [0xcc; CODE_BYTES],
            code_len: code.len() as u32,
            mode: self.mode,
            changes_gs: 0,
            outcome: Outcome::default(),
            data: [0; DATA_BYTES],
            data_after: [0; DATA_BYTES],
        };
        slot.code[..code.len()].copy_from_slice(code);
        for chunk in slot.data.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.next().to_le_bytes());
        }
        let mut decoder = Decoder::with_ip(self.mode.bits(), code, self.mode.start(), DecoderOptions::NONE);
        while decoder.can_decode() {
            let at = decoder.position();
            let insn = decoder.decode();
            slot.changes_gs |= u32::from(insn.mnemonic() == M::Wrgsbase);
            if at == 0 || !self.chance(50) {
                self.suit(&mut slot, &insn);
            }
        }
        for register in &mut slot.before.gpr {
            *register &= self.mode.mask();
        }
        slot
    }

    /// Changes registers and memory so that `insn` does more than fault.
    fn suit(&mut self, slot: &mut Slot, insn: &Instruction) {
        let gpr = &mut slot.before.gpr;
        match insn.mnemonic() {
            M::Div | M::Idiv if self.chance(80) => {
                let small = self.below(200);
                gpr[2] = match self.below(3) {
                    0 => 0,
                    1 => (gpr[0] as i64 >> 63) as u64,
                    _ => small.wrapping_sub(100),
                };
                if self.chance(50) {
                    gpr[0] &= 0xff;
                }
            }
            M::Bt | M::Bts | M::Btr | M::Btc if insn.op1_kind() == OpKind::Register && self.chance(90) => {
                let bit = self.below(4096).wrapping_sub(2048);
                gpr[insn.op1_register().full_register().number()] = bit;
            }
            M::Enter | M::Leave => gpr[5] = self.address().wrapping_sub(self.mode.base(Register::SS)),
            M::Xlatb => {}
            M::Wrgsbase if self.chance(80) => {
                gpr[insn.op0_register().full_register().number()] >>= 17;
            }
            M::Cmpxchg if self.chance(50) && insn.op0_kind() == OpKind::Register => {
                gpr[0] = gpr[insn.op0_register().full_register().number()];
            }
            _ => {}
        }
        if insn.has_rep_prefix() || insn.has_repne_prefix() || matches!(insn.mnemonic(), M::Loop | M::Loope | M::Loopne)
        {
            gpr[1] = match self.below(20) {
                0 => self.random.next(),
                1..3 => self.below(3000),
                3 => self.below(3) << 32 | self.below(20),
                _ => self.below(20),
            };
        }
        for i in 0..insn.op_count() {
            let (register, segment) = match insn.op_kind(i) {
                OpKind::MemorySegRSI | OpKind::MemorySegESI | OpKind::MemorySegSI => (6, insn.memory_segment()),
                OpKind::MemoryESRDI | OpKind::MemoryESEDI | OpKind::MemoryESDI => (7, Register::ES),
                OpKind::MemorySegRDI | OpKind::MemorySegEDI | OpKind::MemorySegDI => (7, insn.memory_segment()),
                OpKind::Memory => {
                    self.aim(slot, insn, i);
                    continue;
                }
                _ => continue,
            };
            slot.before.gpr[register] = self.wild_address().wrapping_sub(self.mode.base(segment));
        }
        if insn.is_string_instruction() && self.chance(50) {
            // Equal runs, so that comparisons go on.
            let byte = self.below(3) as u8;
            let from = self.below(DATA_BYTES as u64 - 64) as usize & !63;
            slot.data[from..from + 64].fill(byte);
            if self.chance(60) {
                slot.before.gpr[6] = (DATA + from as u64 + self.below(16)).wrapping_sub(self.mode.base(Register::DS));
                slot.before.gpr[7] = (DATA + from as u64 + self.below(16)).wrapping_sub(self.mode.base(Register::ES));
            }
            slot.before.gpr[0] = u64::from(byte) * 0x0101_0101_0101_0101;
        }
        if insn.flow_control() != FlowControl::Next {
            self.indirect_target(slot, insn);
        }
    }

    /// Makes the target of an indirect branch or of RET one that ends the case.
    fn indirect_target(&mut self, slot: &mut Slot, insn: &Instruction) {
        if self.chance(10) {
            return;
        }
        let target = if self.chance(85) { self.code_address() } else { self.wild_address() };
        let target = target.wrapping_sub(self.mode.code_base());
        let stack = slot.before.gpr[4].wrapping_add(self.mode.base(Register::SS));
        match insn.flow_control() {
            FlowControl::Return => put(slot, stack, target),
            FlowControl::IndirectBranch | FlowControl::IndirectCall => match insn.op0_kind() {
                OpKind::Register => slot.before.gpr[insn.op0_register().full_register().number()] = target,
                _ => {
                    if let Some(at) = address_of(insn, 0, slot) {
                        put(slot, at, target);
                    }
                }
            },
            _ => {}
        }
    }

    /// Makes memory operand `operand` lie in the data.
    fn aim(&mut self, slot: &mut Slot, insn: &Instruction, operand: u32) {
        let base = insn.memory_base();
        let index = insn.memory_index();
        if matches!(base, Register::RIP | Register::EIP) {
            return;
        }
        if index.is_vector_register() {
            return self.aim_elements(slot, insn);
        }
        let mut target = self.wild_address();
        if insn.has_lock_prefix() || insn.mnemonic() == M::Xchg {
            // Split locks are slow, or an exception, on some hosts.
            target &= !15;
        }
        if index != Register::None && (base == Register::None || self.chance(80)) {
            slot.before.gpr[index.full_register().number()] =
                self.below(9).wrapping_sub(if base == Register::None { 0 } else { 4 });
        }
        if base == Register::None {
            return;
        }
        let Some(now) = address_of(insn, operand, slot) else { return };
        if self.chance(75) {
            // Numbers that are special in some format.
            let value = self.random.vector();
            put(slot, target, value as u64);
            put(slot, target.wrapping_add(8), (value >> 64) as u64);
        }
        let base = base.full_register();
        if base != index.full_register() {
            let register = &mut slot.before.gpr[base.number()];
            *register = register.wrapping_add(target.wrapping_sub(now));
        }
    }
}

impl Generator<'_> {
    /// Makes the elements of a gather lie in the data: nearly all of them, or a mask would seldom become all zero.
    fn aim_elements(&mut self, slot: &mut Slot, insn: &Instruction) {
        let displacement = insn.memory_displacement64();
        let mut base = self.mode.base(insn.memory_segment()).wrapping_add(displacement);
        if insn.memory_base() != Register::None {
            let register = &mut slot.before.gpr[insn.memory_base().full_register().number()];
            *register = DATA.wrapping_sub(base).wrapping_add(self.random.next() & 0xfff);
            base = base.wrapping_add(*register);
        }
        let scale = insn.memory_index_scale().trailing_zeros();
        let indices_of_64 = insn.vsib() == Some(true);
        let mut elements = [0_u8; 32];
        for chunk in elements.chunks_mut(if indices_of_64 { 8 } else { 4 }) {
            let target = if self.chance(6) { self.wild_address() } else { DATA + self.below(DATA_BYTES as u64 - 8) };
            let index = (target.wrapping_sub(base) as i64 >> scale) as u64;
            chunk.copy_from_slice(&index.to_le_bytes()[..chunk.len()]);
        }
        let half = |i: usize| u128::from_le_bytes(elements[16 * i..16 * i + 16].try_into().expect("sixteen bytes"));
        let register = insn.memory_index().number();
        slot.before.set_xmm(register, half(0));
        slot.before.ymm_high[register] = half(1);
    }
}

/// Writes a word where the address is in the data.
fn put(slot: &mut Slot, address: u64, value: u64) {
    let at = address.wrapping_sub(DATA) as usize;
    if at <= DATA_BYTES - 8 {
        slot.data[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

/// Linear address of a memory operand.
pub fn address_of(insn: &Instruction, operand: u32, slot: &Slot) -> Option<u64> {
    insn.virtual_address(operand, 0, |register, _, _| {
        Some(match register {
            r if r.is_segment_register() => slot.mode.base(r),
            r if r.is_gpr() => {
                let value = slot.before.gpr[r.full_register().number()];
                match r.size() {
                    1 => value & 0xff,
                    2 => value & 0xffff,
                    4 => value & 0xffff_ffff,
                    _ => value,
                }
            }
            _ => return None,
        })
    })
}

/// Decodes for the place `at` in the code. Gives the length too.
pub fn decode(bytes: &[u8], at: usize, mode: Mode) -> (Instruction, usize) {
    let insn = Decoder::with_ip(mode.bits(), bytes, mode.start() + at as u64, DecoderOptions::NONE).decode();
    (insn, insn.len())
}
