//! Small guests on the whole of the hypervisor, one behaviour a case.
//!
//! Each case is bare-metal code in 64-bit mode ([`case::Case`]) on a machine of 8 MiB ([`machine::Machine`]).
#![allow(dead_code, reason = "names of the machine's layout")]

#[macro_use]
mod case;
mod exits;
mod flat32;
mod interrupts;
mod machine;
mod paging_legacy;
mod paging_wide;
mod self_modifying;
mod smp;
mod time;
mod translation;
