//! Cases in 32-bit protected mode, with user code, virtual-8086 mode, 16-bit code and real-address mode.
//!
//! The code is that of level 0 with flat segments. An exception is recorded, and execution goes on at level 0 behind
//! the [`Legacy::faulting`] or [`Legacy::user`] that it arose in, whatever mode that was in.

use std::ops::{Deref, DerefMut};

use hypervisor::{kvm_regs, kvm_segment, kvm_sregs};

use iced_x86::code_asm::*;
use iced_x86::{BlockEncoderOptions, Decoder, DecoderOptions};

use crate::machine::{END_PORT, FAULTS, GDT, IDT, Machine, RESULTS, UNEXPECTED_PORT};

/// Where the code is.
pub const CODE: u32 = 0x14_0000;
/// Free memory below 1 MiB for 16-bit code, and for tables.
pub const LOW: u32 = 0x8000;
/// The TSS of the case's own task, and its size; I/O permission bits follow from `TSS_MAP` on.
pub const TSS: u32 = 0x3000;
pub const TSS_MAP: u16 = 0x88;
const TSS_LIMIT: u16 = 0xfff;
/// Top of the stack of level 0 in the TSS, of the case, and of user code.
pub const RING0: u32 = 0x4_4000;
const STACK: u32 = 0x4_8000;
pub const USER_STACK: u32 = 0x4_c000;
/// Page directory of [`Legacy::paging`]: 4 MiB pages one to one.
pub const DIRECTORY: u32 = 0x6_0000;

const RESUME: u32 = 0x4f00;
const RESUME_ESP: u32 = 0x4f04;

pub const CODE_32: u16 = 0x08;
pub const DATA_32: u16 = 0x10;
pub const USER_CODE: u16 = 0x1b;
pub const USER_DATA: u16 = 0x23;
pub const TSS_SELECTOR: u16 = 0x28;
/// First selector that is a case's own.
pub const FREE: u16 = 0x40;

pub const FLAT_CODE: u64 = 0x00cf_9b00_0000_ffff;
pub const FLAT_DATA: u64 = 0x00cf_9300_0000_ffff;
/// DPL 3 of a descriptor.
pub const LEVEL_3: u64 = 3 << 45;

/// A descriptor of a segment or TSS with a limit in bytes; `rights` are bits 55:52 and 47:40 (as 0xfRR).
pub const fn descriptor(base: u32, limit: u32, rights: u64) -> u64 {
    let (base, limit) = (base as u64, limit as u64);
    limit & 0xffff
        | (base & 0xff_ffff) << 16
        | (rights & 0xff) << 40
        | (limit >> 16 & 0xf) << 48
        | (rights >> 8 & 0xf) << 52
        | (base >> 24) << 56
}

/// A gate descriptor: `rights` is byte 5, `count` byte 4.
pub const fn gate(selector: u16, offset: u32, rights: u64, count: u64) -> u64 {
    let offset = offset as u64;
    offset & 0xffff | (selector as u64) << 16 | count << 32 | rights << 40 | (offset >> 16) << 48
}

/// An exception that was taken, or the `int 0x30` that ends user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub vector: u32,
    pub error: u32,
    pub cs: u32,
    pub eip: u32,
    pub eflags: u32,
    pub cr2: u32,
    pub dr6: u32,
    /// ESP after the frame without the error code was pushed.
    pub esp: u32,
}

/// The code of a case, and what belongs to it.
pub struct Legacy {
    a: CodeAssembler,
    gates: Vec<(u8, CodeLabel, u16, u64)>,
    call_gates: Vec<(u16, CodeLabel, u16, u64, u64)>,
    words: Vec<(u32, CodeLabel)>,
    notes: Vec<(&'static str, CodeLabel)>,
    memory: Vec<(u32, Vec<u8>)>,
    cr4: u64,
    paging: bool,
}

impl Deref for Legacy {
    type Target = CodeAssembler;
    fn deref(&self) -> &CodeAssembler {
        &self.a
    }
}

impl DerefMut for Legacy {
    fn deref_mut(&mut self) -> &mut CodeAssembler {
        &mut self.a
    }
}

impl Legacy {
    pub fn label(&mut self) -> CodeLabel {
        self.a.create_label()
    }

    pub fn set(&mut self, mut label: CodeLabel) {
        self.a.set_label(&mut label).expect("set once");
        emit!(self; nop());
    }

    /// A new label here.
    pub fn here(&mut self) -> CodeLabel {
        let label = self.label();
        self.set(label);
        label
    }

