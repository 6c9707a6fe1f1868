//! Static cost of an instruction in quarter cycles: a 4-wide core that hits its first-level cache.
//!
//! Throughput figures, rounded, of a recent server core (Agner Fog, "Instruction tables"; uops.info): the model has no
//! pipeline, so a figure stands for the usual distance between such instructions in mixed code.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};

/// Cost of `insn`.
#[must_use]
pub fn of(insn: &Instruction) -> u16 {
    let base = match insn.mnemonic() {
        Mnemonic::Div | Mnemonic::Idiv => 40,
        Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx => 4,
        Mnemonic::Divss | Mnemonic::Divsd | Mnemonic::Divps | Mnemonic::Divpd => 16,
        Mnemonic::Sqrtss | Mnemonic::Sqrtsd | Mnemonic::Sqrtps | Mnemonic::Sqrtpd => 20,
        Mnemonic::Vpgatherdd
        | Mnemonic::Vpgatherdq
        | Mnemonic::Vpgatherqd
        | Mnemonic::Vpgatherqq
        | Mnemonic::Vgatherdps
        | Mnemonic::Vgatherdpd
        | Mnemonic::Vgatherqps
        | Mnemonic::Vgatherqpd => 20,
        Mnemonic::Cmpxchg | Mnemonic::Xadd | Mnemonic::Xchg | Mnemonic::Cmpxchg16b | Mnemonic::Cmpxchg8b => 8,
        Mnemonic::Cpuid => 400,
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => 100,
        Mnemonic::Rdmsr | Mnemonic::Wrmsr => 400,
        Mnemonic::In | Mnemonic::Out => 400,
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => 160,
        Mnemonic::Syscall | Mnemonic::Sysret | Mnemonic::Sysretq => 100,
        Mnemonic::Pause => 160,
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => 40,
        _ => match insn.flow_control() {
            FlowControl::Next => 1,
            _ => 2,
        },
    };
    let memory = (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Memory);
    let locked = insn.has_lock_prefix() || (insn.mnemonic() == Mnemonic::Xchg && memory);
    base + u16::from(memory) + if locked { 64 } else { 0 }
}
