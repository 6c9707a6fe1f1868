//! Small guests on the whole of the hypervisor, one behaviour a case.
//!
//! Each case is bare-metal code in 64-bit mode ([`case::Case`]) on a machine of 8 MiB ([`machine::Machine`]).
#![allow(dead_code, reason = "names of the machine's layout")]

#[macro_use]
mod case;
mod debug;
mod events;
mod exits;
mod flat32;
mod gates;
mod interrupts;
mod legacy;
mod machine;
mod msrs;
mod paging_legacy;
mod paging_wide;
mod returns;
mod second_opinion;
mod segmentation;
mod self_modifying;
mod smp;
mod spinning;
mod tasks;
mod time;
mod translation;
mod vm86;
mod xsave;
