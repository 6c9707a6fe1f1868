//! Execution of instructions, one file a family.

pub mod mmx;
pub mod sse;
pub mod x87;

use crate::op::Done;
use crate::{Core, Op};

/// An instruction that the processor does not have: #UD.
///
/// # Errors
/// Always the fault.
#[cold]
pub fn undefined(core: &mut Core, _op: &Op) -> Done {
    Err(core.ud())
}
