//! Execution of instructions, one file a family.

pub mod alu;
pub mod avx;
pub mod bit;
pub mod branch;
pub mod cache;
pub mod chain;
pub mod decimal;
pub mod far;
pub mod flag;
pub mod io;
pub mod mmx;
pub mod mov;
pub mod multiply;
pub mod operand;
pub mod segment;
pub mod shift;
pub mod sse;
pub mod stack;
pub mod string;
pub mod system;
pub mod x87;

#[cfg(test)]
pub(crate) mod run_test;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod trial;

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
