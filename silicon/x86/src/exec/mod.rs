//! Execution of instructions, one file a family.

pub mod far;
pub mod io;
pub mod segment;
pub mod system;

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

#[cfg(test)]
pub(crate) mod run_test;
