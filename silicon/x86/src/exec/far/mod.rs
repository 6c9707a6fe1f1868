//! Far transfers of control.

pub mod call;
pub mod interrupt;
pub mod iret;
pub mod jump;
pub mod ret;
pub mod syscall;
pub mod sysenter;
mod target;
mod task;
#[cfg(test)]
mod tests;
pub mod vme;

pub use task::{Switched, TaskSwitch, TaskSwitchRequest, task_switch};
