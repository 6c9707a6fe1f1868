//! From a decoded instruction to an [`Op`]. One file a family; each claims the mnemonics it knows.

pub mod far;
mod info;
pub mod io;
pub mod segment;
pub mod system;

use iced_x86::Instruction;

use crate::op::{Lowering, Op};

/// The op of an instruction, or `None` where the processor does not have it (then it is #UD).
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    segment::lower(l).or_else(|| far::lower(l)).or_else(|| io::lower(l)).or_else(|| system::lower(l))
}

/// Whether a block ends after this instruction although it is no branch.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    segment::ends_block(insn) || far::ends_block(insn) || system::ends_block(insn)
}
