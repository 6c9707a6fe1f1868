//! A virtual machine.

mod hash;
mod schedule;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use host::{HostOscillator, Kicker};
use irqchip::{Irqchip, IrqchipConfig, Level};
use silicon_memory::PhysicalMemory;
use silicon_x86::core::{Clock, Random};
use silicon_x86::model::Model;

use crate::config::{Slices, TimeMode, VmConfig};
use crate::error::{Error, MOST_VCPUS};
use crate::exit::{Shared, UserExit};
use crate::memory::{Ept, GuestMemory, MemoryFlags, Pool, Slots};
use crate::notice::{Notice, Notices};
use crate::statistics::Statistics;
use crate::time::VmClock;
use crate::trace::Trace;
use crate::vcpu::Vcpu;

/// Default port of the ACPI power-management timer.
pub const PM_TIMER_PORT: u16 = 0x608;

/// Why [`Vm::run`] came back to the VMM: KVM's `KVM_EXIT_*`.
#[derive(Debug, PartialEq, Eq)]
pub enum VcpuExit<'a> {
    /// The guest reads a port: fill in the bytes.
    IoIn(u16, &'a mut [u8]),
    IoOut(u16, &'a [u8]),
    MmioRead(u64, &'a mut [u8]),
    MmioWrite(u64, &'a [u8]),
    /// Triple fault.
    Shutdown,
    /// All vCPUs halted with interrupts off and nothing can ever wake them.
    Deadlock,
    /// The kicker was set, or the time of [`Vm::set_wakeup`] has come.
    Interrupted,
    /// The machine met something it cannot go on from: what and where, for the user.
    InternalError(String),
}

/// A virtual machine with its vCPUs, which all run in a fixed order on the calling thread.
pub struct Vm {
    config: VmConfig,
    machine: Arc<PhysicalMemory>,
    model: Arc<Model>,
    clock: Clock,
    shared: Shared,
    vcpus: Vec<Vcpu>,
    pages: crate::vcpu::Pages,
    kicker: Kicker,
    /// VM time at which [`Vm::run`] comes back, for the VMM's timers.
    wakeup_ns: Option<u64>,
    /// The vCPU that the VMM was last told of.
    current: usize,
    /// Host TSC up to which the machine has been run.
    now_tsc: u64,
    trace: Option<Trace>,
    slices: Slices,
    notices: Notices,
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vm").field("config", &self.config).field("vcpus", &self.vcpus.len()).finish_non_exhaustive()
    }
}

impl Vm {
    /// A machine without memory and vCPUs.
    ///
    /// # Errors
    /// An unknown CPU model or feature; no host memory.
    pub fn new(config: VmConfig) -> Result<Self, Error> {
        let model = Arc::new(Model::parse(&config.cpu).map_err(|e| Error::Model(e.to_string()))?);
        let machine = Arc::new(PhysicalMemory::new());
        let mut pool = Pool::new(&machine)?;
        let khz = u64::from(model.tsc_khz);
        let clock = match config.time {
            TimeMode::Virtual => Clock::Virtual { latest: Arc::new(AtomicU64::new(0)) },
            TimeMode::Real => Clock::Real(Arc::new(HostOscillator::new(khz))),
        };
        let wall_clock_ns = match config.time {
            TimeMode::Virtual => config.wall_clock_ns,
            TimeMode::Real => host::wall_clock_ns(),
        };
        let ept = Ept::new(&mut pool);
        let msr_bitmap = pool.page();
        crate::vcpu::fill_msr_bitmap(&machine, msr_bitmap);
        let shared = Shared {
            memory: GuestMemory { machine: Arc::clone(&machine), slots: Slots::default() },
            ept,
            pool,
            irqchip: Irqchip::new(IrqchipConfig::default()),
            clock: VmClock { base: 0, khz, wall_clock_ns },
            vcpus: 0,
            pm_timer_port: PM_TIMER_PORT,
        };
        Ok(Self {
            config,
            machine,
            model,
            clock,
            shared,
            vcpus: Vec::new(),
            pages: crate::vcpu::Pages { msr_bitmap },
            kicker: Kicker::new(),
            wakeup_ns: None,
            current: 0,
            now_tsc: 0,
            trace: None,
            slices: Slices::default(),
            notices: Notices::default(),
        })
    }

    /// Makes the VMM's memory guest memory.
    ///
    /// # Safety
    /// `host` must stay mapped, readable and writable for `len` bytes as long as the VM lives.
    ///
    /// # Errors
    /// Overlapping or unaligned slots.
    #[expect(unsafe_code, reason = "the VMM's own memory becomes guest memory, as with KVM_SET_USER_MEMORY_REGION")]
    pub unsafe fn set_user_memory_region(
        &mut self,
        slot: u32,
        guest: u64,
        len: u64,
        host: NonNull<u8>,
        flags: MemoryFlags,
    ) -> Result<(), Error> {
        // SAFETY: passed on from the caller.
        unsafe { self.shared.memory.slots.add(&self.machine, slot, guest, len, host, flags)? };
        Ok(())
    }

    /// Adds a vCPU; the first is the bootstrap processor. Gives its index.
    ///
    /// # Errors
    /// There are [`MOST_VCPUS`] already.
    pub fn add_vcpu(&mut self, apic_id: u32) -> Result<usize, Error> {
        if self.vcpus.len() == MOST_VCPUS {
            return Err(Error::TooManyVcpus);
        }
        let index = self.shared.irqchip.add_vcpu(apic_id);
        self.shared.vcpus = index + 1;
        let eptp = self.shared.ept.pointer();
        let mut vcpu = Vcpu::new(index, apic_id, &self.machine, &self.model, self.clock.clone(), eptp, self.pages);
        vcpu.processor.core.rng = Random::new(self.config.seed ^ (index as u64) << 32);
        // All vCPUs share one TSC: a vCPU made later reads what the first does.
        if let Some(first) = self.vcpus.first() {
            let offset = first.tsc_offset;
            vcpu.set_tsc_offset(offset);
        }
        self.vcpus.push(vcpu);
        match self.vcpus.as_mut_slice() {
            [] | [_] => {}
            [first, second] => {
                first.exit_on_pause_loops();
                second.exit_on_pause_loops();
            }
            [.., last] => last.exit_on_pause_loops(),
        }
        Ok(index)
    }

    /// A vCPU.
    ///
    /// # Panics
    /// When there is none with this index.
    #[must_use]
    pub fn vcpu(&self, index: usize) -> &Vcpu {
        &self.vcpus[index]
    }

    /// A vCPU, to set its registers.
    ///
    /// # Panics
    /// When there is none with this index.
    pub fn vcpu_mut(&mut self, index: usize) -> &mut Vcpu {
        &mut self.vcpus[index]
    }

    /// The bytes of code at a vCPU's RIP, up to the longest instruction, for messages; fewer where they cannot be fetched.
    ///
    /// # Panics
    /// When there is no vCPU with this index.
    pub fn code_at_rip(&mut self, index: usize) -> Vec<u8> {
        self.vcpus[index].processor.peek_code(15)
    }

    /// Number of vCPUs.
    #[must_use]
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// Sets the level of an interrupt line (`KVM_IRQ_LINE`). Lines that do not exist are ignored.
    pub fn set_irq_line(&mut self, gsi: u32, level: Level) {
        let _ = self.shared.irqchip.set_irq_line(gsi, level);
        self.deliver_signals(self.now_tsc);
    }

    /// Sends a message-signalled interrupt (`KVM_SIGNAL_MSI`).
    pub fn signal_msi(&mut self, msi: irqchip::Msi) {
        let _ = self.shared.irqchip.send_msi(msi);
        self.deliver_signals(self.now_tsc);
    }

    /// VM time: nanoseconds since the machine was made.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.shared.clock.vm_ns(self.time_tsc())
    }

    /// Wall clock of the machine: nanoseconds since 1970.
    #[must_use]
    pub fn wall_clock_ns(&self) -> u64 {
        self.shared.clock.wall_clock_ns + self.now_ns()
    }

    /// Tells the processors that the VMM changed guest memory directly: decoded code from there is void.
    pub fn memory_written(&mut self, guest: u64, len: u64) {
        self.shared.memory.written(guest, len);
    }

    /// Ends [`Vm::run`] from elsewhere.
    #[must_use]
    pub fn kicker(&self) -> Kicker {
        self.kicker.clone()
    }

    /// Asks [`Vm::run`] to come back when VM time reaches `ns`.
    pub fn set_wakeup(&mut self, ns: Option<u64>) {
        self.wakeup_ns = ns;
    }

    /// What the guest has asked for since the last call that is not modelled. Each thing comes up once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }

    /// Changes how long vCPUs run at a time.
    pub fn set_slices(&mut self, slices: Slices) {
        self.slices = slices;
    }

    /// Takes exits as they happen.
    pub fn set_trace(&mut self, trace: Trace) {
        self.trace = Some(trace);
    }

    /// Model of the CPU.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// All counts up to now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let vcpus = self.vcpus.iter().map(|v| {
            let core = &v.processor.core;
            let mut s = v.statistics.clone();
            s.instructions = core.count.instructions;
            s.cycles = (core.now_quarter_cycles() / 4).saturating_sub(s.halted_cycles);
            s.tlb = core.mmu.count;
            s.blocks_decoded = core.count.blocks_decoded;
            s.code_invalidations = core.count.code_invalidations;
            s
        });
        Statistics { vcpus: vcpus.collect() }
    }

    fn time_tsc(&self) -> u64 {
        match &self.clock {
            Clock::Virtual { .. } => {
                let current = self.vcpus.get(self.current).map_or(0, |v| v.processor.core.now_quarter_cycles() / 4);
                current.max(self.now_tsc)
            }
            Clock::Real(oscillator) => oscillator.ticks(),
        }
    }

    /// The exit that a vCPU has for the VMM, over its own buffers.
    fn user_exit(&mut self, vcpu: usize) -> VcpuExit<'_> {
        match &mut self.vcpus[vcpu].user_exit {
            Some(UserExit::IoIn { port, data, len }) => VcpuExit::IoIn(*port, &mut data[..*len]),
            Some(UserExit::IoOut { port, data, len }) => VcpuExit::IoOut(*port, &data[..*len]),
            Some(UserExit::MmioRead { access, data }) => {
                VcpuExit::MmioRead(access.guest_physical, &mut data[..usize::from(access.bytes).min(8)])
            }
            Some(UserExit::MmioWrite { access, data }) => {
                VcpuExit::MmioWrite(access.guest_physical, &data[..usize::from(access.bytes).min(8)])
            }
            Some(UserExit::Shutdown) => VcpuExit::Shutdown,
            Some(UserExit::InternalError(why)) => VcpuExit::InternalError(why.clone()),
            None => VcpuExit::Interrupted,
        }
    }
}
