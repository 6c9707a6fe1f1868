//! Conversions, F16C.

use crate::op::{Lowering, Op};

/// The op of an instruction of this family.
#[must_use]
pub fn lower(_: &Lowering<'_>) -> Option<Op> {
    None
}
