//! From a decoded instruction to an [`Op`]. One file a family; each claims the mnemonics it knows.

pub mod sse;

use crate::op::{Lowering, Op};

/// The op of an instruction, or `None` where the processor does not have it (then it is #UD).
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    sse::lower(l)
}
