//! A decoded instruction, ready to execute.

use iced_x86::{Instruction, OpKind, Register};

use crate::Core;
use crate::model::Model;

/// Why execution leaves the straight line of a block. `Ok(())` means: on to the next instruction of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Leave {
    /// The instruction completed and set [`Core::rip`] itself (branches).
    Branch,
    /// The instruction completed; go on at the next one, but look at events, mode and code again first.
    End,
    /// The instruction did not complete and stays at its own RIP, but may have made progress (one chunk of a
    /// repeated string instruction): events may be taken, then it is executed again. It does not count as retired.
    Again,
    /// The instruction raised the exception in [`Core::fault`] and changed nothing.
    Fault,
    /// The instruction caused the VM-exit in the VMX state and changed nothing.
    Exit,
    /// The instruction changed nothing: it is about to write to the page it was fetched from, and must be executed
    /// alone, freshly decoded, with such stores allowed.
    Refetch,
}

/// What executing an instruction gives.
pub type Done = Result<(), Leave>;

/// The code of an instruction.
pub type Exec = fn(&mut Core, &Op) -> Done;

/// The ops of a block that come after the running one.
pub type Rest<'a> = std::slice::Iter<'a, Op>;

/// The code of an instruction and of all that follow it in the block: [`crate::exec::chain`].
pub type Chain = fn(&mut Core, &Op, Rest<'_>) -> Stop;

/// Where a chain of ops stopped, and why: one machine word, so that it passes from the last op to the first untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop(u32);

impl Stop {
    /// The block's last op completed, and execution goes on behind it.
    pub const END: Self = Self(u32::MAX);
    /// The block's last op is a branch that was taken.
    pub const BRANCH: Self = Self(Leave::Branch as u32);

    /// The op at [`Op::idx`] `at` left the straight line.
    #[inline(always)]
    #[must_use]
    pub fn new(leave: Leave, at: u8) -> Self {
        Self(leave as u32 | u32::from(at) << 8)
    }

    /// Why and where; `None` for [`Stop::END`].
    #[must_use]
    pub fn leave(self) -> Option<(Leave, u8)> {
        const ALL: [Leave; 6] = [Leave::Branch, Leave::End, Leave::Again, Leave::Fault, Leave::Exit, Leave::Refetch];
        ALL.get((self.0 & 0xff) as usize).map(|&leave| (leave, (self.0 >> 8) as u8))
    }
}

/// Register file slot that is always zero: base or index of an address that has none.
pub const ZERO: u8 = 16;
/// Register file slot that holds the RIP of the running block: base of RIP-relative addresses.
pub const BLOCK_RIP: u8 = 17;

/// Bit of [`Op::seg`]: the segment has base 0 and no limit (64-bit mode: CS, DS, ES, SS).
pub const FLAT: u8 = 0x80;

/// A decoded instruction: its code and operands. 40 bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Op {
    /// Executes the instruction and goes on with the next one. It does what `exec` does; the common instructions have
    /// one of their own, which leaves all that is not simple to `exec`.
    pub chain: Chain,
    /// Executes the instruction.
    pub exec: Exec,
    /// Immediate (sign-extended to 64 bits), or branch target relative to the RIP of the block, or absolute offset.
    pub imm: u64,
    /// Displacement of the memory operand; RIP-relative: relative to the RIP of the block.
    pub disp: i32,
    /// First register operand (usually the destination). See [`reg`] for 8-bit registers.
    pub a: u8,
    /// Second register operand.
    pub b: u8,
    /// Memory operand: base register slot.
    pub base: u8,
    /// Memory operand: index register slot.
    pub index: u8,
    /// Memory operand: log2 of the scale (bits 1:0); bits to drop from the address, 0, 32 or 48 (bits 7:2).
    pub scale_drop: u8,
    /// Memory operand: segment index, with [`FLAT`].
    pub seg: u8,
    /// Offset of this instruction from the start of its block.
    pub off: u16,
    /// Length in bytes.
    pub len: u8,
    /// Position in the block.
    pub idx: u8,
    /// Static cost in quarter cycles.
    pub cost: u16,
}

impl Op {
    /// Offset of the next instruction from the start of the block.
    #[inline(always)]
    #[must_use]
    pub fn next_off(&self) -> u64 {
        u64::from(self.off) + u64::from(self.len)
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Op {{ off: {}, len: {}, a: {}, b: {}, imm: {:#x} }}", self.off, self.len, self.a, self.b, self.imm)
    }
}

/// The slot of a general register. AH, CH, DH and BH are slots 0-3 with bit 6 set.
///
/// Gives [`ZERO`] for `Register::None`.
#[must_use]
pub fn reg(register: Register) -> u8 {
    match register {
        Register::None => ZERO,
        Register::AH | Register::CH | Register::DH | Register::BH => 0x40 | (register as u8 - Register::AH as u8),
        // The decoder numbers 8-bit registers in a row of its own: the register that contains them has the slot.
        r if r.is_gpr() => r.full_register().number() as u8,
        r if r.is_xmm() || r.is_ymm() || r.is_mm() || r.is_st() || r.is_segment_register() => r.number() as u8,
        r if r.is_cr() || r.is_dr() => r.number() as u8,
        _ => ZERO,
    }
}

/// The processor mode that an instruction was decoded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeSize {
    Bits16,
    Bits32,
    Bits64,
}

impl CodeSize {
    /// Default operand and address size in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }
}

/// What `lower` gets to know about an instruction, beside the instruction.
pub struct Lowering<'a> {
    pub insn: &'a Instruction,
    /// The decoded bytes, for what the decoder does not say (a redundant prefix, say).
    pub bytes: &'a [u8],
    pub size: CodeSize,
    /// Where the instruction stands in its block.
    pub off: u16,
    /// Which instructions there are.
    pub model: &'a Model,
}

impl Lowering<'_> {
    /// An op that executes `exec`, with the memory operand (if any), the offset and length filled in.
    ///
    /// `a`, `b` and `imm` are left at [`ZERO`], [`ZERO`] and 0.
    #[must_use]
    pub fn op(&self, exec: Exec) -> Op {
        let mut op = self.op_without_operands(exec);
        if (0..self.insn.op_count()).any(|i| self.insn.op_kind(i) == OpKind::Memory) {
            self.memory(&mut op);
        }
        op
    }

