//! Where model and processor differ, apart from what the architecture leaves undefined.

use iced_x86::{Code, Instruction, Mnemonic as M, OpKind, Register, RflagsBits};
use silicon_x86::model::Model;
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::index;

use super::case::Slot;
use super::exceptions::host_is_amd;
use super::modelled::{End, Modelled};
use super::place::{DATA, is_code};

/// What becomes of the x87 condition codes and the flags: bits that are not compared.
#[derive(Clone, Copy, Default)]
pub struct Undefined {
    pub flags: u64,
    pub fsw: u16,
}

/// Names of the general registers, by number.
pub const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// Where the addresses end that Linux gives to processes.
const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// Flags that are compared.
const FLAGS: u64 = rflags::STATUS | rflags::DF | rflags::AC | rflags::ID | rflags::NT | rflags::TF;

/// iced's flags as bits of RFLAGS.
pub fn flag_bits(bits: u32) -> u64 {
    [
        (RflagsBits::CF, rflags::CF),
        (RflagsBits::PF, rflags::PF),
        (RflagsBits::AF, rflags::AF),
        (RflagsBits::ZF, rflags::ZF),
        (RflagsBits::SF, rflags::SF),
        (RflagsBits::OF, rflags::OF),
        (RflagsBits::DF, rflags::DF),
        (RflagsBits::AC, rflags::AC),
    ]
    .iter()
    .filter(|(from, _)| bits & from != 0)
    .fold(0, |all, (_, to)| all | to)
}

/// x87 condition codes that `insn` leaves undefined.
fn condition_codes(insn: &Instruction) -> u16 {
    [(RflagsBits::C0, 8), (RflagsBits::C1, 9), (RflagsBits::C2, 10), (RflagsBits::C3, 14)]
        .iter()
        .filter(|(from, _)| insn.rflags_undefined() & from != 0)
        .fold(0, |all, (_, bit)| all | 1 << bit)
}

fn may_do_nothing(insn: &Instruction) -> bool {
    let shift = matches!(
        insn.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
    );
    shift || insn.has_rep_prefix() || insn.has_repne_prefix()
}

/// What is undefined after the first `count` instructions.
fn undefined(slot: &Slot, count: u32) -> Undefined {
    let mut undefined = Undefined::default();
    for insn in slot.instructions().into_iter().take(count as usize) {
        // A count of zero, of a repetition or a shift, changes no flag.
        let surely = if may_do_nothing(&insn) { 0 } else { flag_bits(insn.rflags_modified()) };
        undefined.flags = undefined.flags & !surely | flag_bits(insn.rflags_undefined());
        undefined.fsw |= condition_codes(&insn);
        if matches!(insn.mnemonic(), M::Fcomi | M::Fcomip | M::Fucomi | M::Fucomip) {
            // C1: cleared on Intel, kept on AMD.
            undefined.fsw |= 1 << 9;
        }
    }
    undefined
}

/// Whether the result of `insn` on these registers is undefined, so that the case cannot be compared.
pub fn is_undefined(insn: &Instruction, slot: &Slot) -> bool {
    let count = |operand: u32| match insn.op_kind(operand) {
        OpKind::Register => slot.before.gpr[1] as u32 & 31,
        _ => u32::from(insn.immediate8()) & 31,
    };
    match insn.code() {
        // SHLD and SHRD: "If the count is greater than the operand size, the result is undefined."
        Code::Shld_rm16_r16_imm8 | Code::Shrd_rm16_r16_imm8 | Code::Shld_rm16_r16_CL | Code::Shrd_rm16_r16_CL => {
            count(2) > 16
        }
        _ => false,
    }
}

