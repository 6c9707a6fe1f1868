//! From a decoded instruction to an [`Op`]. One file a family; each claims the mnemonics it knows.

pub mod alu;
pub mod branch;
pub mod flag;
pub mod mov;
pub mod stack;

use crate::op::{Lowering, Op};

/// The op of an instruction, or `None` where the processor does not have it (then it is #UD).
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    mov::lower(l)
        .or_else(|| alu::lower(l))
        .or_else(|| branch::lower(l))
        .or_else(|| stack::lower(l))
        .or_else(|| flag::lower(l))
}
