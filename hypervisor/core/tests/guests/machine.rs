//! A small machine for one case: memory, page tables, an IDT, and a log of what the guest did to devices.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use hypervisor::{MemoryFlags, MpState, TimeMode, VcpuExit, Vm, VmConfig, kvm_regs, kvm_segment, kvm_sregs};

use crate::case::Case;
use crate::second_opinion;

/// Guest memory from 0.
pub const MEMORY: u64 = 8 << 20;
/// Descriptor tables, and where cases leave what they found: `u64` slots.
pub const GDT: u64 = 0x1000;
pub const IDT: u64 = 0x2000;
pub const RESULTS: u64 = 0x4000;
/// Exceptions that the guest took: a count, and from the 32nd byte on records of 32 bytes.
pub const FAULTS: u64 = 0x5000;
const TSS: u64 = 0x1800;
pub const PML4: u64 = 0x1_0000;
/// Page tables of [`Machine::map`].
pub const TABLES: u64 = 0x6_0000;
const STACKS: u64 = 0x4_0000;
pub const CODE: u64 = 0x10_0000;
/// Free memory from here to [`MEMORY`].
pub const HEAP: u64 = 0x20_0000;
/// Addresses without memory, mapped one to one.
pub const DEVICE: u64 = 0xe000_0000;

/// Port whose write ends a case, and the one that says that an exception was not expected.
pub const END_PORT: u16 = 0xf4;
pub const UNEXPECTED_PORT: u16 = 0xf5;

pub const CODE_64: u16 = 0x08;
pub const DATA: u16 = 0x10;
pub const USER_DATA: u16 = 0x1b;
pub const USER_CODE: u16 = 0x23;

const DESCRIPTORS: [u64; 7] = [
    0,
    0x00af_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x00cf_f300_0000_ffff,
    0x00af_fb00_0000_ffff,
    0x0000_8b00_1800_0067,
    0,
];

/// Host memory that is given back after the VM.
struct Memory {
    start: NonNull<u8>,
    host: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    fn new(len: u64) -> Self {
        // Aligned by hand: the allocator would touch all of an aligned allocation to zero it.
        let layout = Layout::from_size_align(len as usize + 4096, 16).expect("a small size");
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory for a guest");
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: the allocation is a page longer than what is used.
        let host = unsafe { start.add(start.align_offset(4096)) };
        Self { start, host, layout }
    }

    fn check(&self, at: u64, len: usize) {
        assert!(at as usize + len <= self.layout.size() - 4096, "{at:#x} is not guest memory");
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.check(at, bytes.len());
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: the range was checked; the VM does not run, and no reference to the memory exists.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.host.as_ptr().add(at as usize), bytes.len());
        }
    }

    fn read(&self, at: u64, bytes: &mut [u8]) {
        self.check(at, bytes.len());
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(self.host.as_ptr().add(at as usize), bytes.as_mut_ptr(), bytes.len());
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: allocated with this layout; the VM that used it is gone, as it is dropped first.
        unsafe {
            dealloc(self.start.as_ptr(), self.layout);
        }
    }
}

/// What the guest did to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
    Load,
    Store,
}

/// One access to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub direction: Direction,
    pub address: u64,
    pub data: Vec<u8>,
}

impl Access {
    pub fn value(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..self.data.len()].copy_from_slice(&self.data);
        u64::from_le_bytes(bytes)
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The guest wrote to [`END_PORT`].
    Done,
    Shutdown,
    Deadlock,
    /// By the kicker, or by the time that the case asked for.
    Interrupted,
    InternalError(String),
}

/// An exception that the guest took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub cr2: u64,
}

pub struct Machine {
    pub vm: Vm,
    /// Device accesses, in order.
    pub log: Vec<Access>,
    memory: Memory,
    extra: Vec<Memory>,
    next_table: u64,
    pub case: Case,
}

pub fn config() -> VmConfig {
    VmConfig {
        time: TimeMode::Virtual,
        seed: 1,
        wall_clock_ns: 1_700_000_000_123_456_789,
        cpu: hypervisor::cpu_models::DEFAULT.into(),
    }
}

fn segment(selector: u16, type_: u8, code: u8) -> kvm_segment {
    kvm_segment {
        limit: 0xffff_ffff,
        selector,
        type_,
        present: 1,
        db: 1 - code,
        s: 1,
        l: code,
        g: 1,
        ..kvm_segment::default()
    }
}

impl Machine {
    /// A machine with `vcpus` processors in 64-bit mode that execute `body`; what `body` marks with
    /// [`Case::start`] is where the others start, the rest of them waits for a start-up request.
    pub fn new(vcpus: usize, body: impl FnOnce(&mut Case)) -> Self {
        Self::with(config(), vcpus, body)
    }

