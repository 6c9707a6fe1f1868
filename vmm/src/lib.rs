#![deny(unsafe_code)]
//! Glassvisor's virtual machine monitor: a small PC around the modelled processor, boot loaders, and the command line.
//!
//! | module | what it holds |
//! |---|---|
//! | [`vm`] | what the monitor asks of a hypervisor, as a trait |
//! | [`modelled`] | Glassvisor's own hypervisor behind that trait |
//! | [`memory`] | guest RAM and the physical address map |
//! | [`boot`] | bzImage, ELF64 with a PVH note, ELF64 Linux, multiboot ELF32: loading and initial state |
//! | [`acpi`] | the tables that tell a kernel what the machine has |
//! | [`devices`] | serial port, RTC, power, debug exit, virtio block, and the buses that they sit on |
//! | [`machine`] | all of the above put together and run |
//! | [`report`], [`trace`] | what a run counted |
//! | [`explain`] | exit reasons, MSRs and CPUID leaves in a paragraph each |
//! | [`console`], [`cli`] | the terminal and the `glassvisor` program |

pub mod acpi;
pub mod boot;
pub mod cli;
pub mod console;
pub mod devices;
pub mod explain;
pub mod machine;
pub mod memory;
pub mod modelled;
pub mod report;
pub mod trace;
pub mod vm;

#[cfg(test)]
mod scripted;
