//! Static cost of an instruction in quarter cycles: a 4-wide core that hits its first-level cache.
//!
//! Throughput figures, rounded, of a recent server core (Agner Fog, "Instruction tables"; uops.info): the model has no
//! pipeline, so a figure stands for the usual distance between such instructions in mixed code.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};

use super::{vector, x87};

/// Cost of `insn`.
#[must_use]
pub fn of(insn: &Instruction) -> u16 {
    let base = match insn.mnemonic() {
        Mnemonic::Div | Mnemonic::Idiv => 40,
        Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx => 4,
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
        // Measured together with the delivery: see `super::EVENT_DELIVERY`.
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => 4 * 330,
        Mnemonic::Syscall | Mnemonic::Sysret | Mnemonic::Sysretq => 100,
        Mnemonic::Pause => 160,
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => 40,
        other => match x87::of(other).or_else(|| vector::of(insn)) {
            Some(cost) => cost,
            None if insn.flow_control() == FlowControl::Next => 1,
            None => 2,
        },
    };
    let memory = (0..insn.op_count()).any(|i| insn.op_kind(i) == OpKind::Memory);
    let locked = insn.has_lock_prefix() || (insn.mnemonic() == Mnemonic::Xchg && memory);
    base + u16::from(memory) + if locked { 64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn cost(bytes: &[u8]) -> u16 {
        of(&Decoder::new(64, bytes, DecoderOptions::NONE).decode())
    }

    #[test]
    fn a_wide_division_takes_longer_and_memory_adds_its_part() {
        let (xmm, ymm) = (cost(&[0xc5, 0xf0, 0x5e, 0xc2]), cost(&[0xc5, 0xf4, 0x5e, 0xc2]));
        assert_eq!((xmm, ymm), (12, 20));
        assert_eq!(cost(&[0xc5, 0xf4, 0x5e, 0x00]), ymm + 1);
    }

    #[test]
    fn one_cycle_holds_two_fused_multiply_adds_but_one_x87_addition() {
        assert_eq!(cost(&[0xc4, 0xe2, 0x75, 0xb8, 0xc2]), 2);
        assert_eq!(cost(&[0xd8, 0xc1]), 4);
        assert_eq!(cost(&[0xd9, 0xfe]), 360);
    }

    #[test]
    fn a_string_comparison_is_no_vector_instruction() {
        assert_eq!(cost(&[0xa7]), 1);
        assert_eq!(cost(&[0xf2, 0x0f, 0xc2, 0xc1, 0]), 2);
    }
}
