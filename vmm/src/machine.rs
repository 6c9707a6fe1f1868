//! The machine: RAM, devices and a VM, put together and run.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::acpi::{self, Keyboard, Platform, VirtioWindow};
use crate::boot::{self, BootError, BootSource, Loaded};
use crate::devices::virtio::{Block, DirtyRanges, MmioTransport};
use crate::devices::{
    Bus, BusError, COM1, Clock, Com1, DEBUG_EXIT_PORT, DebugExit, I8042, IrqLines, NoPci, PCI_CONFIG, PCI_CONFIG_PORTS,
    PowerRequest, PowerSwitch, RTC_PORT, Rtc, SleepControl, SystemController, VIRTIO_FIRST_GSI, VIRTIO_MAX,
};
use crate::memory::{GuestRam, MemoryError, VIRTIO_MMIO_SIZE, VIRTIO_MMIO_START};
use crate::vm::{MachineVm, VcpuExit, VmError};

/// Most processors.
pub const MAX_CPUS: u8 = 16;

/// Why a machine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("{0} vCPUs are not possible; the machine takes 1 to {MAX_CPUS} (--cpus)")]
    Cpus(u8),
    #[error("{0} disks are too many; the machine takes up to {VIRTIO_MAX} (--disk)")]
    Disks(usize),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error(transparent)]
    Vm(#[from] VmError),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The guest powered the machine off.
    PowerOff,
    /// The guest asked for a reset.
    Reset,
    /// The guest wrote this code to the debug exit port.
    DebugExit(u32),
    /// A fault while handling a double fault: the processor shut down.
    TripleFault { vcpu: usize, rip: u64, cr2: u64, cr3: u64, code: Vec<u8> },
    /// All processors halted with nothing to wake them.
    Deadlock { vcpu: usize, rip: u64 },
    /// The modelled machine met something that it does not know.
    InternalError { vcpu: usize, what: String },
}

impl Ending {
    /// Exit status of the program. Odd ones belong to the guest's debug exit.
    pub fn exit_code(&self) -> u8 {
        match self {
            Ending::PowerOff => 0,
            // As on other machines: the low byte of `(code << 1) | 1`.
            Ending::DebugExit(code) => (code << 1 | 1) as u8,
            Ending::Reset => 6,
            Ending::TripleFault { .. } => 8,
            Ending::Deadlock { .. } => 10,
            Ending::InternalError { .. } => 12,
        }
    }
}

/// The instruction bytes, for a message.
fn code_text(code: &[u8]) -> String {
    if code.is_empty() {
        return "no code can be fetched there".into();
    }
    let bytes: Vec<String> = code.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("code bytes {}", bytes.join(" "))
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::PowerOff => write!(f, "the guest powered off"),
            Ending::Reset => write!(f, "the guest asked for a reset; start it again if that was meant"),
            Ending::DebugExit(code) => {
                write!(
                    f,
                    "the guest left through port {DEBUG_EXIT_PORT:#x} with code {code:#x} (exit status {})",
                    self.exit_code()
                )
            }
            Ending::TripleFault { vcpu, rip, cr2, cr3, code } => write!(
                f,
                "triple fault on vCPU {vcpu} at RIP {rip:#x} ({}; CR2 {cr2:#x}, CR3 {cr3:#x}): the guest had no working \
                 handler for an exception there, nor for the double fault that follows. Most often the IDT, the stack or \
                 the page tables are broken, or execution went astray; --trace FILE shows what came before",
                code_text(code)
            ),
            Ending::Deadlock { vcpu, rip } => write!(
                f,
                "all vCPUs are halted with interrupts off, and nothing can wake them (vCPU {vcpu} at RIP {rip:#x}); \
                 a kernel does that after a panic: look at its last messages"
            ),
            Ending::InternalError { vcpu, what } => write!(
                f,
                "the modelled machine cannot go on (vCPU {vcpu}): {what}; --trace FILE shows what came before"
            ),
        }
    }
}

/// What one turn of [`Machine::step`] brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A device was served.
    Served,
    /// The kicker was set, or a device timer is due.
    Interrupted,
    Ended(Ending),
}

