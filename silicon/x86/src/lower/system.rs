//! Instructions of the operating system.

use iced_x86::{Code, Instruction, Mnemonic, Register};
use x86_defs::vmx::ExitReason;

use super::info;
use crate::exec::system::{control, debug, flag, identity, idle, keys, msr, random, translation, tsc, vmx};
use crate::op::{CodeSize, Exec, Lowering, Op, ZERO};

/// Whether the instruction ends its block although it is no branch: it changes the mode, IF, the translation or code,
/// or it reads the time.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    use Mnemonic as M;
    match insn.mnemonic() {
        M::Sti
        | M::Hlt
        | M::Pause
        | M::Mwait
        | M::Rdtsc
        | M::Rdtscp
        | M::Rdmsr
        | M::Wrmsr
        | M::Lmsw
        | M::Clts
        | M::Invlpg
        | M::Invpcid
        | M::Xsetbv
        | M::Vmfunc
        | M::Cpuid => true,
        M::Mov => insn.op_register(0).is_cr() || insn.op_register(0).is_dr(),
        _ => vmx_reason(insn.mnemonic()).is_some(),
    }
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    plain(l)
        .or_else(|| moves(l))
        .or_else(|| status_word(l))
        .or_else(|| with_information(l))
        .or_else(|| vmx_instruction(l))
}

fn plain(l: &Lowering<'_>) -> Option<Op> {
    use Mnemonic as M;
    let exec: Exec = match l.insn.mnemonic() {
        M::Cli => flag::cli,
        M::Sti => flag::sti,
        M::Clac => flag::clac,
        M::Stac => flag::stac,
        M::Hlt => idle::hlt,
        M::Pause => idle::pause,
        M::Mwait => idle::mwait,
        M::Monitor => return Some(monitor(l)),
        M::Cpuid => identity::cpuid,
        M::Xgetbv => identity::xgetbv,
        M::Xsetbv => identity::xsetbv,
        M::Getsec | M::Getsecq => identity::getsec,
        M::Rdtsc => tsc::rdtsc,
        M::Rdtscp => tsc::rdtscp,
        M::Rdpmc => tsc::rdpmc,
        M::Rdmsr => msr::rdmsr,
        M::Wrmsr => msr::wrmsr,
        M::Clts => control::clts,
        M::Rdpkru => keys::rdpkru,
        M::Wrpkru => keys::wrpkru,
        M::Invlpg => translation::invlpg,
        M::Invd => translation::invd,
        M::Wbinvd | M::Wbnoinvd => translation::wbinvd,
        M::Vmcall => vmx::vmcall,
        M::Vmfunc => vmx::vmfunc,
        M::Rdpid => return Some(Op { a: l.reg(0), ..l.op(identity::rdpid) }),
        _ => return None,
    };
    Some(l.op(exec))
}

/// MONITOR: the address is DS:rAX, or in the segment of a prefix.
fn monitor(l: &Lowering<'_>) -> Op {
    let mut op = l.op(idle::monitor);
    let segment = match l.insn.segment_prefix() {
        Register::None => Register::DS,
        other => other,
    };
    let flat = l.size == CodeSize::Bits64 && !matches!(segment, Register::FS | Register::GS);
    op.seg = segment.number() as u8 | if flat { crate::op::FLAT } else { 0 };
    op.base = 0;
    op.index = ZERO;
    op.disp = 0;
    op.scale_drop = ((64 - l.address_bits()) as u8) << 2;
    op
}

fn moves(l: &Lowering<'_>) -> Option<Op> {
    let (to, from) = (l.insn.op_register(0), l.insn.op_register(1));
    let exec: Exec = match l.insn.code() {
        Code::Mov_cr_r32 | Code::Mov_cr_r64 => match to.number() {
            0 => control::to_cr0,
            2 => control::to_cr2,
            3 => control::to_cr3,
            4 => control::to_cr4,
            8 => control::to_cr8,
            _ => return None,
        },
        Code::Mov_r32_cr | Code::Mov_r64_cr => match from.number() {
            0 => control::from_cr0,
            2 => control::from_cr2,
            3 => control::from_cr3,
            4 => control::from_cr4,
            8 => control::from_cr8,
            _ => return None,
        },
        Code::Mov_dr_r32 | Code::Mov_dr_r64 => debug::to_dr,
        Code::Mov_r32_dr | Code::Mov_r64_dr => debug::from_dr,
        _ => return None,
    };
    Some(Op { a: l.reg(0), b: l.reg(1), ..l.op(exec) })
}

