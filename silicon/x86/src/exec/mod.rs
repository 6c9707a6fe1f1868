//! Execution of instructions, one file a family.

pub mod alu;
pub mod branch;
pub mod cache;
pub mod decimal;
pub mod flag;
pub mod mov;
pub mod operand;
pub mod stack;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod trial;
