//! The modelled machine behind [`MachineVm`]: Glassvisor's own hypervisor.

use std::ptr::NonNull;
use std::sync::Arc;

use hypervisor::{Level, MemoryFlags, Vm, VmConfig};
use kvm_bindings::{kvm_regs, kvm_sregs};
use vm_memory::{GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MemoryRegionAddress};

use crate::explain;
use crate::memory::{GuestRam, GuestRom};
use crate::report::{Counts, ExitCount, InterruptCount, MsrCount, VcpuCounts};
use crate::trace::TraceRecord;
use crate::vm::{Kicker, LineLevel, MachineVm, TraceSink, VcpuExit, VmError};

/// A VM of the hypervisor, with the memory that it was given.
pub struct ModelledVm {
    // Dropped before the memory, as it reaches into it.
    vm: Vm,
    memory: Vec<Arc<GuestMemoryMmap>>,
    slots: u32,
}

fn vm_error(error: hypervisor::Error) -> VmError {
    VmError(error.to_string())
}

impl ModelledVm {
    /// A VM without memory and processors.
    pub fn new(config: VmConfig) -> Result<Self, VmError> {
        Ok(Self { vm: Vm::new(config).map_err(vm_error)?, memory: Vec::new(), slots: 0 })
    }

    /// Gives memory to the VM, one slot a region.
    #[expect(unsafe_code, reason = "the hypervisor takes guest memory by its host address, as KVM does")]
    fn map(&mut self, memory: &Arc<GuestMemoryMmap>, flags: MemoryFlags) -> Result<(), VmError> {
        self.memory.push(memory.clone());
        for region in memory.iter() {
            let host = region
                .get_host_address(MemoryRegionAddress(0))
                .ok()
                .and_then(NonNull::new)
                .ok_or_else(|| VmError("guest memory has no host address".into()))?;
            let (start, len) = (region.start_addr().0, region.len());
            // SAFETY: the region is mapped readable and writable for `len` bytes from `host`, and stays so as long as
            // `self.memory` holds its owner, which is dropped after `self.vm`.
            unsafe { self.vm.set_user_memory_region(self.slots, start, len, host, flags) }.map_err(vm_error)?;
            self.slots += 1;
        }
        Ok(())
    }

    fn check(&self, vcpu: usize) -> Result<(), VmError> {
        if vcpu < self.vm.vcpus() { Ok(()) } else { Err(VmError(format!("there is no vCPU {vcpu}"))) }
    }
}

impl MachineVm for ModelledVm {
    fn map_memory(&mut self, ram: &GuestRam) -> Result<(), VmError> {
        self.map(ram.mmap(), MemoryFlags::ReadWrite)
    }

    fn map_rom(&mut self, rom: &GuestRom) -> Result<(), VmError> {
        self.map(rom.mmap(), MemoryFlags::ReadOnly)
    }

    fn add_vcpu(&mut self, apic_id: u32) -> Result<usize, VmError> {
        self.vm.add_vcpu(apic_id).map_err(vm_error)
    }

    fn regs(&self, vcpu: usize) -> Result<kvm_regs, VmError> {
        self.check(vcpu)?;
        Ok(self.vm.vcpu(vcpu).regs())
    }

    fn set_regs(&mut self, vcpu: usize, regs: &kvm_regs) -> Result<(), VmError> {
        self.check(vcpu)?;
        self.vm.vcpu_mut(vcpu).set_regs(regs);
        Ok(())
    }

    fn sregs(&self, vcpu: usize) -> Result<kvm_sregs, VmError> {
        self.check(vcpu)?;
        Ok(self.vm.vcpu(vcpu).sregs())
    }

    fn set_sregs(&mut self, vcpu: usize, sregs: &kvm_sregs) -> Result<(), VmError> {
        self.check(vcpu)?;
        self.vm.vcpu_mut(vcpu).set_sregs(sregs);
        Ok(())
    }

    fn code_at_rip(&mut self, vcpu: usize) -> Vec<u8> {
        if self.check(vcpu).is_ok() { self.vm.code_at_rip(vcpu) } else { vec![] }
    }