    /// Remembers an address; see [`Finished::mark`].
    pub fn note(&mut self, name: &'static str) {
        let label = self.here();
        self.notes.push((name, label));
    }

    /// Leaves a register in a result slot. DS must be flat.
    pub fn result(&mut self, slot: u32, register: AsmRegister32) {
        emit!(self; mov(dword_ptr(RESULTS as u32 + 8 * slot), register));
    }

    /// Bytes in memory at the start.
    pub fn memory(&mut self, at: u32, bytes: &[u8]) {
        self.memory.push((at, bytes.to_vec()));
    }

    pub fn words(&mut self, at: u32, words: &[u32]) {
        self.memory(at, &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>());
    }

    pub fn descriptor(&mut self, selector: u16, descriptor: u64) {
        self.memory(GDT as u32 + u32::from(selector & !7), &descriptor.to_le_bytes());
    }

    /// The address of `label` as a word in memory.
    pub fn address(&mut self, at: u32, label: CodeLabel) {
        self.words.push((at, label));
    }

    /// An IDT entry for code in a flat segment: `rights` as for [`gate`].
    pub fn gate(&mut self, vector: u8, target: CodeLabel, selector: u16, rights: u64) {
        self.gates.push((vector, target, selector, rights));
    }

    /// A call gate in the GDT.
    pub fn call_gate(&mut self, at: u16, target: CodeLabel, selector: u16, rights: u64, count: u64) {
        self.call_gates.push((at, target, selector, rights, count));
    }

    /// 16-bit code at `at`, which starts at offset 0 of the paragraph `at >> 4`.
    pub fn code16(&mut self, at: u32, body: impl FnOnce(&mut CodeAssembler)) {
        let mut a = CodeAssembler::new(16).expect("16-bit code exists");
        body(&mut a);
        let bytes = a.assemble(0).expect("the code can be assembled");
        self.memory(at, &bytes);
    }

    pub fn cr4(&mut self, bits: u64) {
        self.cr4 |= bits;
    }

    /// 32-bit paging, 4 MiB pages one to one, user-accessible.
    pub fn paging(&mut self) {
        self.paging = true;
        self.cr4 |= 1 << 4;
        self.words(DIRECTORY, &(0..1024).map(|i| i << 22 | 0x87).collect::<Vec<_>>());
    }

    /// A TSS for a task that starts at `start` on the level-0 stack `stack`, with flat segments.
    pub fn task(&mut self, at: u32, selector: u16, start: CodeLabel, stack: u32) {
        let mut words = [0_u32; 26];
        (words[1], words[2]) = (RING0, u32::from(DATA_32));
        words[7] = DIRECTORY;
        words[9] = 2;
        words[14] = stack;
        for word in [18, 20, 21, 22, 23] {
            words[word] = u32::from(DATA_32);
        }
        words[19] = u32::from(CODE_32);
        words[25] = 0x68 << 16;
        self.words(at, &words);
        self.address(at + 32, start);
        self.descriptor(selector, descriptor(at, 0x67, 0x89));
    }

    /// Code that raises an exception: it is recorded, and execution goes on behind the code. Clobbers nothing before.
    pub fn faulting(&mut self, body: impl FnOnce(&mut Self)) {
        let after = self.resume_behind();
        body(self);
        self.set(after);
    }

    fn resume_behind(&mut self) -> CodeLabel {
        let after = self.label();
        // The code is position-dependent, and a label no immediate: the address comes from a word in memory.
        let at = RESUME + 0x10 + 4 * self.words.len() as u32;
        self.address(at, after);
        emit!(self; push(dword_ptr(at)); pop(dword_ptr(RESUME)); mov(dword_ptr(RESUME_ESP), esp));
        after
    }

    /// Level-3 code in flat segments with EFLAGS `flags`, until it faults or comes to its end.
    pub fn user(&mut self, flags: u32, body: impl FnOnce(&mut Self)) {
        let after = self.resume_behind();
        let start = self.label();
        let at = RESUME + 0x10 + 4 * self.words.len() as u32;
        self.address(at, start);
        emit!(self;
            push(i32::from(USER_DATA)); push(USER_STACK as i32); push(flags as i32); push(i32::from(USER_CODE));
            push(dword_ptr(at)); push(i32::from(USER_DATA)); pop(ds); push(i32::from(USER_DATA)); pop(es); iretd());
        self.set(start);
        body(self);
        emit!(self; int(0x30));
        self.set(after);
    }

