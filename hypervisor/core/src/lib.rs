//! KVM's own logic on modelled VMX: virtual machines, vCPUs, exits, time and paravirtual services.
//!
//! The shape follows `kvm-ioctls`: a VMM makes a [`Vm`], gives it memory and vCPUs, and calls [`Vm::run`] until the
//! guest ends. All vCPUs of a VM run in a fixed order on the calling thread.

mod config;
mod cpuid;
mod error;
mod exit;
mod memory;
pub mod msr;
mod notice;
mod pv;
pub mod statistics;
pub mod time;
mod trace;
mod vcpu;
mod vm;

/// The processors that [`VmConfig::cpu`] can name.
pub mod cpu_models {
    pub use silicon_x86::model::{DEFAULT, FEATURES, Feature, Model, NAMES};
}

pub use config::{Slices, TimeMode, VmConfig};
pub use cpuid::CpuidResult;
pub use error::{Error, MOST_VCPUS};
pub use host::Kicker;
pub use irqchip::{Level, Msi};
pub use kvm_bindings::{kvm_regs, kvm_segment, kvm_sregs, kvm_xcr, kvm_xcrs, kvm_xsave};
pub use memory::MemoryFlags;
pub use notice::Notice;
pub use silicon_x86::exec::sse::xsave::InvalidImage;
pub use statistics::{Statistics, VcpuStatistics};
pub use trace::{ExitRecord, Trace};
pub use vcpu::{InvalidXcr0, MpState, Vcpu};
pub use vm::{PM_TIMER_PORT, VcpuExit, Vm};
