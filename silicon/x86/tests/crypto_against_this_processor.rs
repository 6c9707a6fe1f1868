//! AES, PCLMULQDQ and SHA, compared with the processor that the test runs on, as far as it has them; and their operands.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "runs instructions natively, see the module `native`")]

mod machine;
mod native;

use std::sync::Arc;

use machine::{BUFFER, Machine, Random};
use native::{Native, State};
use silicon_x86::Leave;
use silicon_x86::model::Model;
use x86_defs::control::cr4;
use x86_defs::exception::vector;

/// 16 bytes of memory.
#[repr(C, align(64))]
struct Block([u8; 64]);

/// Instructions on XMM1 and XMM2 (VEX: XMM3 is source 1), or on XMM1 and [RBX]; the last byte is the immediate where the
/// third field is set.
const LEGACY: [(&str, &[u8], bool); 14] = [
    ("aesenc", &[0x66, 0x0f, 0x38, 0xdc], false),
    ("aesenclast", &[0x66, 0x0f, 0x38, 0xdd], false),
    ("aesdec", &[0x66, 0x0f, 0x38, 0xde], false),
    ("aesdeclast", &[0x66, 0x0f, 0x38, 0xdf], false),
    ("aesimc", &[0x66, 0x0f, 0x38, 0xdb], false),
    ("aeskeygenassist", &[0x66, 0x0f, 0x3a, 0xdf], true),
    ("pclmulqdq", &[0x66, 0x0f, 0x3a, 0x44], true),
    ("sha1rnds4", &[0x0f, 0x3a, 0xcc], true),
    ("sha1nexte", &[0x0f, 0x38, 0xc8], false),
    ("sha1msg1", &[0x0f, 0x38, 0xc9], false),
    ("sha1msg2", &[0x0f, 0x38, 0xca], false),
    ("sha256rnds2", &[0x0f, 0x38, 0xcb], false),
    ("sha256msg1", &[0x0f, 0x38, 0xcc], false),
    ("sha256msg2", &[0x0f, 0x38, 0xcd], false),
];
const VEX: [(&str, &[u8], bool); 7] = [
    ("vaesenc", &[0xc4, 0xe2, 0x61, 0xdc], false),
    ("vaesenclast", &[0xc4, 0xe2, 0x61, 0xdd], false),
    ("vaesdec", &[0xc4, 0xe2, 0x61, 0xde], false),
    ("vaesdeclast", &[0xc4, 0xe2, 0x61, 0xdf], false),
    ("vaesimc", &[0xc4, 0xe2, 0x79, 0xdb], false),
    ("vaeskeygenassist", &[0xc4, 0xe3, 0x79, 0xdf], true),
    ("vpclmulqdq", &[0xc4, 0xe3, 0x61, 0x44], true),
];
const REGISTER: u8 = 0xca;
const MEMORY: u8 = 0x0b;

fn has(name: &str) -> bool {
    let vex = !name.starts_with('v') || std::is_x86_feature_detected!("avx");
    vex && if name.contains("aes") {
        std::is_x86_feature_detected!("aes")
    } else if name.contains("clmul") {
        std::is_x86_feature_detected!("pclmulqdq")
    } else {
        std::is_x86_feature_detected!("sha")
    }
}

fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.core.model = Arc::new(Model::parse("glassvisor-v3").expect("the model exists"));
    machine.core.cr4 |= cr4::OSXSAVE;
    machine.core.set_xcr0(7);
    machine
}

fn encoding(opcode: &[u8], operands: u8, immediate: Option<u8>) -> Vec<u8> {
    opcode.iter().copied().chain([operands]).chain(immediate).collect()
}

#[test]
fn results_are_those_of_this_processor() {
    let (mut native, mut machine, mut random) = (Native::new(), machine(), Random(3));
    for &(name, opcode, immediate) in LEGACY.iter().chain(&VEX) {
        if !has(name) {
            eprintln!("this processor has no {name}: not compared");
            continue;
        }
        for round in 0..600 {
            let operands = if round & 1 == 0 { REGISTER } else { MEMORY };
            let imm = immediate.then_some((round >> 1) as u8);
            let bytes = encoding(opcode, operands, imm);
            let block = Block(random.vectors());
            let mut state = State::default();
            random.fill(&mut state);
            // Vectors as those of real use: any bits.
            for i in 0..4 {
                state.set_xmm(i, u128::from(random.next()) << 64 | u128::from(random.next()));
            }
            state.gpr[3] = BUFFER;
            machine.load(&state);
            machine.core.fpu.ymm_high = [1; 16];
            machine.write(BUFFER, &block.0);
            state.gpr[3] = &raw const block as u64;
            // SAFETY: the instructions read the aligned block only and raise nothing.
            unsafe { native.run(&bytes, &mut state) };
            state.gpr[3] = BUFFER;
            assert_eq!(machine.step(&bytes), Ok(()), "{name}");
            assert_eq!(machine.differences(&state), Vec::<String>::new(), "{name} {bytes:x?}");
            let high = u128::from(!name.starts_with('v'));
            assert_eq!(machine.core.fpu.ymm_high[1], high, "only VEX forms clear the high half: {name}");
        }
    }
}

#[test]
fn sse_forms_need_aligned_memory_and_vex_forms_do_not() {
    for (forms, expected) in [(&LEGACY[..], Err(Leave::Fault)), (&VEX[..], Ok(()))] {
        for &(name, opcode, immediate) in forms {
            let mut machine = machine();
            machine.core.gpr[3] = BUFFER + 8;
            let bytes = encoding(opcode, MEMORY, immediate.then_some(0));
            assert_eq!(machine.step(&bytes), expected, "{name}");
            if expected.is_err() {
                assert_eq!(machine.core.fault.vector, vector::GP, "{name}");
            }
        }
    }
}

#[test]
fn vex_forms_need_avx_to_be_enabled_and_sse_forms_do_not() {
    let mut machine = machine();
    machine.core.set_xcr0(3);
    for (forms, expected) in [(&LEGACY[..], Ok(())), (&VEX[..], Err(Leave::Fault))] {
        for &(name, opcode, immediate) in forms {
            let bytes = encoding(opcode, REGISTER, immediate.then_some(0));
            assert_eq!(machine.step(&bytes), expected, "{name}");
        }
    }
    assert_eq!(machine.core.fault.vector, vector::UD);
}