    /// Virtual-8086 code at `paragraph:0`, SS:SP = `paragraph:0xff0`, other segments likewise, until it faults or comes to its `int 0x30`.
    pub fn vm86(&mut self, flags: u32, paragraph: u16) {
        let after = self.resume_behind();
        for _ in 0..4 {
            emit!(self; push(i32::from(paragraph)));
        }
        emit!(self; push(i32::from(paragraph)); push(0xff0); push((flags | 1 << 17) as i32); push(i32::from(paragraph)); push(0); iretd());
        self.set(after);
    }

    /// The end of the case.
    pub fn end(&mut self) {
        emit!(self; out(i32::from(END_PORT), al));
    }

    /// Handlers: record, and go on where the case said.
    fn exceptions(&mut self) {
        const WITH_ERROR_CODE: [u8; 7] = [8, 10, 11, 12, 13, 14, 17];
        let common = self.label();
        for vector in (0..32_u8).chain([0x30]) {
            if self.gates.iter().any(|g| g.0 == vector) {
                continue;
            }
            let at = self.here();
            if !WITH_ERROR_CODE.contains(&vector) {
                emit!(self; push(0));
            }
            emit!(self; push(i32::from(vector)); jmp(common));
            let rights = if vector == 0x30 { 0xee } else { 0x8e };
            self.gates.push((vector, at, CODE_32, rights));
        }
        self.set(common);
        let fields = FAULTS as u32 + 32;
        emit!(self;
            pushad(); mov(eax, u32::from(DATA_32)); mov(ds, ax); mov(es, ax); cld();
            mov(ebx, dword_ptr(FAULTS as u32)); shl(ebx, 5));
        // Vector, error code, EIP, CS and EFLAGS follow the eight registers.
        for (slot, field) in [(0, 0), (1, 4), (3, 8), (2, 12), (4, 16)] {
            emit!(self; mov(ecx, dword_ptr(esp + 32 + 4 * slot)); mov(dword_ptr(ebx + fields + field), ecx));
        }
        emit!(self;
            mov(ecx, cr2); mov(dword_ptr(ebx + fields + 20), ecx); mov(ecx, dr6); mov(dword_ptr(ebx + fields + 24), ecx);
            lea(ecx, ptr(esp + 40)); mov(dword_ptr(ebx + fields + 28), ecx);
            inc(dword_ptr(FAULTS as u32)); popad();
            mov(dword_ptr(RESUME + 8), eax); mov(eax, u32::from(DATA_32)); mov(ss, ax); mov(eax, dword_ptr(RESUME + 8));
            mov(esp, dword_ptr(RESUME_ESP)); push(2); popfd();
            push(i32::from(CODE_32)); push(dword_ptr(RESUME)); retf());
    }
}

/// A machine whose case has come to its end.
pub struct Finished {
    pub machine: Machine,
    notes: Vec<(&'static str, u32)>,
}

impl Finished {
    pub fn mark(&self, name: &str) -> u32 {
        self.notes.iter().find(|n| n.0 == name).expect("noted").1
    }

    pub fn result(&self, slot: u64) -> u32 {
        self.machine.result(slot) as u32
    }

    pub fn results<const N: usize>(&self) -> [u32; N] {
        std::array::from_fn(|i| self.result(i as u64))
    }

    pub fn word(&self, at: u32) -> u32 {
        u32::from_le_bytes(self.machine.read(u64::from(at)))
    }

    /// What was taken, the ends of user code included.
    pub fn taken(&self) -> Vec<Taken> {
        (0..self.word(FAULTS as u32))
            .map(|i| {
                let field = |n: u32| self.word(FAULTS as u32 + 32 + 32 * i + 4 * n);
                Taken {
                    vector: field(0),
                    error: field(1),
                    cs: field(2),
                    eip: field(3),
                    eflags: field(4),
                    cr2: field(5),
                    dr6: field(6),
                    esp: field(7),
                }
            })
            .collect()
    }

