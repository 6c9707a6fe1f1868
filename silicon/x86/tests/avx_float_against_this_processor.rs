//! Floating point of AVX, FMA and F16C, register and memory forms, against the processor at hand: results, flags of MXCSR,
//! the upper halves of the registers, and which exceptions that are not masked fault.
//!
//! The instructions are found by decoding all opcodes of the VEX maps, so that one that is missing in the model is seen as
//! well as one that differs.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "runs instructions natively, see the module `native`")]

mod machine;
mod native;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use iced_x86::{Code, CpuidFeature, Decoder, DecoderOptions, EncodingKind, Instruction, Mnemonic, OpKind, Register};
use machine::{BUFFER, Machine, Random};
use native::{Native, State};
use silicon_x86::lower::avx;
use silicon_x86::model::Model;
use silicon_x86::op::{CodeSize, Lowering};
use x86_defs::control::cr4;
use x86_defs::exception::vector;

/// Bytes of memory that operands lie in.
const BYTES: usize = 64;

const FEATURES: [CpuidFeature; 3] = [CpuidFeature::AVX, CpuidFeature::FMA, CpuidFeature::F16C];

/// How the instructions of these families are called.
const FAMILIES: [&str; 19] = [
    "Vadd", "Vsub", "Vmul", "Vdiv", "Vsqrt", "Vmin", "Vmax", "Vround", "Vhadd", "Vhsub", "Vdp", "Vcmp", "Vcomi",
    "Vucomi", "Vcvt", "Vfm", "Vfnm", "Vrcp", "Vrsqrt",
];

/// Approximations, which differ between processors.
const ESTIMATES: [Mnemonic; 4] = [Mnemonic::Vrcpps, Mnemonic::Vrcpss, Mnemonic::Vrsqrtps, Mnemonic::Vrsqrtss];

/// Registers that hold addresses, which differ between the two.
const KEPT: [Register; 4] = [Register::RSP, Register::RBX, Register::R11, Register::R15];

