//! The code of a case: an assembler, interrupt gates, and exceptions that are caught and recorded.

use std::ops::{Deref, DerefMut};

use iced_x86::BlockEncoderOptions;
use iced_x86::code_asm::{CodeAssembler, CodeLabel, al, cr2, eax, ecx, ptr, qword_ptr, r15, rax, rcx, rdx, rsp};

use crate::machine::{CODE, END_PORT, FAULTS, RESULTS, UNEXPECTED_PORT};

/// Vectors whose exceptions push an error code.
const WITH_ERROR_CODE: [u8; 7] = [8, 10, 11, 12, 13, 14, 17];

/// A register of 64 bits.
pub type Register = iced_x86::code_asm::AsmRegister64;

/// An assembler that panics on what it cannot encode, and what belongs to the code.
pub struct Case {
    a: CodeAssembler,
    pending_gates: Vec<(u8, CodeLabel)>,
    pending_starts: Vec<(usize, CodeLabel)>,
    pending_marks: Vec<(&'static str, CodeLabel)>,
    /// After assembly.
    pub code: Vec<u8>,
    pub gates: Vec<(u8, u64)>,
    pub starts: Vec<(usize, u64)>,
    pub marks: Vec<(&'static str, u64)>,
    pub unexpected: u64,
}

impl Deref for Case {
    type Target = CodeAssembler;
    fn deref(&self) -> &CodeAssembler {
        &self.a
    }
}

impl DerefMut for Case {
    fn deref_mut(&mut self) -> &mut CodeAssembler {
        &mut self.a
    }
}

/// Emits instructions, each of which must be encodable: `emit!(c; mov(eax, 1); cpuid())`.
#[macro_export]
macro_rules! emit {
    ($c:expr; $($($name:ident($($argument:expr),* $(,)?)).+);+ $(;)?) => {{
        $( $c$(.$name($($argument),*))+.expect(concat!("cannot encode ", stringify!($($name)+))); )+
    }};
}

impl Case {
    pub fn assemble(body: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self {
            a: CodeAssembler::new(64).expect("64-bit code exists"),
            pending_gates: Vec::new(),
            pending_starts: Vec::new(),
            pending_marks: Vec::new(),
            code: Vec::new(),
            gates: Vec::new(),
            starts: Vec::new(),
            marks: Vec::new(),
            unexpected: 0,
        };
        body(&mut case);
        case.end();
        let unexpected = case.exceptions();
        let done = case
            .a
            .assemble_options(CODE, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)
            .expect("the case can be assembled");
        let ip = |label: &CodeLabel| done.label_ip(label).expect("the label was set");
        case.gates = case.pending_gates.iter().map(|(v, l)| (*v, ip(l))).collect();
        case.starts = case.pending_starts.iter().map(|(v, l)| (*v, ip(l))).collect();
        case.marks = case.pending_marks.iter().map(|(v, l)| (*v, ip(l))).collect();
        case.unexpected = ip(&unexpected);
        case.code = done.inner.code_buffer;
        case
    }

    /// The end of the case.
    pub fn end(&mut self) {
        emit!(self; out(i32::from(END_PORT), al));
    }

    /// Where the code of another vCPU starts.
    pub fn start(&mut self, vcpu: usize) {
        let label = self.here();
        self.pending_starts.push((vcpu, label));
    }

    /// Remembers an address; see [`Case::mark`].
    pub fn note(&mut self, name: &'static str) {
        let label = self.here();
        self.pending_marks.push((name, label));
    }

    /// An address that the case has noted.
    pub fn mark(&self, name: &str) -> u64 {
        self.marks.iter().find(|m| m.0 == name).expect("noted").1
    }

    pub fn label(&mut self) -> CodeLabel {
        self.a.create_label()
    }

    pub fn set(&mut self, mut label: CodeLabel) {
        self.a.set_label(&mut label).expect("set once");
        // A label that is set right before another needs an instruction of its own.
        emit!(self; nop());
    }

    /// A new label here.
    pub fn here(&mut self) -> CodeLabel {
        let mut label = self.a.create_label();
        self.a.set_label(&mut label).expect("set once");
        emit!(self; nop());
        label
    }

    /// An interrupt handler: `body`, then IRETQ. RAX, RCX and RDX are saved around it.
    pub fn handler(&mut self, vector: u8, body: impl FnOnce(&mut Self)) {
        let mut over = self.label();
        emit!(self; jmp(over));
        let at = self.here();
        emit!(self; push(rax); push(rcx); push(rdx));
        body(self);
        emit!(self; pop(rdx); pop(rcx); pop(rax); iretq());
        self.a.set_label(&mut over).expect("set once");
        emit!(self; nop());
        self.pending_gates.push((vector, at));
    }

    /// Code that raises an exception: it is recorded, and execution goes on behind the code.
    pub fn faulting(&mut self, body: impl FnOnce(&mut Self)) {
        let after = self.label();
        emit!(self; lea(r15, ptr(after)));
        body(self);
        self.set(after);
    }

    /// Leaves a register in a result slot.
    pub fn result(&mut self, slot: u64, register: Register) {
        emit!(self; mov(qword_ptr(RESULTS + 8 * slot), register));
    }

    /// RAX = time-stamp counter; clobbers RDX.
    pub fn tsc(&mut self) {
        emit!(self; rdtsc(); shl(rdx, 32); or(rax, rdx));
    }

    /// WRMSR; clobbers RAX, RCX and RDX.
    pub fn write_msr(&mut self, msr: u32, value: u64) {
        emit!(self; mov(ecx, msr); mov(eax, value as u32); mov(iced_x86::code_asm::edx, (value >> 32) as u32); wrmsr());
    }

    /// RAX = MSR; clobbers RCX and RDX.
    pub fn read_msr(&mut self, msr: u32) {
        emit!(self; mov(ecx, msr); rdmsr(); shl(rdx, 32); or(rax, rdx));
    }

    /// Stores to a device register of 32 bits anywhere below 4 GiB; clobbers RAX.
    pub fn store_device(&mut self, at: u32, value: u32) {
        emit!(self; mov(eax, at); mov(iced_x86::code_asm::dword_ptr(rax), value as i32));
    }

    /// Enables the local APIC in x2APIC mode; clobbers RAX, RCX and RDX.
    pub fn x2apic(&mut self) {
        self.read_msr(0x1b);
        emit!(self; or(eax, 0xc00); wrmsr());
        self.write_msr(0x80f, 0x1ff);
    }

    /// Enables the local APIC in xAPIC mode; clobbers RAX.
    pub fn xapic(&mut self) {
        self.store_device(0xfee0_00f0, 0x1ff);
    }

    /// Both 8259s masked; clobbers RAX.
    pub fn mask_8259(&mut self) {
        emit!(self; mov(al, 0xff); out(0x21, al); out(0xa1, al));
    }

    /// Halts until the counter at `at` has reached `count`; `handler`s count. Interrupts are off afterwards.
    pub fn halt_until(&mut self, at: u64, count: i32) {
        let (mut again, mut done) = (self.label(), self.label());
        emit!(self; set_label(&mut again); cli(); cmp(qword_ptr(at), count); jae(done); sti(); hlt(); jmp(again));
        emit!(self; set_label(&mut done); nop());
    }

    /// Spins with interrupts on until the counter at `at` has reached `count`.
    pub fn spin_until(&mut self, at: u64, count: i32) {
        let mut again = self.label();
        emit!(self; sti(); set_label(&mut again); cmp(qword_ptr(at), count); jb(again); cli());
    }

    /// An interrupt handler that appends the TSC to the list at `at` (a count, then the values), and ends the
    /// interrupt by x2APIC.
    pub fn stamping_handler(&mut self, vector: u8, at: u64) {
        self.handler(vector, |c| {
            c.tsc();
            emit!(c; mov(rcx, qword_ptr(at)); mov(qword_ptr(rcx * 8 + at + 8), rax); inc(qword_ptr(at)));
            c.write_msr(0x80b, 0);
        });
    }

    /// Handlers for all exceptions: record, and resume at R15.
    fn exceptions(&mut self) -> CodeLabel {
        let unexpected = self.here();
        emit!(self; out(i32::from(UNEXPECTED_PORT), al));
        let common = self.label();
        for vector in 0..32_u8 {
            if self.pending_gates.iter().any(|g| g.0 == vector) {
                continue;
            }
            let at = self.here();
            if !WITH_ERROR_CODE.contains(&vector) {
                emit!(self; push(0));
            }
            emit!(self; push(i32::from(vector)); jmp(common));
            self.pending_gates.push((vector, at));
        }
        self.set(common);
        emit!(self; push(rax); push(rcx); mov(rax, qword_ptr(FAULTS)); shl(rax, 5); add(rax, FAULTS as i32 + 32));
        for (slot, field) in [(16, 0), (24, 8), (32, 16)] {
            emit!(self; mov(rcx, qword_ptr(rsp + slot)); mov(qword_ptr(rax + field), rcx));
        }
        emit!(self;
            mov(rcx, cr2); mov(qword_ptr(rax + 24), rcx); inc(qword_ptr(FAULTS)); mov(qword_ptr(rsp + 32), r15);
            pop(rcx); pop(rax); add(rsp, 16); iretq());
        unexpected
    }
}
