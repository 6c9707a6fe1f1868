//! A modelled x86-64 logical processor whose guests run in VMX non-root mode.
//!
//! The hypervisor above sees what hardware offers: a VMCS to fill in, VM-entry, and a VM-exit with its reason. Inside:
//! `code` decodes blocks of instructions ([`iced_x86`]) and `lower` turns each into an [`op::Op`], a function of `exec`
//! with its operands; `mem` translates addresses through the modelled TLB; `event` delivers exceptions and
//! interrupts; `vmx` enters and leaves the guest; `cost` is the table of modelled cycles.
#![forbid(unsafe_code)]

pub mod code;
pub mod core;
pub mod cost;
pub mod event;
pub mod exec;
pub mod lower;
pub mod mem;
pub mod model;
pub mod op;
pub mod processor;
pub mod vmx;

pub use crate::core::Core;
pub use op::{Leave, Op};
