//! Numbers and bit fields of the x86-64 architecture, without logic.
//!
//! Names are those of the Intel SDM; see `docs/manuals.md` for its revision.
#![forbid(unsafe_code)]

pub mod control;
pub mod exception;
pub mod msr;
pub mod rflags;
pub mod segment;
pub mod vmx;
