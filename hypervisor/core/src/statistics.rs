//! What is counted: exact, the same on every run in virtual time.

use std::collections::BTreeMap;

use silicon_x86::mem::TlbCounters;
use x86_defs::vmx::ExitReason;

/// Counts of one vCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VcpuStatistics {
    /// Exits by reason.
    pub exits: BTreeMap<ExitReason, u64>,
    pub msr_reads: BTreeMap<u32, u64>,
    pub msr_writes: BTreeMap<u32, u64>,
    /// Interrupts injected, by vector.
    pub interrupts: BTreeMap<u8, u64>,
    pub exceptions_injected: u64,
    pub nmis: u64,
    pub hypercalls: BTreeMap<u64, u64>,
    /// Exits that went on to the VMM.
    pub vmm_exits: u64,
    /// Instructions that the hypervisor emulated (device memory).
    pub emulated: u64,
    /// Instructions retired by the guest.
    pub instructions: u64,
    /// Modelled cycles in which the vCPU was not halted.
    pub cycles: u64,
    /// Modelled cycles that it was halted.
    pub halted_cycles: u64,
    pub tlb: TlbCounters,
    pub blocks_decoded: u64,
    pub code_invalidations: u64,
}

impl VcpuStatistics {
    pub(crate) fn exit(&mut self, reason: ExitReason) {
        *self.exits.entry(reason).or_default() += 1;
    }
}

/// Counts of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    pub vcpus: Vec<VcpuStatistics>,
}
