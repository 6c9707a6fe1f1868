//! From a decoded instruction to an [`Op`]. One file a family; each claims the mnemonics it knows.

pub mod sse;
pub mod x87;

use iced_x86::Instruction;

use crate::op::{Lowering, Op};

/// The op of an instruction, or `None` where the processor does not have it (then it is #UD).
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    sse::lower(l).or_else(|| x87::lower(l))
}

/// Whether a block ends after this instruction although it is no branch.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    let _ = insn;
    false
}