/// What differs, in words; empty where nothing does.
pub fn differences(slot: &Slot, model: &Modelled, end: End) -> Vec<String> {
    let mut out = Vec::new();
    let mut undefined = undefined(slot, model.instructions);
    let faulted = matches!(end, End::Fault(..));
    let last = instruction(slot, model.instructions - u32::from(!faulted && model.instructions > 0));
    compare_ends(slot, model.instructions, end, &mut out);
    if may_complete_elsewhere(slot, &last, faulted) {
        return Vec::new();
    }
    let mmx = if goes_to_mmx_early(&last, faulted) { TOP } else { 0 };
    undefined.fsw |= mmx;
    let (core, fpu, after) = (&model.core, &model.core.fpu, &slot.after);
    let mut check = |name: &str, model: u128, native: u128| {
        if model != native {
            out.push(format!("{name} is {model:#x}, not {native:#x}"));
        }
    };
    for (i, name) in NAMES.iter().enumerate() {
        // POPA pops into registers before it faults, on AMD; the stack pointer stays, so it can be restarted.
        if faulted && host_is_amd() && i != 4 && matches!(last.mnemonic(), M::Popa | M::Popad) {
            continue;
        }
        // In compatibility mode, upper halves are what the processor makes of them.
        let mask = if i < 8 { slot.mode.mask() } else { u64::MAX };
        check(name, (core.gpr[i] & mask).into(), (after.gpr[i] & mask).into());
    }
    let mask = FLAGS & !undefined.flags;
    check("flags", (core.rflags() & mask).into(), (after.rflags & mask).into());
    if slot.changes_gs != 0 {
        check("gs base", core.seg[index::GS].base.into(), slot.outcome.gs_base.into());
    }
    check("fcw", fpu.fcw.into(), after.fcw().into());
    let mask = !undefined.fsw;
    check("fsw", (fpu.fsw & mask).into(), (after.fsw() & mask).into());
    if mmx == 0 {
        check("ftw", fpu.ftw.into(), after.ftw().into());
    }
    if after.mxcsr() & AMD_MISALIGNED == 0 {
        check("mxcsr", fpu.mxcsr.into(), after.mxcsr().into());
    }
    let top = usize::from(after.fsw() >> 11 & 7);
    for i in 0..8 {
        // By register, not by its place on the stack.
        let st = fpu.st[i];
        let i = i.wrapping_sub(top) & 7;
        let (significand, sign_exponent) = after.st(i);
        let all = |s: u64, e: u16| u128::from(e) << 64 | u128::from(s);
        check(&format!("st{i}"), all(st.significand, st.sign_exponent), all(significand, sign_exponent));
    }
    for i in 0..16 {
        let [low, high] = if faulted { unfinished_gather(&last, i) } else { [u128::MAX; 2] };
        check(&format!("xmm{i}"), fpu.xmm[i] & low, after.xmm(i) & low);
        check(&format!("bits 255:128 of ymm{i}"), fpu.ymm_high[i] & high, after.ymm_high[i] & high);
    }
    let data = model.data();
    if data != slot.data_after {
        let at = data.iter().zip(&slot.data_after).position(|(a, b)| a != b).expect("they differ");
        let end = (at + 16).min(data.len());
        let address = DATA + at as u64;
        out.push(format!("[{address:#x}] is {:02x?}, not {:02x?}", &data[at..end], &slot.data_after[at..end]));
    }
    out
}

/// Whether makers differ in whether the last instruction faults at all.
fn may_complete_elsewhere(slot: &Slot, last: &Instruction, faulted: bool) -> bool {
    match last.mnemonic() {
        // What bytes that are not stored raise.
        M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => !faulted && slot.outcome.vector >= u32::from(vector::SS),
        // It asks whether it may write only where it is about to, on AMD.
        M::Arpl => faulted && host_is_amd(),
        // Their operand may be anywhere on AMD; on Intel, it is aligned as that of every SSE instruction.
        M::Sha1msg1 | M::Sha1msg2 | M::Sha1nexte | M::Sha1rnds4 | M::Sha256msg1 | M::Sha256msg2 | M::Sha256rnds2 => {
            faulted && host_is_amd() && last.op1_kind() == OpKind::Memory
        }
        _ => false,
    }
}

/// Number `i` of the instructions of a case, or the last.
fn instruction(slot: &Slot, i: u32) -> Instruction {
    let all = slot.instructions();
    all[(i as usize).min(all.len() - 1)]
}

/// Bits of vector register `i` that are compared when `insn` has faulted, by half.
///
/// A gather that faults has made a part of its result. Makers differ in what they have done by then to what no element of
/// it needs: the bits of the mask that do not count, and the bits above the result.
fn unfinished_gather(insn: &Instruction, i: usize) -> [u128; 2] {
    let Some(indices_of_64) = insn.vsib() else {
        return [u128::MAX; 2];
    };
    let element = insn.memory_size().size();
    let index = if indices_of_64 { 8 } else { 4 };
    let elements = (insn.op0_register().size() / element).min(insn.memory_index().size() / index);
    let bits = |used: fn(usize) -> u8| {
        let mut mask = [0_u8; 32];
        for (at, byte) in mask[..elements * element].iter_mut().enumerate() {
            *byte = used((at + 1) % element);
        }
        [0, 16].map(|at| u128::from_le_bytes(mask[at..at + 16].try_into().expect("sixteen bytes")))
    };
    if i == insn.op0_register().number() {
        bits(|_| 0xff)
    } else if i == insn.op2_register().number() {
        bits(|from_top| if from_top == 0 { 0x80 } else { 0 })
    } else {
        [u128::MAX; 2]
    }
}

/// MXCSR.MM.
const AMD_MISALIGNED: u32 = 1 << 17;

