//! KVM's own logic on modelled VMX: virtual machines, vCPUs, exits, time and paravirtual services.
//!
//! The shape follows `kvm-ioctls`: a VMM makes a [`Vm`], gives it memory and vCPUs, and calls [`Vm::run`] until the
//! guest ends. All vCPUs of a VM run in a fixed order on the calling thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Which clock a VM lives by; fixed before its first vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// TSC and all timers derive from modelled cycles; an idle VM jumps to its next event.
    Virtual,
    /// Guest TSC = scale(host TSC) + offset; timers are host timers.
    Real,
}

/// What a VM is made of; everything that cannot change afterwards.
#[derive(Clone, Debug)]
pub struct VmConfig {
    pub time: TimeMode,
    /// Seed of everything random that the machine offers (virtual time only).
    pub seed: u64,
    /// Wall clock at power-on in nanoseconds since 1970 (virtual time only; real time reads the host).
    pub wall_clock_ns: u64,
    /// CPU model string as given by the user: `MODEL[,+feature,-feature]`.
    pub cpu: String,
}

/// Ends a blocked or running [`Vm::run`] from another thread or a signal handler, within a bounded time.
#[derive(Clone, Debug)]
pub struct Kicker(pub Arc<AtomicBool>);

/// Why [`Vm::run`] came back to the VMM: KVM's `KVM_EXIT_*`.
#[derive(Debug)]
pub enum VcpuExit<'a> {
    /// Guest reads a port: fill in the bytes.
    IoIn(u16, &'a mut [u8]),
    IoOut(u16, &'a [u8]),
    MmioRead(u64, &'a mut [u8]),
    MmioWrite(u64, &'a [u8]),
    /// Triple fault.
    Shutdown,
    /// All vCPUs halted with interrupts off and nothing can ever wake them.
    Deadlock,
    /// The kicker was set.
    Interrupted,
    /// The machine met something it cannot go on from: what and where, for the user.
    InternalError(String),
}