/// RAM, devices and a VM.
pub struct Machine<V> {
    vm: V,
    ram: GuestRam,
    bus: Bus,
    lines: IrqLines,
    dirty: DirtyRanges,
    clock: Clock,
    switch: PowerSwitch,
    com1: Arc<Mutex<Com1>>,
    rtc: Arc<Mutex<Rtc>>,
    wakeup: Option<u64>,
    platform: Platform,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: MachineVm> Machine<V> {
    /// Puts a machine together: `cpus` processors, one virtio block device per disk, COM1 to `serial_out`.
    pub fn new(
        vm: V,
        memory_bytes: u64,
        cpus: u8,
        disks: Vec<Block>,
        serial_out: Box<dyn Write + Send>,
    ) -> Result<Self, MachineError> {
        Self::assemble(vm, memory_bytes, cpus, disks, serial_out, |bus, _, switch| {
            let system = Arc::new(Mutex::new(SystemController::new(switch.clone())));
            bus.add_ports(I8042, 1, &system)?;
            bus.add_ports(I8042 + 4, 1, &system)?;
            bus.add_ports(PCI_CONFIG, PCI_CONFIG_PORTS, &Arc::new(Mutex::new(NoPci::new(switch.clone()))))
        })
    }

    /// Puts a machine together that starts with firmware, at the reset vector: as [`Machine::new`], with a chipset.
    pub fn with_firmware(
        vm: V,
        memory_bytes: u64,
        cpus: u8,
        disks: Vec<Block>,
        serial_out: Box<dyn Write + Send>,
        firmware: FirmwareSource<'_>,
    ) -> Result<Self, MachineError> {
        let FirmwareSource { path, image, menu_wait_ms, debug_console } = firmware;
        let mut machine = Self::assemble(vm, memory_bytes, cpus, disks, serial_out, |bus, lines, switch| {
            pc::add_chipset(bus, lines, switch, debug_console)
        })?;
        let rom = boot::firmware::place(&machine.ram, path, image)?;
        machine.vm.map_rom(&rom)?;
        lock(&machine.rtc).preset(&pc::cmos(&machine.ram, cpus));
        machine.platform.keyboard = Keyboard::Present;
        let config = pc::firmware_config(&machine.ram, &machine.platform, menu_wait_ms);
        let (base, count) = pc::FW_CFG_PORTS;
        machine.bus.add_ports(base, count, &Arc::new(Mutex::new(config)))?;
        Ok(machine)
    }

    fn assemble(
        mut vm: V,
        memory_bytes: u64,
        cpus: u8,
        disks: Vec<Block>,
        serial_out: Box<dyn Write + Send>,
        chipset: impl FnOnce(&mut Bus, &IrqLines, &PowerSwitch) -> Result<(), BusError>,
    ) -> Result<Self, MachineError> {
        if cpus == 0 || cpus > MAX_CPUS {
            return Err(MachineError::Cpus(cpus));
        }
        if disks.len() > VIRTIO_MAX {
            return Err(MachineError::Disks(disks.len()));
        }
        let ram = GuestRam::new(memory_bytes)?;
        vm.map_memory(&ram)?;
        for cpu in 0..cpus {
            vm.add_vcpu(cpu.into())?;
        }
        let (lines, dirty, clock, switch) =
            (IrqLines::default(), DirtyRanges::default(), Clock::default(), PowerSwitch::default());
        clock.set(vm.now_ns(), vm.wall_clock_ns());

        let mut bus = Bus::default();
        let com1 = Arc::new(Mutex::new(Com1::new(&lines, serial_out)));
        bus.add_ports(COM1, 8, &com1)?;
        let rtc = Arc::new(Mutex::new(Rtc::new(clock.clone(), lines.clone())));
        bus.add_ports(RTC_PORT, 2, &rtc)?;
        chipset(&mut bus, &lines, &switch)?;
        bus.add_ports(acpi::PM1A_EVENT, 6, &Arc::new(Mutex::new(SleepControl::new(switch.clone()))))?;
        bus.add_ports(DEBUG_EXIT_PORT, 4, &Arc::new(Mutex::new(DebugExit::new(switch.clone()))))?;
        bus.add_ports(crate::devices::POST_PORT, 1, &Arc::new(Mutex::new(crate::devices::PostPort)))?;
        let mut windows = Vec::new();
        for (index, block) in disks.into_iter().enumerate() {
            let base = VIRTIO_MMIO_START + VIRTIO_MMIO_SIZE * index as u64;
            let gsi = VIRTIO_FIRST_GSI + index as u32;
            let device = MmioTransport::new(block, &ram, lines.clone(), gsi, dirty.clone());
            bus.add_memory(base, VIRTIO_MMIO_SIZE, &Arc::new(Mutex::new(device)))?;
            windows.push(VirtioWindow { base: base as u32, size: VIRTIO_MMIO_SIZE as u32, gsi });
        }
        let platform = Platform { cpus, virtio: windows, keyboard: Keyboard::Absent };
        Ok(Self { vm, ram, bus, lines, dirty, clock, switch, com1, rtc, wakeup: None, platform })
    }

    /// Writes the firmware tables, loads a kernel, and sets the bootstrap processor to its entry.
    pub fn boot(&mut self, source: &BootSource<'_>) -> Result<Loaded, MachineError> {
        let rsdp = acpi::write_tables(&self.ram, &self.platform)?;
        let loaded = boot::load(&self.ram, &BootSource { rsdp, ..*source })?;
        loaded.entry.apply(&mut self.vm)?;
        Ok(loaded)
    }

    /// Runs until something needs attention, and serves it.
    ///
    /// Devices see the VM's time as of the end of the exit before: a guest that selects an RTC register and reads it
    /// gets the time of the selection.
    pub fn step(&mut self) -> Result<Step, VmError> {
        let wakeup = lock(&self.rtc).next_event_ns();
        if wakeup != self.wakeup {
            self.vm.set_wakeup(wakeup);
            self.wakeup = wakeup;
        }
        let (vcpu, exit) = self.vm.run()?;
        let step = match exit {
            VcpuExit::IoIn(port, data) => {
                self.bus.read_port(port, data);
                Step::Served
            }
            VcpuExit::IoOut(port, data) => {
                self.bus.write_port(port, data);
                Step::Served
            }
            VcpuExit::MmioRead(address, data) => {
                self.bus.read_memory(address, data);
                Step::Served
            }
            VcpuExit::MmioWrite(address, data) => {
                self.bus.write_memory(address, data);
                Step::Served
            }
            VcpuExit::Interrupted => Step::Interrupted,
            VcpuExit::Shutdown => {
                let (regs, sregs) = (self.vm.regs(vcpu)?, self.vm.sregs(vcpu)?);
                let code = self.vm.code_at_rip(vcpu);
                Step::Ended(Ending::TripleFault { vcpu, rip: regs.rip, cr2: sregs.cr2, cr3: sregs.cr3, code })
            }
            VcpuExit::Deadlock => {
                let rip = self.vm.regs(vcpu)?.rip;
                Step::Ended(Ending::Deadlock { vcpu, rip })
            }
            VcpuExit::InternalError(what) => Step::Ended(Ending::InternalError { vcpu, what }),
        };
        self.settle()?;
        Ok(match self.switch.requested() {
            Some(PowerRequest::Off) => Step::Ended(Ending::PowerOff),
            Some(PowerRequest::Reset) => Step::Ended(Ending::Reset),
            Some(PowerRequest::Exit(code)) => Step::Ended(Ending::DebugExit(code)),
            None => step,
        })
    }

    /// Hands on to the VM what devices did: memory written, lines changed; and brings their clock up to date.
    fn settle(&mut self) -> Result<(), VmError> {
        self.clock.set(self.vm.now_ns(), self.vm.wall_clock_ns());
        lock(&self.rtc).poll();
        for (start, len) in self.dirty.take() {
            self.vm.memory_written(start, len);
        }
        for event in self.lines.take() {
            self.vm.set_irq_line(event.gsi, event.level)?;
        }
        Ok(())
    }

    /// Bytes typed at the terminal.
    pub fn type_in(&mut self, bytes: &[u8]) -> Result<(), VmError> {
        lock(&self.com1).receive(bytes);
        self.settle()
    }

    pub fn vm(&self) -> &V {
        &self.vm
    }

    pub fn vm_mut(&mut self) -> &mut V {
        &mut self.vm
    }

    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    pub fn ram(&self) -> &GuestRam {
        &self.ram
    }
}

mod pc;
#[cfg(test)]
mod tests;

pub use pc::{DEFAULT_MENU_WAIT_MS, FirmwareSource};