/// TOP of the x87 status word.
const TOP: u16 = 7 << 11;

/// Whether makers differ in when, or whether, x87 goes to MMX mode: before an exception of the same instruction, and for
/// CVTPI2PS and CVTPI2PD from memory.
fn goes_to_mmx_early(insn: &Instruction, faulted: bool) -> bool {
    match insn.mnemonic() {
        M::Cvtpd2pi | M::Cvtps2pi | M::Cvttpd2pi | M::Cvttps2pi | M::Maskmovq => faulted,
        M::Cvtpi2ps | M::Cvtpi2pd => faulted || insn.op1_kind() == OpKind::Memory,
        _ => false,
    }
}

fn compare_ends(slot: &Slot, count: u32, end: End, out: &mut Vec<String>) {
    let native = &slot.outcome;
    let base = slot.mode.code_base();
    let trapped = native.vector == u32::from(vector::BP) && is_code(native.rip.wrapping_sub(1).wrapping_add(base));
    match end {
        End::At(rip) if is_code(rip.wrapping_add(base)) => {
            if !trapped {
                out.push(format!("completed, not {native:x?}"));
            } else if rip != native.rip - 1 {
                out.push(format!("rip is {rip:#x}, not {:#x}", native.rip - 1));
            }
        }
        // The fetch at the target of a branch faults.
        End::At(rip) => {
            let fetch = match u8::try_from(native.vector) {
                Ok(vector::PF) => native.rip == rip,
                Ok(vector::GP) => !Model::default().is_canonical(rip),
                _ => false,
            };
            if !fetch {
                out.push(format!("branched to {rip:#x}, not {native:x?}"));
            }
        }
        End::Fault(fault, rip) => {
            let same_vector = native.vector == u32::from(fault.vector);
            // A branch to a non-canonical address faults before it on Intel, and after it on AMD.
            let same_rip = native.rip == rip || host_is_amd() && !Model::default().is_canonical(native.rip);
            let error = fault.error_code.unwrap_or(0);
            // The kernel hides what its own addresses hold.
            let hidden = fault.vector == vector::PF && fault.address >= TASK_SIZE;
            let insn = instruction(slot, count);
            match insn.mnemonic() {
                // Whether ten bytes are beyond a limit before a part of them is in no page, too.
                M::Fld | M::Fstp | M::Fbld
                    if !slot.mode.is_64()
                        && same_rip
                        && insn.memory_size().size() == 10
                        && native.vector >= u32::from(vector::SS) =>
                {
                    return;
                }
                // Whether alignment or the limit of the stack segment is first is the maker's choice.
                _ if same_rip && fault.vector == vector::SS && native.vector == u32::from(vector::GP) => return,
                // Which of the two operands is first is the maker's choice.
                M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq if same_rip && native.vector >= u32::from(vector::SS) => {
                    return;
                }
                // So is how ten bytes are split.
                M::Fbstp if same_rip && native.vector >= u32::from(vector::SS) => return,
                // So is whether the address is that of the first byte stored or of the operand.
                M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu if same_rip && native.vector >= u32::from(vector::SS) => {
                    return;
                }
                // A target that is not canonical faults before the push on Intel, and after it on AMD.
                M::Call if host_is_amd() && fault.vector == vector::GP && native.vector >= u32::from(vector::SS) => {
                    return;
                }
                // AMD has another bit, that misaligned operands are allowed.
                M::Ldmxcsr | M::Vldmxcsr if host_is_amd() && slot.after.mxcsr() & AMD_MISALIGNED != 0 => return,
                // AMD wants the address in its segment to be canonical too.
                _ if host_is_amd() && has_gs(&insn) && native.vector == u32::from(vector::GP) && same_rip => return,
                _ => {}
            }
            if !same_vector || !same_rip || !hidden && native.error != u64::from(error) {
                out.push(format!("{fault:x?} at {rip:#x}, not {native:x?}"));
            } else if fault.vector == vector::PF && fault.address != native.address {
                out.push(format!("page fault of {:#x}, not {:#x}", fault.address, native.address));
            }
        }
        End::Other(what) => out.push(format!("{what}, not {native:x?}")),
    }
}

fn has_gs(insn: &Instruction) -> bool {
    insn.segment_prefix() == Register::GS
}

/// Whether a leading instruction leaves nothing undefined that the next one reads.
pub fn may_lead(insn: &Instruction, next: &Instruction) -> bool {
    insn.rflags_undefined() & next.rflags_read() == 0
        // Its count must be known before.
        && !matches!(next.mnemonic(), M::Shld | M::Shrd)
        && !matches!(insn.mnemonic(), M::Bsf | M::Bsr | M::Shld | M::Shrd | M::Bswap)
}
