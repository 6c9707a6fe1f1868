//! KVM's paravirtual services ("KVM-specific MSRs", "KVM CPUID bits", "Linux KVM Hypercall" in the kernel's
//! documentation).

pub mod hypercall;
mod kvmclock;
mod pv_eoi;
mod steal_time;

pub(crate) use steal_time::OnProcessor;

/// MSR numbers.
pub mod number {
    pub const WALL_CLOCK: u32 = 0x11;
    pub const SYSTEM_TIME: u32 = 0x12;
    pub const WALL_CLOCK_NEW: u32 = 0x4b56_4d00;
    pub const SYSTEM_TIME_NEW: u32 = 0x4b56_4d01;
    pub const STEAL_TIME: u32 = 0x4b56_4d03;
    pub const PV_EOI_EN: u32 = 0x4b56_4d04;
    pub const POLL_CONTROL: u32 = 0x4b56_4d05;
}

/// Feature bits of CPUID leaf 0x4000_0001 EAX.
pub mod feature {
    pub const CLOCKSOURCE: u32 = 1 << 0;
    pub const NOP_IO_DELAY: u32 = 1 << 1;
    pub const CLOCKSOURCE2: u32 = 1 << 3;
    pub const STEAL_TIME: u32 = 1 << 5;
    pub const PV_EOI: u32 = 1 << 6;
    pub const PV_UNHALT: u32 = 1 << 7;
    pub const POLL_CONTROL: u32 = 1 << 12;
    pub const PV_SEND_IPI: u32 = 1 << 11;
    pub const PV_SCHED_YIELD: u32 = 1 << 13;
    pub const CLOCKSOURCE_STABLE: u32 = 1 << 24;
    /// What is offered.
    pub const ALL: u32 = CLOCKSOURCE
        | NOP_IO_DELAY
        | CLOCKSOURCE2
        | STEAL_TIME
        | PV_EOI
        | PV_UNHALT
        | POLL_CONTROL
        | PV_SEND_IPI
        | PV_SCHED_YIELD
        | CLOCKSOURCE_STABLE;
}

/// A vCPU's paravirtual state: the values of its MSRs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Paravirtual {
    pub wall_clock: u64,
    pub system_time: u64,
    pub steal_time: u64,
    pub pv_eoi: u64,
    /// Whether the host may poll before it halts; kept, as the guest reads it back.
    pub poll_control: u64,
    /// Nanoseconds for which the vCPU was runnable and did not run.
    pub steal_ns: u64,
}

impl Default for Paravirtual {
    fn default() -> Self {
        Self { wall_clock: 0, system_time: 0, steal_time: 0, pv_eoi: 0, poll_control: 1, steal_ns: 0 }
    }
}