    pub fn with(config: VmConfig, vcpus: usize, body: impl FnOnce(&mut Case)) -> Self {
        let mut vm = Vm::new(config).expect("the default model exists");
        let memory = Memory::new(MEMORY);
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: the memory is dropped after the VM.
        unsafe {
            vm.set_user_memory_region(0, 0, MEMORY, memory.host, MemoryFlags::ReadWrite).expect("a first slot");
        }
        for id in 0..vcpus {
            vm.add_vcpu(id as u32).expect("few vCPUs");
        }
        let case = Case::assemble(body);
        let mut m = Self { vm, log: Vec::new(), memory, extra: Vec::new(), next_table: TABLES, case };
        m.load_tables();
        let code = m.case.code.clone();
        m.write(CODE, &code);
        m.start(0, CODE);
        for (vcpu, at) in m.case.starts.clone() {
            m.start(vcpu, at);
        }
        m
    }

    fn load_tables(&mut self) {
        for (i, descriptor) in DESCRIPTORS.iter().enumerate() {
            self.write_u64(GDT + 8 * i as u64, *descriptor);
        }
        self.write_u64(TSS + 4, STACKS);
        for (vector, at) in self.case.gates.clone() {
            let low = at & 0xffff | u64::from(CODE_64) << 16 | 0x8e00 << 32 | (at >> 16 & 0xffff) << 48;
            self.write_u64(IDT + 16 * u64::from(vector), low);
        }
        // 4 GiB one to one, in pages of 2 MiB.
        self.write_u64(PML4, (PML4 + 0x1000) | 7);
        for gib in 0..4 {
            self.write_u64(PML4 + 0x1000 + 8 * gib, (PML4 + 0x2000 + 0x1000 * gib) | 3);
        }
        for page in 0..2048 {
            self.write_u64(PML4 + 0x2000 + 8 * page, page << 21 | 0x83);
        }
    }

    /// Puts a vCPU into 64-bit mode at `rip`, with a stack of its own.
    pub fn start(&mut self, vcpu: usize, rip: u64) {
        let resume = self.case.unexpected;
        let v = self.vm.vcpu_mut(vcpu);
        let mut s: kvm_sregs = v.sregs();
        s.cs = segment(CODE_64, 11, 1);
        for data in [&mut s.ds, &mut s.es, &mut s.fs, &mut s.gs, &mut s.ss] {
            *data = segment(DATA, 3, 0);
        }
        s.tr = kvm_segment { base: TSS, limit: 0x67, selector: 0x28, type_: 11, present: 1, ..kvm_segment::default() };
        (s.gdt.base, s.gdt.limit) = (GDT, 0x37);
        (s.idt.base, s.idt.limit) = (IDT, 0xfff);
        s.cr0 = 0x8001_0033;
        s.cr3 = PML4;
        s.cr4 = 0x620;
        s.efer = 0xd01;
        v.set_sregs(&s);
        v.set_regs(&kvm_regs {
            rip,
            rsp: STACKS + 0x4000 * (vcpu as u64 + 1),
            rflags: 2,
            r15: resume,
            ..kvm_regs::default()
        });
        v.mp_state = MpState::Runnable;
    }

    /// A further slot of memory.
    pub fn add_memory(&mut self, guest: u64, len: u64, flags: MemoryFlags) {
        let memory = Memory::new(len);
        let slot = 1 + self.extra.len() as u32;
        #[expect(unsafe_code, reason = "guest memory is host memory")]
        // SAFETY: the memory is dropped after the VM.
        unsafe {
            self.vm.set_user_memory_region(slot, guest, len, memory.host, flags).expect("a slot of its own");
        }
        self.extra.push(memory);
    }

    /// Writes to the memory of [`Machine::add_memory`], by the order in which it was added.
    pub fn write_extra(&mut self, index: usize, offset: u64, bytes: &[u8]) {
        self.extra[index].write(offset, bytes);
    }

    /// Maps a page of 4 KiB at a linear address outside of the first 4 GiB.
    pub fn map(&mut self, linear: u64, physical: u64, flags: u64) {
        let entry = self.entry(linear, 0);
        self.write_u64(entry, physical | flags);
    }

    /// Maps a page of 2 MiB likewise.
    pub fn map_large(&mut self, linear: u64, physical: u64, flags: u64) {
        let entry = self.entry(linear, 1);
        self.write_u64(entry, physical | flags | 0x80);
    }

