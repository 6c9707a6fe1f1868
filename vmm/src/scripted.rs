//! A hypervisor that plays back what a guest would do: for tests of the machine without a processor.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use kvm_bindings::{kvm_regs, kvm_sregs};

use crate::memory::{GuestRam, GuestRom};
use crate::report::Counts;
use crate::trace::TraceRecord;
use crate::vm::{Kicker, LineLevel, MachineVm, TraceSink, VcpuExit, VmError};

/// One thing that the guest does.
#[derive(Clone, Debug)]
pub enum Act {
    In(u16, usize),
    Out(u16, Vec<u8>),
    Load(u64, usize),
    Store(u64, Vec<u8>),
    TripleFault,
    Deadlock,
    Internal(&'static str),
    /// Time passes with nothing for the monitor to do.
    Sleep(u64),
}

/// The scripted VM, with a record of what the monitor did.
pub struct Scripted {
    acts: VecDeque<Act>,
    data: Vec<u8>,
    /// What the last read returned is moved here.
    pub answers: Vec<Vec<u8>>,
    pub lines: Vec<(u32, LineLevel)>,
    pub written: Vec<(u64, u64)>,
    pub vcpus: Vec<(kvm_regs, kvm_sregs)>,
    pub wakeup: Option<u64>,
    pub now_ns: u64,
    pub ram: Option<GuestRam>,
    pub rom: Option<GuestRom>,
    pending_read: bool,
    kicker: Kicker,
    sink: Option<TraceSink>,
}

impl Scripted {
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: acts.into_iter().collect(),
            data: vec![],
            answers: vec![],
            lines: vec![],
            written: vec![],
            vcpus: vec![],
            wakeup: None,
            now_ns: 0,
            ram: None,
            rom: None,
            pending_read: false,
            kicker: Kicker::new(),
            sink: None,
        }
    }
}

impl MachineVm for Scripted {
    fn map_memory(&mut self, ram: &GuestRam) -> Result<(), VmError> {
        self.ram = Some(ram.clone());
        Ok(())
    }

    fn map_rom(&mut self, rom: &GuestRom) -> Result<(), VmError> {
        self.rom = Some(rom.clone());
        Ok(())
    }

    fn add_vcpu(&mut self, _: u32) -> Result<usize, VmError> {
        self.vcpus.push(Default::default());
        Ok(self.vcpus.len() - 1)
    }

    fn regs(&self, vcpu: usize) -> Result<kvm_regs, VmError> {
        Ok(self.vcpus[vcpu].0)
    }

    fn set_regs(&mut self, vcpu: usize, regs: &kvm_regs) -> Result<(), VmError> {
        self.vcpus[vcpu].0 = *regs;
        Ok(())
    }

    fn sregs(&self, vcpu: usize) -> Result<kvm_sregs, VmError> {
        Ok(self.vcpus[vcpu].1)
    }

    fn set_sregs(&mut self, vcpu: usize, sregs: &kvm_sregs) -> Result<(), VmError> {
        self.vcpus[vcpu].1 = *sregs;
        Ok(())
    }

    fn code_at_rip(&mut self, _: usize) -> Vec<u8> {
        vec![0x0f, 0x0b]
    }
    fn set_irq_line(&mut self, gsi: u32, level: LineLevel) -> Result<(), VmError> {
        self.lines.push((gsi, level));
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn wall_clock_ns(&self) -> u64 {
        1_577_836_800_000_000_000 + self.now_ns
    }

    fn memory_written(&mut self, gpa: u64, len: u64) {
        self.written.push((gpa, len));
    }

    fn kicker(&self) -> Kicker {
        self.kicker.clone()
    }

    fn set_wakeup(&mut self, at_ns: Option<u64>) {
        self.wakeup = at_ns;
    }

    fn run(&mut self) -> Result<(usize, VcpuExit<'_>), VmError> {
        if std::mem::take(&mut self.pending_read) {
            self.answers.push(self.data.clone());
        }
        if self.kicker.take() {
            return Ok((0, VcpuExit::Interrupted));
        }
        self.now_ns += 1000;
        let Some(act) = self.acts.pop_front() else { return Ok((0, VcpuExit::Deadlock)) };
        if let Some(sink) = &mut self.sink {
            sink(&TraceRecord {
                vcpu: 0,
                guest_time_ns: self.now_ns,
                reason: 30,
                reason_name: "IO_INSTRUCTION",
                qualification: 0,
                rip: 0,
            });
        }
        let exit = match act {
            Act::In(port, len) => {
                self.data = vec![0; len];
                self.pending_read = true;
                VcpuExit::IoIn(port, &mut self.data)
            }
            Act::Load(address, len) => {
                self.data = vec![0; len];
                self.pending_read = true;
                VcpuExit::MmioRead(address, &mut self.data)
            }
            Act::Out(port, bytes) => {
                self.data = bytes;
                VcpuExit::IoOut(port, &self.data)
            }
            Act::Store(address, bytes) => {
                self.data = bytes;
                VcpuExit::MmioWrite(address, &self.data)
            }
            Act::TripleFault => VcpuExit::Shutdown,
            Act::Deadlock => VcpuExit::Deadlock,
            Act::Internal(what) => VcpuExit::InternalError(what.into()),
            Act::Sleep(ns) => {
                let end = self.now_ns + ns;
                match self.wakeup {
                    Some(at) if at < end => {
                        self.acts.push_front(Act::Sleep(end - at.max(self.now_ns)));
                        self.now_ns = at.max(self.now_ns);
                    }
                    _ => self.now_ns = end,
                }
                VcpuExit::Interrupted
            }
        };
        Ok((0, exit))
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn state_hash(&self) -> u64 {
        0
    }

    fn set_trace(&mut self, sink: TraceSink) {
        self.sink = Some(sink);
    }
}

/// Where a serial port prints: its clones see the same bytes.
#[derive(Clone, Default)]
pub struct Screen(pub Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