fn status_word(l: &Lowering<'_>) -> Option<Op> {
    let memory = l.is_mem(0);
    let exec: Exec = match (l.insn.mnemonic(), memory) {
        (Mnemonic::Lmsw, true) => control::lmsw_memory,
        (Mnemonic::Lmsw, false) => return Some(Op { b: l.reg(0), ..l.op(control::lmsw_register) }),
        (Mnemonic::Smsw, true) => control::smsw_memory,
        (Mnemonic::Smsw, false) => match l.bits(0) {
            16 => control::smsw_register::<u16>,
            32 => control::smsw_register::<u32>,
            _ => control::smsw_register::<u64>,
        },
        _ => return None,
    };
    Some(if memory { l.op(exec) } else { Op { a: l.reg(0), ..l.op(exec) } })
}

fn with_information(l: &Lowering<'_>) -> Option<Op> {
    let bits = l.bits(0);
    let sized = |word: Exec, double: Exec, quad: Exec| match bits {
        16 => word,
        32 => double,
        _ => quad,
    };
    let exec = match l.insn.mnemonic() {
        Mnemonic::Rdrand => sized(random::rdrand::<u16>, random::rdrand::<u32>, random::rdrand::<u64>),
        Mnemonic::Rdseed => sized(random::rdseed::<u16>, random::rdseed::<u32>, random::rdseed::<u64>),
        Mnemonic::Invpcid => {
            let mut op = l.op(translation::invpcid);
            op.a = l.reg(0);
            op.imm = u64::from(info::operand(l, &op) | info::reg2(op.a));
            return Some(op);
        }
        _ => return None,
    };
    let mut op = l.op(exec);
    op.a = l.reg(0);
    // Operand size in bits 12:11.
    op.imm = u64::from(info::reg1(op.a) | (bits.trailing_zeros() - 4) << 11);
    Some(op)
}

fn vmx_reason(mnemonic: Mnemonic) -> Option<ExitReason> {
    Some(match mnemonic {
        Mnemonic::Vmcall => ExitReason::Vmcall,
        Mnemonic::Vmclear => ExitReason::Vmclear,
        Mnemonic::Vmlaunch => ExitReason::Vmlaunch,
        Mnemonic::Vmptrld => ExitReason::Vmptrld,
        Mnemonic::Vmptrst => ExitReason::Vmptrst,
        Mnemonic::Vmread => ExitReason::Vmread,
        Mnemonic::Vmresume => ExitReason::Vmresume,
        Mnemonic::Vmwrite => ExitReason::Vmwrite,
        Mnemonic::Vmxoff => ExitReason::Vmxoff,
        Mnemonic::Vmxon => ExitReason::Vmxon,
        Mnemonic::Invept => ExitReason::Invept,
        Mnemonic::Invvpid => ExitReason::Invvpid,
        _ => return None,
    })
}

/// VMX instructions but VMCALL. `imm` bit 32: there is a memory operand.
fn vmx_instruction(l: &Lowering<'_>) -> Option<Op> {
    let reason = vmx_reason(l.insn.mnemonic())?;
    let exec: Exec = if reason == ExitReason::Vmxon { vmx::vmxon } else { vmx::vmx_instruction };
    let mut op = l.op(exec);
    op.a = reason as u8;
    if l.insn.op_count() == 0 {
        return Some(op);
    }
    let memory = (0..l.insn.op_count()).any(|n| l.is_mem(n));
    let mut information = info::operand(l, &op);
    match l.insn.mnemonic() {
        // Reg1 is the operand that may be in memory, Reg2 the field encoding.
        Mnemonic::Vmread => {
            information |= info::reg2(l.reg(1)) | if memory { 0 } else { info::reg1(l.reg(0)) };
        }
        Mnemonic::Vmwrite => {
            information |= info::reg2(l.reg(0)) | if memory { 0 } else { info::reg1(l.reg(1)) };
        }
        Mnemonic::Invept | Mnemonic::Invvpid => information |= info::reg2(l.reg(0)),
        _ => {}
    }
    op.imm = u64::from(information) | u64::from(memory) << 32;
    Some(op)
}