    /// Vectors and error codes of what was taken.
    pub fn faults(&self) -> Vec<(u32, u32)> {
        self.taken().iter().map(|t| (t.vector, t.error)).collect()
    }
}

fn segment(selector: u16, type_: u8) -> kvm_segment {
    kvm_segment { limit: u32::MAX, selector, type_, present: 1, db: 1, s: 1, g: 1, ..kvm_segment::default() }
}

/// A machine that is about to execute `body` in 32-bit protected mode.
pub fn machine(body: impl FnOnce(&mut Legacy)) -> Finished {
    let mut case = Legacy {
        a: CodeAssembler::new(32).expect("32-bit code exists"),
        gates: Vec::new(),
        call_gates: Vec::new(),
        words: Vec::new(),
        notes: Vec::new(),
        memory: Vec::new(),
        cr4: 0,
        paging: false,
    };
    // What is not expected ends the case.
    case.memory(RESUME, &CODE.to_le_bytes());
    case.memory(RESUME_ESP, &STACK.to_le_bytes());
    let mut start = case.label();
    emit!(case; jmp(start); nop());
    // Only an exception nobody expects comes back to the first instruction, with the flags and stack of a resumption.
    emit!(case; set_label(&mut start); cmp(dword_ptr(RESUME + 12), 0));
    let mut first = case.label();
    emit!(case; je(first); out(i32::from(UNEXPECTED_PORT), al));
    emit!(case; set_label(&mut first); inc(dword_ptr(RESUME + 12)));
    body(&mut case);
    case.end();
    case.exceptions();
    // The address of a label is where a jump to it goes: these are never executed.
    let gates = case.gates.iter().map(|g| g.1).chain(case.call_gates.iter().map(|g| g.1));
    let labels: Vec<_> = gates.chain(case.words.iter().map(|w| w.1)).chain(case.notes.iter().map(|n| n.1)).collect();
    let mut table = case.label();
    emit!(case; set_label(&mut table));
    for label in labels {
        emit!(case; jmp(label));
    }
    let done = case
        .a
        .assemble_options(u64::from(CODE), BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)
        .expect("the case can be assembled");
    let code = done.inner.code_buffer.clone();
    let table = done.label_ip(&table).expect("the label was set");
    let mut jumps = Decoder::with_ip(32, &code[(table - u64::from(CODE)) as usize..], table, DecoderOptions::NONE)
        .into_iter()
        .map(|jump| jump.near_branch_target() as u32)
        .collect::<Vec<_>>()
        .into_iter();
    let mut ip = || jumps.next().expect("a jump for each label");

    let mut machine = Machine::new(1, |_| {});
    machine.write(u64::from(CODE), &code);
    let tss = descriptor(TSS, u32::from(TSS_LIMIT), 0x8b);
    for (i, d) in [0, FLAT_CODE, FLAT_DATA, FLAT_CODE | LEVEL_3, FLAT_DATA | LEVEL_3, tss, 0, 0].into_iter().enumerate()
    {
        machine.write_u64(GDT + 8 * i as u64, d);
    }
    machine.write(u64::from(TSS) + 4, &RING0.to_le_bytes());
    machine.write(u64::from(TSS) + 8, &u32::from(DATA_32).to_le_bytes());
    machine.write(u64::from(TSS) + 28, &DIRECTORY.to_le_bytes());
    machine.write(u64::from(TSS) + 102, &TSS_MAP.to_le_bytes());
    for (vector, _, selector, rights) in &case.gates {
        machine.write_u64(IDT + 8 * u64::from(*vector), gate(*selector, ip(), *rights, 0));
    }
    for (at, _, selector, rights, count) in &case.call_gates {
        machine.write_u64(GDT + u64::from(*at & !7), gate(*selector, ip(), *rights, *count));
    }
    for (at, bytes) in &case.memory {
        machine.write(u64::from(*at), bytes);
    }
    for (at, _) in &case.words {
        machine.write(u64::from(*at), &ip().to_le_bytes());
    }
    let notes = case.notes.iter().map(|(name, _)| (*name, ip())).collect();

    let v = machine.vm.vcpu_mut(0);
    let mut s: kvm_sregs = v.sregs();
    s.cs = segment(CODE_32, 11);
    for data in [&mut s.ds, &mut s.es, &mut s.fs, &mut s.gs, &mut s.ss] {
        *data = segment(DATA_32, 3);
    }
    s.tr = kvm_segment {
        base: TSS.into(),
        limit: TSS_LIMIT.into(),
        selector: TSS_SELECTOR,
        type_: 11,
        present: 1,
        ..kvm_segment::default()
    };
    (s.gdt.base, s.gdt.limit) = (GDT, 0x7ff);
    (s.idt.base, s.idt.limit) = (IDT, 0x7ff);
    s.cr0 = 0x33 | if case.paging { 1 << 31 } else { 0 };
    s.cr3 = DIRECTORY.into();
    s.cr4 = 0x600 | case.cr4;
    s.efer = 0;
    v.set_sregs(&s);
    v.set_regs(&kvm_regs { rip: CODE.into(), rsp: STACK.into(), rflags: 2, ..kvm_regs::default() });
    Finished { machine, notes }
}

/// The same, at its end.
pub fn finished(body: impl FnOnce(&mut Legacy)) -> Finished {
    let mut m = machine(body);
    m.machine.finish();
    m
}
