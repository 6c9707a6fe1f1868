//! Instructions of the operating system.

pub mod control;
mod control_checks;
pub mod debug;
pub mod exits;
pub mod flag;
pub mod identity;
pub mod idle;
pub mod keys;
pub mod msr;
pub(crate) mod msr_values;
pub mod random;
#[cfg(test)]
mod tests;
pub mod translation;
pub mod tsc;
pub mod vmx;
