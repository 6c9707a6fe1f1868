//! What the monitor asks of a hypervisor.
//!
//! The trait keeps the machine, its devices and its loaders independent of one hypervisor: the tests run them on a
//! scripted one.

use kvm_bindings::{kvm_regs, kvm_sregs};

pub use hypervisor::{Kicker, VcpuExit};

use crate::memory::{GuestRam, GuestRom};
use crate::report::Counts;
use crate::trace::TraceRecord;

/// What goes wrong below the monitor: the hypervisor's own words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct VmError(pub String);

/// Level of an interrupt line as the device drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineLevel {
    Low,
    High,
}

/// Receives one record per VM-exit.
pub type TraceSink = Box<dyn FnMut(&TraceRecord) + Send>;

/// A virtual machine as the monitor sees it: `kvm-ioctls` in spirit, one object for the VM and its vCPUs.
pub trait MachineVm {
    /// Gives all RAM regions to the VM, one slot each. The VM keeps the memory alive as long as itself.
    fn map_memory(&mut self, ram: &GuestRam) -> Result<(), VmError>;
    /// Gives read-only memory to the VM, in a slot of its own; the guest's stores there leave as MMIO.
    fn map_rom(&mut self, rom: &GuestRom) -> Result<(), VmError>;
    /// Adds a vCPU with the given local APIC id; returns its index. The first is the bootstrap processor.
    fn add_vcpu(&mut self, apic_id: u32) -> Result<usize, VmError>;
    fn regs(&self, vcpu: usize) -> Result<kvm_regs, VmError>;
    fn set_regs(&mut self, vcpu: usize, regs: &kvm_regs) -> Result<(), VmError>;
    fn sregs(&self, vcpu: usize) -> Result<kvm_sregs, VmError>;
    fn set_sregs(&mut self, vcpu: usize, sregs: &kvm_sregs) -> Result<(), VmError>;
    /// Bytes of code at a vCPU's RIP, up to the longest instruction; fewer where they cannot be fetched.
    fn code_at_rip(&mut self, vcpu: usize) -> Vec<u8>;
    /// Drives a line of the in-kernel interrupt controllers.
    fn set_irq_line(&mut self, gsi: u32, level: LineLevel) -> Result<(), VmError>;
    /// VM time since power-on in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Time of day in nanoseconds since 1970, as the guest's clocks should show it.
    fn wall_clock_ns(&self) -> u64;
    /// Tells the processor that the monitor changed guest memory (it caches decoded instructions).
    fn memory_written(&mut self, gpa: u64, len: u64);
    /// Ends [`MachineVm::run`] from elsewhere.
    fn kicker(&self) -> Kicker;
    /// Asks [`MachineVm::run`] to come back with [`VcpuExit::Interrupted`] at this VM time.
    fn set_wakeup(&mut self, at_ns: Option<u64>);
    /// Runs until something needs the monitor.
    fn run(&mut self) -> Result<(usize, VcpuExit<'_>), VmError>;
    /// Everything counted so far.
    fn counts(&self) -> Counts;
    /// Hash of the whole guest-visible state: equal for equal runs in virtual time.
    fn state_hash(&self) -> u64;
    /// Calls `sink` at each VM-exit from now on.
    fn set_trace(&mut self, sink: TraceSink);
}

impl<V: MachineVm + ?Sized> MachineVm for Box<V> {
    fn map_memory(&mut self, ram: &GuestRam) -> Result<(), VmError> {
        (**self).map_memory(ram)
    }
    fn map_rom(&mut self, rom: &GuestRom) -> Result<(), VmError> {
        (**self).map_rom(rom)
    }
    fn add_vcpu(&mut self, apic_id: u32) -> Result<usize, VmError> {
        (**self).add_vcpu(apic_id)
    }
    fn regs(&self, vcpu: usize) -> Result<kvm_regs, VmError> {
        (**self).regs(vcpu)
    }
    fn set_regs(&mut self, vcpu: usize, regs: &kvm_regs) -> Result<(), VmError> {
        (**self).set_regs(vcpu, regs)
    }
    fn sregs(&self, vcpu: usize) -> Result<kvm_sregs, VmError> {
        (**self).sregs(vcpu)
    }
    fn set_sregs(&mut self, vcpu: usize, sregs: &kvm_sregs) -> Result<(), VmError> {
        (**self).set_sregs(vcpu, sregs)
    }
    fn code_at_rip(&mut self, vcpu: usize) -> Vec<u8> {
        (**self).code_at_rip(vcpu)
    }
    fn set_irq_line(&mut self, gsi: u32, level: LineLevel) -> Result<(), VmError> {
        (**self).set_irq_line(gsi, level)
    }
    fn now_ns(&self) -> u64 {
        (**self).now_ns()
    }
    fn wall_clock_ns(&self) -> u64 {
        (**self).wall_clock_ns()
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        (**self).memory_written(gpa, len);
    }
    fn kicker(&self) -> Kicker {
        (**self).kicker()
    }
    fn set_wakeup(&mut self, at_ns: Option<u64>) {
        (**self).set_wakeup(at_ns);
    }
    fn run(&mut self) -> Result<(usize, VcpuExit<'_>), VmError> {
        (**self).run()
    }
    fn counts(&self) -> Counts {
        (**self).counts()
    }
    fn state_hash(&self) -> u64 {
        (**self).state_hash()
    }
    fn set_trace(&mut self, sink: TraceSink) {
        (**self).set_trace(sink);
    }
}