    fn set_irq_line(&mut self, gsi: u32, level: LineLevel) -> Result<(), VmError> {
        let level = match level {
            LineLevel::Low => Level::Low,
            LineLevel::High => Level::High,
        };
        self.vm.set_irq_line(gsi, level);
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.vm.now_ns()
    }

    fn wall_clock_ns(&self) -> u64 {
        self.vm.wall_clock_ns()
    }

    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.vm.memory_written(gpa, len);
    }

    fn kicker(&self) -> Kicker {
        self.vm.kicker()
    }

    fn set_wakeup(&mut self, at_ns: Option<u64>) {
        self.vm.set_wakeup(at_ns);
    }

    fn run(&mut self) -> Result<(usize, VcpuExit<'_>), VmError> {
        for notice in self.vm.take_notices() {
            eprintln!("glassvisor: {notice}");
        }
        self.vm.run().map_err(vm_error)
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for vcpu in self.vm.statistics().vcpus {
            for (reason, count) in vcpu.exits {
                let number = reason as u16;
                let name = explain::exit_name(number).unwrap_or(reason.name());
                match counts.exits.iter_mut().find(|exit| exit.reason == number) {
                    Some(exit) => exit.count += count,
                    None => counts.exits.push(ExitCount { reason: number, name: name.into(), count }),
                }
            }
            for (msr, reads) in vcpu.msr_reads {
                msr_entry(&mut counts.msrs, msr).reads += reads;
            }
            for (msr, writes) in vcpu.msr_writes {
                msr_entry(&mut counts.msrs, msr).writes += writes;
            }
            for (vector, count) in vcpu.interrupts {
                match counts.interrupts.iter_mut().find(|interrupt| interrupt.vector == vector) {
                    Some(interrupt) => interrupt.count += count,
                    None => counts.interrupts.push(InterruptCount { vector, count }),
                }
            }
            let (tlb, of) = (&mut counts.tlb, vcpu.tlb);
            let data_misses = of.data_second_level_hits + of.data_walks;
            let fetch_misses = of.fetch_second_level_hits + of.fetch_walks;
            let walks = of.data_walks + of.fetch_walks;
            tlb.first_level_misses += data_misses + fetch_misses;
            tlb.second_level_misses += walks;
            tlb.data_first_level_misses += data_misses;
            tlb.fetch_first_level_misses += fetch_misses;
            tlb.walks += walks + of.assist_walks;
            tlb.data_walks += of.data_walks;
            tlb.fetch_walks += of.fetch_walks;
            tlb.assist_walks += of.assist_walks;
            tlb.walk_references += of.guest_references + of.ept_references;
            tlb.guest_references += of.guest_references;
            tlb.ept_references += of.ept_references;
            tlb.nested_hits += of.nested_hits;
            tlb.flushes += of.flushes;
            tlb.page_invalidations += of.page_invalidations;
            counts.vcpus.push(VcpuCounts {
                instructions: vcpu.instructions,
                modelled_cycles: vcpu.cycles,
                halted_cycles: vcpu.halted_cycles,
                monitor_exits: vcpu.vmm_exits,
            });
        }
        counts.exits.sort_by_key(|exit| exit.reason);
        counts.msrs.sort_by_key(|msr| msr.msr);
        counts.interrupts.sort_by_key(|interrupt| interrupt.vector);
        counts
    }

    fn state_hash(&self) -> u64 {
        self.vm.state_hash()
    }

    fn set_trace(&mut self, mut sink: TraceSink) {
        self.vm.set_trace(Box::new(move |record| {
            sink(&TraceRecord {
                vcpu: record.vcpu,
                guest_time_ns: record.guest_time_ns,
                reason: record.reason as u16,
                reason_name: explain::exit_name(record.reason as u16).unwrap_or(record.reason.name()),
                qualification: record.qualification,
                rip: record.rip,
            });
        }));
    }
}

fn msr_entry(msrs: &mut Vec<MsrCount>, msr: u32) -> &mut MsrCount {
    let index = msrs.iter().position(|entry| entry.msr == msr).unwrap_or_else(|| {
        msrs.push(MsrCount { msr, ..Default::default() });
        msrs.len() - 1
    });
    &mut msrs[index]
}