    /// An op with nothing but its place filled in.
    #[must_use]
    pub fn op_without_operands(&self, exec: Exec) -> Op {
        Op {
            chain: crate::exec::chain::once,
            exec,
            imm: 0,
            disp: 0,
            a: ZERO,
            b: ZERO,
            base: ZERO,
            index: ZERO,
            scale_drop: 0,
            seg: FLAT,
            off: self.off,
            len: self.insn.len() as u8,
            idx: 0,
            cost: 1,
        }
    }

    fn memory(&self, op: &mut Op) {
        let i = self.insn;
        let base = i.memory_base();
        // An index that is a vector (gathers) is no part of the address: the handler adds it.
        let index = if i.memory_index().is_gpr() { i.memory_index() } else { Register::None };
        op.base = reg(base);
        op.index = reg(index);
        let scale = i.memory_index_scale().trailing_zeros() as u8;
        let bits = if base != Register::None && base != Register::RIP && base != Register::EIP {
            base.size() * 8
        } else if index != Register::None {
            index.size() * 8
        } else if base == Register::EIP {
            32
        } else {
            match i.memory_displ_size() {
                2 => 16,
                4 if self.size != CodeSize::Bits64 => 32,
                // 64-bit mode: a 32-bit displacement is sign-extended unless the address size prefix is there.
                4 if self.address_size_prefix() => 32,
                _ => 64,
            }
        };
        op.scale_drop = scale | (((64 - bits) as u8) << 2);
        let displacement = if base == Register::RIP || base == Register::EIP {
            // iced gives the absolute target: with the block at RIP 0 this is relative to the block.
            op.base = BLOCK_RIP;
            i.memory_displacement64()
        } else {
            i.memory_displacement64()
        };
        op.disp = displacement as i32;
        // 64-bit mode ignores prefixes for ES, CS, SS and DS: the base decides whether a fault is #SS or #GP.
        let segment = match i.memory_segment() {
            s if self.size != CodeSize::Bits64 || matches!(s, Register::FS | Register::GS) => s,
            _ if matches!(base, Register::RSP | Register::ESP | Register::RBP | Register::EBP) => Register::SS,
            _ => Register::DS,
        };
        let index = segment.number() as u8;
        let flat = self.size == CodeSize::Bits64 && !matches!(segment, Register::FS | Register::GS);
        op.seg = index | if flat { FLAT } else { 0 };
    }

    /// Whether the address-size prefix (0x67) is present.
    #[must_use]
    pub fn address_size_prefix(&self) -> bool {
        self.bytes
            .iter()
            .take_while(|b| {
                matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f)
            })
            .any(|&b| b == 0x67)
    }

    /// Address size in bits of an instruction with implicit memory operands (strings, `LOOP`, `XLAT`).
    #[must_use]
    pub fn address_bits(&self) -> u32 {
        match (self.size, self.address_size_prefix()) {
            (CodeSize::Bits64, false) => 64,
            (CodeSize::Bits64, true) | (CodeSize::Bits32, false) | (CodeSize::Bits16, true) => 32,
            (CodeSize::Bits32, true) | (CodeSize::Bits16, false) => 16,
        }
    }

    /// Slot of register operand `i`.
    #[must_use]
    pub fn reg(&self, i: u32) -> u8 {
        reg(self.insn.op_register(i))
    }

    /// Whether operand `i` is in memory.
    #[must_use]
    pub fn is_mem(&self, i: u32) -> bool {
        self.insn.op_kind(i) == OpKind::Memory
    }

    /// Whether operand `i` is a register.
    #[must_use]
    pub fn is_reg(&self, i: u32) -> bool {
        self.insn.op_kind(i) == OpKind::Register
    }

    /// Whether operand `i` is an immediate.
    #[must_use]
    pub fn is_imm(&self, i: u32) -> bool {
        matches!(
            self.insn.op_kind(i),
            OpKind::Immediate8
                | OpKind::Immediate8_2nd
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        )
    }

    /// Immediate operand `i`, sign-extended to 64 bits where the instruction sign-extends it.
    #[must_use]
    pub fn imm(&self, i: u32) -> u64 {
        self.insn.immediate(i)
    }

    /// Size in bits of operand `i` (register size or memory size).
    #[must_use]
    pub fn bits(&self, i: u32) -> u32 {
        match self.insn.op_kind(i) {
            OpKind::Register => self.insn.op_register(i).size() as u32 * 8,
            OpKind::Memory => self.insn.memory_size().size() as u32 * 8,
            _ => 0,
        }
    }

    /// Target of a near branch, relative to the start of the block.
    #[must_use]
    pub fn branch_target(&self) -> u64 {
        self.insn.near_branch_target()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_of_every_size_has_its_slot() {
        assert_eq!(
            [Register::AL, Register::BL, Register::SPL, Register::DIL, Register::R8L, Register::R15L].map(reg),
            [0, 3, 4, 7, 8, 15]
        );
        assert_eq!([Register::AH, Register::BH].map(reg), [0x40, 0x43]);
        assert_eq!([Register::R9, Register::R9D, Register::R9W].map(reg), [9, 9, 9]);
    }
}
