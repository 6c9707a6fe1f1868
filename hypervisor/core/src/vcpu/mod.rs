//! A virtual processor: a modelled logical processor and what KVM keeps about it.

mod extended_state;
pub mod inject;
pub mod registers;
pub mod run;
mod setup;
pub mod timer;

pub use extended_state::InvalidXcr0;
pub(crate) use setup::{Pages, fill_msr_bitmap};

use silicon_x86::mem::DeviceAccess;
use silicon_x86::processor::Processor;

use crate::exit::UserExit;
use crate::msr::MsrStore;
use crate::pv::Paravirtual;
use crate::statistics::VcpuStatistics;

/// What a vCPU is doing: KVM's `mp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MpState {
    Runnable,
    /// After power-up or INIT: waits for a start-up request.
    WaitForSipi,
    Halted,
}

/// An exception that the hypervisor injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueuedException {
    pub vector: u8,
    pub error_code: Option<u32>,
    /// Written to CR2 with a page fault.
    pub address: u64,
}

/// A virtual processor.
#[derive(Debug)]
pub struct Vcpu {
    pub index: usize,
    pub apic_id: u32,
    pub processor: Processor,
    pub mp_state: MpState,
    pub msrs: MsrStore,
    pub pv: Paravirtual,
    pub statistics: VcpuStatistics,
    /// guest TSC = host TSC + offset.
    pub tsc_offset: u64,
    pub exception: Option<QueuedException>,
    pub nmi_pending: bool,
    /// The paravirtual kick, or an event, ended a HLT.
    pub unhalted: bool,
    /// VM time (host TSC) of the event that wakes a halted vCPU.
    pub wake_tsc: u64,
    /// What the VMM has to do before the vCPU goes on.
    pub user_exit: Option<UserExit>,
    /// Device loads that the instruction being emulated has got so far.
    pub device_reads: Vec<DeviceAccess>,
    /// Device stores that the VMM still has to be told of.
    pub device_writes: std::collections::VecDeque<DeviceAccess>,
    /// An instruction is being emulated and waits for a device load.
    pub emulating: bool,
    /// The VMM has set registers with PAE paging: the PDPTE registers are loaded from memory before the vCPU runs.
    pub(crate) pdptes_in_memory: bool,
    pub(crate) launched: bool,
    pub(crate) window_requested: bool,
}
