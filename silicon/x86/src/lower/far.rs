//! Far transfers of control.

use iced_x86::{Code, Instruction, Mnemonic};

use crate::exec::far::{call, interrupt, iret, jump, ret, syscall, sysenter};
use crate::op::{Exec, Lowering, Op};

/// Whether the instruction ends its block. All of them do.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Int | Mnemonic::Int3 | Mnemonic::Into | Mnemonic::Int1 | Mnemonic::Syscall | Mnemonic::Sysenter
    )
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let exec: Exec = match l.insn.code() {
        Code::Jmp_ptr1616 | Code::Jmp_ptr1632 => return Some(pointer(l, jump::immediate)),
        Code::Call_ptr1616 => return Some(pointer(l, call::immediate::<u16>)),
        Code::Call_ptr1632 => return Some(pointer(l, call::immediate::<u32>)),
        Code::Jmp_m1616 => jump::memory::<u16>,
        Code::Jmp_m1632 => jump::memory::<u32>,
        Code::Jmp_m1664 => jump::memory::<u64>,
        Code::Call_m1616 => call::memory::<u16>,
        Code::Call_m1632 => call::memory::<u32>,
        Code::Call_m1664 => call::memory::<u64>,
        Code::Retfw | Code::Retfw_imm16 => ret::ret::<u16>,
        Code::Retfd | Code::Retfd_imm16 => ret::ret::<u32>,
        Code::Retfq | Code::Retfq_imm16 => ret::ret::<u64>,
        Code::Iretw => iret::iret::<u16>,
        Code::Iretd => iret::iret::<u32>,
        Code::Iretq => iret::iret::<u64>,
        Code::Int_imm8 => interrupt::int_n,
        Code::Int3 => interrupt::int3,
        Code::Into => interrupt::into,
        Code::Int1 => interrupt::int1,
        Code::Syscall => syscall::syscall,
        Code::Sysretd => syscall::sysret_32,
        Code::Sysretq => syscall::sysret_64,
        Code::Sysenter => sysenter::sysenter,
        Code::Sysexitd => sysenter::sysexit_32,
        Code::Sysexitq => sysenter::sysexit_64,
        _ => return None,
    };
    let mut op = l.op(exec);
    if l.insn.op_count() == 1 && l.is_imm(0) {
        op.imm = l.imm(0);
    }
    Some(op)
}

fn pointer(l: &Lowering<'_>, exec: Exec) -> Op {
    let offset = if matches!(l.insn.code(), Code::Jmp_ptr1616 | Code::Call_ptr1616) {
        u64::from(l.insn.far_branch16())
    } else {
        u64::from(l.insn.far_branch32())
    };
    Op { imm: u64::from(l.insn.far_branch_selector()) << 32 | offset, ..l.op(exec) }
}
