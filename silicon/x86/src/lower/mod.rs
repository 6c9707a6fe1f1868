//! From a decoded instruction to an [`Op`]. One file a family; each claims the mnemonics it knows.

pub mod alu;
pub mod avx;
pub mod bit;
pub mod branch;
pub mod chain;
pub mod far;
pub mod flag;
pub mod gate;
mod info;
pub mod io;
pub mod mov;
pub mod multiply;
pub mod segment;
pub mod shift;
pub mod sse;
pub mod stack;
pub mod string;
pub mod system;
pub mod x87;

use iced_x86::Instruction;

use crate::op::{Lowering, Op};

/// The op of an instruction, or `None` where the processor does not have it (then it is #UD).
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let insn = gate::admit(l)?;
    let l = &Lowering { insn: &insn, ..*l };
    // Segment registers come first: they claim MOV, PUSH and POP with a segment register.
    segment::lower(l)
        .or_else(|| mov::lower(l))
        .or_else(|| alu::lower(l))
        .or_else(|| branch::lower(l))
        .or_else(|| stack::lower(l))
        .or_else(|| shift::lower(l))
        .or_else(|| bit::lower(l))
        .or_else(|| multiply::lower(l))
        .or_else(|| string::lower(l))
        .or_else(|| flag::lower(l))
        .or_else(|| far::lower(l))
        .or_else(|| io::lower(l))
        .or_else(|| system::lower(l))
        .or_else(|| sse::lower(l))
        .or_else(|| x87::lower(l))
        .or_else(|| avx::lower(l))
}

/// Whether a block ends after this instruction although it is no branch.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    stack::ends_block(insn) || segment::ends_block(insn) || far::ends_block(insn) || system::ends_block(insn)
}