/// All instructions of the families: register and memory forms (at RBX and R11) of each opcode and prefix.
fn instructions(random: &mut Random) -> Vec<(Vec<u8>, Instruction)> {
    let mut found = Vec::new();
    for map in 1..=3_u8 {
        for opcode in 0..=0xff_u8 {
            for wide_and_prefix in 0..16_u8 {
                for extended in 0..4_u8 {
                    for modrm in [3 | (random.next() as u8 & 0x38), 0xc0 | random.next() as u8 & 0x3f] {
                        for sources in [random.next() as u8 & 0x78, 0x78] {
                            // R and B, inverted; W, vvvv, L and pp.
                            let second = (extended & 1) << 7 | 0x40 | (extended >> 1) << 5 | map;
                            let third = (wide_and_prefix >> 3) << 7 | sources | wide_and_prefix & 7;
                            let bytes = [0xc4, second, third, opcode, modrm, random.next() as u8];
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
    let name = format!("{:?}", insn.mnemonic());
    let mut registers = (0..insn.op_count()).filter(|&i| insn.op_kind(i) == OpKind::Register);
    insn.code() != Code::INVALID
        && insn.code().encoding() == EncodingKind::VEX
        && insn.cpuid_features().iter().all(|feature| FEATURES.contains(feature))
        && FAMILIES.iter().any(|family| name.starts_with(family))
        && registers.all(|i| !KEPT.contains(&insn.op_register(i).full_register()))
        && matches!(insn.memory_base(), Register::None | Register::RBX | Register::R11)
}

/// Moves the upper half of each YMM register from (`0x18`) or to (`0x19`) the sixteen at R15.
fn upper_halves(opcode: u8, bytes: &mut Vec<u8>) {
    for i in 0..16_u8 {
        let source = if opcode == 0x18 { i } else { 0 };
        bytes.extend([0xc4, if i < 8 { 0xc3 } else { 0x43 }, 0x05 | (!source & 15) << 3, opcode, 0x87 | (i & 7) << 3]);
        bytes.extend((u32::from(i) * 16).to_le_bytes());
        bytes.push(1);
    }
}

/// MXCSR at the last fault; zero if there was none.
static AT_FAULT: AtomicU32 = AtomicU32::new(0);

/// Notes MXCSR and masks everything, so that the instruction completes when it is run again.
extern "C" fn note(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a context whose floating-point state is present on x86-64.
    let mxcsr = unsafe { &mut (*(*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs).mxcsr };
    AT_FAULT.store(*mxcsr, Ordering::Relaxed);
    *mxcsr = 0x1f80;
}

fn catch_faults() {
    // SAFETY: the action is fully set up, and the handler touches an atomic and its own context only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGFPE, &action, std::ptr::null_mut()), 0);
    }
}

/// What an instruction starts with.
struct Start {
    state: State,
    upper: [u128; 16],
    buffer: [u8; BYTES],
    /// How far the memory operand is from where it would be aligned.
    offset: u64,
}

#[repr(align(64))]
struct Aligned<T>(T);

/// Runs one instruction on both and says where they differ.
fn compare(native: &mut Native, machine: &mut Machine, bytes: &[u8], start: &Start) -> Result<(), String> {
    let mut buffer = Aligned(start.buffer);
    let mut upper = Aligned(start.upper);
    let mut state = start.state.clone();
    for i in [3, 11] {
        state.gpr[i] = BUFFER + start.offset;
    }
    state.gpr[15] = 0;
    machine.load(&state);
    machine.core.fpu.ymm_high = start.upper;
    machine.write(BUFFER, &buffer.0);
    let before = machine.core.fpu.clone();
    for i in [3, 11] {
        state.gpr[i] = buffer.0.as_mut_ptr() as u64 + start.offset;
    }
    state.gpr[15] = upper.0.as_mut_ptr() as u64;
    let mut code = Vec::new();
    upper_halves(0x18, &mut code);
    code.extend(bytes);
    upper_halves(0x19, &mut code);
    code.extend([0xc5, 0xf8, 0x77]);
    AT_FAULT.store(0, Ordering::Relaxed);
    // SAFETY: these instructions fall through, their operands lie in the two buffers, and what is not masked is caught.
    unsafe { native.run(&code, &mut state) };
    let at_fault = AT_FAULT.load(Ordering::Relaxed);
    let done = machine.step(bytes);
    if at_fault != 0 {
        let fpu = &machine.core.fpu;
        return if done.is_ok() {
            Err(format!("completed with mxcsr {:#x}, faults with {at_fault:#x}", fpu.mxcsr))
        } else if machine.core.fault.vector != vector::XM || fpu.mxcsr != at_fault {
            Err(format!("{:?} with mxcsr {:#x}, not {at_fault:#x}", machine.core.fault, fpu.mxcsr))
        } else if (fpu.xmm, fpu.ymm_high) != (before.xmm, before.ymm_high)
            || machine.read::<BYTES>(BUFFER) != start.buffer
        {
            Err("faulted with a result".into())
        } else {
            Ok(())
        };
    }
    if let Err(leave) = done {
        let (fault, mxcsr) = (machine.core.fault, machine.core.fpu.mxcsr);
        return Err(format!("{leave:?} {fault:?} mxcsr {mxcsr:#x}, completes with {:#x}", state.mxcsr()));
    }
    for i in [3, 11, 15] {
        state.gpr[i] = machine.core.gpr[i];
    }
    let mut differ = machine.differences(&state);
    for i in 0..16 {
        let model = machine.core.fpu.ymm_high[i];
        if model != upper.0[i] {
            differ.push(format!("upper half of ymm{i} is {model:#x}, not {:#x}", upper.0[i]));
        }
    }
    let memory = machine.read::<BYTES>(BUFFER);
    if memory != buffer.0 {
        differ.push(format!("memory {memory:x?}, not {:x?}", buffer.0));
    }
    if differ.is_empty() { Ok(()) } else { Err(differ.join("; ")) }
}

/// Vectors of any kind, with a chance for lanes that are all ordinary, so that not every case is invalid.
fn vector_of(random: &mut Random, kind: u64) -> u128 {
    let small = |random: &mut Random| f64::from(random.next() as i16) / 16.0;
    match kind {
        0 => (0..4).fold(0, |v, _| v << 32 | u128::from((small(random) as f32).to_bits())),
        1 => (0..2).fold(0, |v, _| v << 64 | u128::from(small(random).to_bits())),
        // Halves, most of them finite.
        2 => u128::from(random.next()) << 64 | u128::from(random.next()) & 0xbbff_bbff_bbff_bbff,
        _ => random.vector(),
    }
}

fn start(random: &mut Random) -> Start {
    let mut state = State::default();
    random.fill(&mut state);
    let (kind, register) = (random.next() & 7, random.next() & 7);
    for i in 0..16 {
        if random.next() & 3 != 0 {
            state.set_xmm(i, vector_of(random, kind));
        }
    }
    let mxcsr = match random.next() & 3 {
        0 | 1 => state.mxcsr(),
        // What is not masked, most flags of which are clear.
        2 => random.next() as u32 & 0xffc0,
        _ => random.next() as u32 & 0xffff,
    };
    state.set_mxcsr(mxcsr);
    let mut buffer = [0; BYTES];
    for chunk in buffer.chunks_mut(16) {
        chunk.copy_from_slice(&vector_of(random, kind).to_le_bytes());
    }
    let offset = [0, 4, 8, 1, 0, 0, 16, 13][random.next() as usize & 7];
    Start { state, upper: std::array::from_fn(|_| vector_of(random, register)), buffer, offset }
}

fn model() -> Model {
    Model::parse("glassvisor-v3").expect("a known model")
}

fn machine() -> Machine {
    let mut machine = Machine::new();
    let core = &mut machine.core;
    core.model = Arc::new(model());
    core.cr4 |= cr4::OSXSAVE;
    core.xcr0 = 7;
    core.update_mode();
    machine
}

/// How often each encoding is compared.
fn cases() -> u32 {
    std::env::var("GLASSVISOR_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

#[test]
fn results_flags_and_exceptions_are_those_of_this_processor() {
    if !["avx", "fma", "f16c"].iter().all(|&f| match f {
        "avx" => std::is_x86_feature_detected!("avx"),
        "fma" => std::is_x86_feature_detected!("fma"),
        _ => std::is_x86_feature_detected!("f16c"),
    }) {
        return;
    }
    catch_faults();
    let mut random = Random(0xa5f);
    let (mut native, mut machine, model) = (Native::new(), machine(), model());
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut codes = BTreeSet::new();
    for (bytes, insn) in instructions(&mut random) {
        let lowering = Lowering { insn: &insn, bytes: &bytes, size: CodeSize::Bits64, off: 0, model: &model };
        if avx::lower(&lowering).is_none() {
            failures.insert(format!("{:?}", insn.code()), format!("{bytes:02x?} is missing"));
            continue;
        }
        codes.insert(insn.code() as u32);
        if ESTIMATES.contains(&insn.mnemonic()) {
            continue;
        }
        for _ in 0..cases() {
            let start = start(&mut random);
            if let Err(difference) = compare(&mut native, &mut machine, &bytes, &start) {
                let mxcsr = start.state.mxcsr();
                failures.insert(format!("{:?}", insn.code()), format!("{bytes:02x?} mxcsr {mxcsr:#x}: {difference}"));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} differ: {failures:#?}", failures.len());
    assert!(codes.len() >= 100, "only {} instructions were found", codes.len());
}
