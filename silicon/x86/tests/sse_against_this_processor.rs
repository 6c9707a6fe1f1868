//! Every MMX and SSE instruction, register and memory forms, against the processor at hand.
//!
//! The instructions are found by decoding all opcodes of the two-byte and three-byte maps under every mandatory prefix:
//! one that is missing in the model is seen as well as one that differs.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "runs instructions natively, see the module `native`")]

mod machine;
mod native;

use std::collections::BTreeMap;

use iced_x86::{Code, CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use machine::{BUFFER, Machine, Random};
use native::{Native, State};
use silicon_x86::lower::sse;
use silicon_x86::model::Model;
use silicon_x86::op::{CodeSize, Lowering};

/// Bytes of memory that operands lie in.
const BYTES: usize = 64;

const FEATURES: [CpuidFeature; 7] = [
    CpuidFeature::MMX,
    CpuidFeature::SSE,
    CpuidFeature::SSE2,
    CpuidFeature::SSE3,
    CpuidFeature::SSSE3,
    CpuidFeature::SSE4_1,
    CpuidFeature::SSE4_2,
];

/// Instructions of these features that use no SSE or MMX state: other families have them.
const ELSEWHERE: [Mnemonic; 10] = [
    Mnemonic::Movnti,
    Mnemonic::Prefetchnta,
    Mnemonic::Prefetcht0,
    Mnemonic::Prefetcht1,
    Mnemonic::Prefetcht2,
    Mnemonic::Sfence,
    Mnemonic::Lfence,
    Mnemonic::Mfence,
    Mnemonic::Crc32,
    Mnemonic::Pause,
];

/// Approximations, which differ between processors.
const ESTIMATES: [Mnemonic; 4] = [Mnemonic::Rcpps, Mnemonic::Rcpss, Mnemonic::Rsqrtps, Mnemonic::Rsqrtss];

/// Registers that hold addresses, which differ between the two.
const KEPT: [Register; 4] = [Register::RSP, Register::RBX, Register::RDI, Register::R11];

/// All instructions of the features, one register form and one memory form (at RBX) per opcode and REX prefix.
fn instructions(random: &mut Random) -> Vec<(Vec<u8>, Instruction)> {
    let mut found = Vec::new();
    for prefix in [&[][..], &[0x66], &[0xf3], &[0xf2]] {
        for rex in [&[][..], &[0x48], &[0x45], &[0x4d], &[0x41], &[0x44]] {
            for map in [&[0x0f][..], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                for opcode in 0..=0xff_u8 {
                    for group in 0..8 {
                        for modrm in [group << 3 | 3, 0xc0 | group << 3 | (random.next() as u8 & 7)] {
                            let rest = [opcode, modrm, random.next() as u8];
                            let bytes = [prefix, rex, map, &rest].concat();
                            let insn = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                            if wanted(&insn) {
                                found.push((bytes[..insn.len()].to_vec(), insn));
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

fn wanted(insn: &Instruction) -> bool {
    let registers = (0..insn.op_count()).filter(|&i| insn.op_kind(i) == OpKind::Register).map(|i| insn.op_register(i));
    insn.code() != Code::INVALID
        && insn.flow_control() == FlowControl::Next
        && insn.cpuid_features().iter().all(|f| FEATURES.contains(f))
        && !insn.cpuid_features().is_empty()
        && !ELSEWHERE.contains(&insn.mnemonic())
        && registers.clone().all(|r| !KEPT.contains(&r.full_register()))
        && !registers.clone().any(Register::is_segment_register)
        && (insn.memory_base() == Register::None || matches!(insn.memory_base(), Register::RBX | Register::R11))
}

/// Runs one instruction on both and says where they differ.
fn compare(
    native: &mut Native,
    machine: &mut Machine,
    bytes: &[u8],
    insn: &Instruction,
    random: &mut Random,
) -> Result<(), String> {
    #[repr(align(64))]
    struct Buffer([u8; BYTES]);
    let mut buffer = Buffer(random.vectors());
    if insn.mnemonic() == Mnemonic::Ldmxcsr {
        let value = random.next() as u32 & 0xffff | 0x1f80;
        buffer.0[..4].copy_from_slice(&value.to_le_bytes());
    }
    let mut state = State::default();
    random.fill(&mut state);
    if insn.code() == Code::Cvtpi2ps_xmm_mmm64 && insn.op_kind(1) == OpKind::Memory {
        // Goes from x87 to MMX in the manual, and with some makers only.
        state.set_fsw(0);
        state.set_ftw(0xff);
    }
    // Both R11 and RBX are bases, and RDI is that of MASKMOVDQU.
    let pointers = [3, 7, 11];
    for i in pointers {
        state.gpr[i] = BUFFER;
    }
    machine.load(&state);
    machine.write(BUFFER, &buffer.0);
    for i in pointers {
        state.gpr[i] = buffer.0.as_mut_ptr() as u64;
    }
    let before = state.clone();
    // SAFETY: SSE and MMX instructions fall through; all exceptions are masked and operands lie in the aligned buffer.
    unsafe { native.run(bytes, &mut state) };
    if let Err(leave) = machine.step(bytes) {
        return Err(format!("{leave:?} {:?}", machine.core.fault));
    }
    for i in pointers {
        if state.gpr[i] == before.gpr[i] {
            state.gpr[i] = BUFFER;
        }
    }
    let mut differ = machine.differences(&state);
    let memory = machine.read::<BYTES>(BUFFER);
    if memory != buffer.0 {
        differ.push(format!("memory {memory:x?}, not {:x?}", buffer.0));
    }
    if differ.is_empty() {
        return Ok(());
    }
    let xmm = |i: usize| before.xmm(i);
    Err(format!("{}; before: mxcsr {:#x} xmm0 {:032x}, {:x?}", differ.join("; "), before.mxcsr(), xmm(0), {
        (0..insn.op_count())
            .filter(|&i| insn.op_kind(i) == OpKind::Register && insn.op_register(i).is_xmm())
            .map(|i| format!("{:032x}", xmm(insn.op_register(i).number())))
            .collect::<Vec<_>>()
    }))
}

#[test]
fn results_flags_and_memory_are_those_of_this_processor() {
    let mut random = Random(0x5eed);
    let (mut native, mut machine) = (Native::new(), Machine::new());
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut codes = std::collections::BTreeSet::new();
    for (bytes, insn) in instructions(&mut random) {
        let lowering =
            Lowering { insn: &insn, bytes: &bytes, size: CodeSize::Bits64, off: 0, model: &Model::default() };
        if sse::lower(&lowering).is_none() {
            failures.insert(format!("{:?} {bytes:02x?}", insn.code()), "missing".into());
            continue;
        }
        if ESTIMATES.contains(&insn.mnemonic()) {
            continue;
        }
        codes.insert(insn.code() as u32);
        for _ in 0..10 {
            if let Err(difference) = compare(&mut native, &mut machine, &bytes, &insn, &mut random) {
                failures.insert(format!("{:?} {bytes:02x?}", insn.code()), difference);
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} differ: {failures:#?}", failures.len());
    assert!(codes.len() >= 379, "only {} instructions were found", codes.len());
}