    /// Guest-physical address of the entry for `linear` at `level` (0: page table); tables are made on the way.
    pub fn entry(&mut self, linear: u64, level: u32) -> u64 {
        let mut table = PML4;
        for l in (level + 1..4).rev() {
            let at = table + (linear >> (12 + 9 * l) & 0x1ff) * 8;
            let entry = self.read_u64(at);
            table = if entry & 1 == 0 {
                let new = self.next_table;
                self.next_table += 0x1000;
                assert!(new < CODE, "no room for page tables");
                self.write_u64(at, new | 7);
                new
            } else {
                assert_eq!(entry & 0x80, 0, "{linear:#x} is in a large page");
                entry & 0x000f_ffff_ffff_f000
            };
        }
        table + (linear >> (12 + 9 * level) & 0x1ff) * 8
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        self.memory.write(at, bytes);
        self.vm.memory_written(at, bytes.len() as u64);
    }

    pub fn write_u64(&mut self, at: u64, value: u64) {
        self.write(at, &value.to_le_bytes());
    }

    pub fn read<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(at, &mut bytes);
        bytes
    }

    pub fn read_u64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.read(at))
    }

    /// What the case left in a slot.
    pub fn result(&self, slot: u64) -> u64 {
        self.read_u64(RESULTS + 8 * slot)
    }

    pub fn results<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|i| self.result(i as u64))
    }

    pub fn faults(&self) -> Vec<Fault> {
        (0..self.read_u64(FAULTS))
            .map(|i| {
                let field = |n: u64| self.read_u64(FAULTS + 32 + 32 * i + 8 * n);
                Fault { vector: field(0), error: field(1), rip: field(2), cr2: field(3) }
            })
            .collect()
    }

    /// Runs until the case ends; devices read as zero.
    pub fn run(&mut self) -> Ending {
        self.run_with(|_| {})
    }

    /// Runs until the case ends; `device` fills in what the guest reads.
    pub fn run_with(&mut self, device: impl FnMut(&mut Access)) -> Ending {
        let asked =
            second_opinion::wanted().filter(|_| self.is_simple()).map(|file| (file, Arc::new(self.start_state())));
        let ending = self.run_modelled(device);
        if let (Some((file, start)), Ending::Done) = (asked, &ending) {
            second_opinion::compare(&file, &start, &self.log, &self.all_memory());
        }
        ending
    }

    /// Whether the state of the machine is that of its first slot of memory and its only vCPU, which has not run yet.
    fn is_simple(&self) -> bool {
        self.vm.vcpus() == 1 && self.extra.is_empty() && self.log.is_empty() && self.vm.now_ns() == 0
    }

    fn all_memory(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY as usize];
        self.memory.read(0, &mut bytes);
        bytes
    }

    fn start_state(&self) -> second_opinion::Start {
        let vcpu = self.vm.vcpu(0);
        second_opinion::Start { memory: self.all_memory(), regs: vcpu.regs(), sregs: vcpu.sregs() }
    }

    fn run_modelled(&mut self, mut device: impl FnMut(&mut Access)) -> Ending {
        loop {
            let (_, exit) = self.vm.run().unwrap_or_else(|e| panic!("{e}"));
            let (direction, address, data) = match exit {
                VcpuExit::IoOut(END_PORT, _) => return Ending::Done,
                VcpuExit::IoOut(UNEXPECTED_PORT, _) => panic!("unexpected exceptions: {:x?}", self.faults()),
                VcpuExit::IoIn(port, data) => (Direction::In, u64::from(port), data),
                VcpuExit::MmioRead(at, data) => (Direction::Load, at, data),
                VcpuExit::IoOut(port, data) => {
                    self.log.push(Access { direction: Direction::Out, address: port.into(), data: data.to_vec() });
                    continue;
                }
                VcpuExit::MmioWrite(address, data) => {
                    self.log.push(Access { direction: Direction::Store, address, data: data.to_vec() });
                    continue;
                }
                VcpuExit::Shutdown => return Ending::Shutdown,
                VcpuExit::Deadlock => return Ending::Deadlock,
                VcpuExit::Interrupted => return Ending::Interrupted,
                VcpuExit::InternalError(why) => return Ending::InternalError(why),
            };
            let mut access = Access { direction, address, data: data.to_vec() };
            device(&mut access);
            data.copy_from_slice(&access.data);
            self.log.push(access);
        }
    }

    /// Runs a case that has to reach its end within 50 ms of its own time.
    pub fn finish(&mut self) {
        self.finish_with(|_| {});
    }

    pub fn finish_with(&mut self, device: impl FnMut(&mut Access)) {
        let limit = self.vm.now_ns() + 50_000_000;
        self.vm.set_wakeup(Some(limit));
        let ending = self.run_with(device);
        if ending != Ending::Done {
            let core = &self.vm.vcpu(0).processor.core;
            panic!("the case ended with {ending:?} at {core:?}, exceptions {:x?}", self.faults());
        }
        self.vm.set_wakeup(None);
    }
}

/// A machine with one vCPU whose case has come to its end.
pub fn finished(body: impl FnOnce(&mut Case)) -> Machine {
    let mut m = Machine::new(1, body);
    m.finish();
    m
}
