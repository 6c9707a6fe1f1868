//! IN, OUT, INS, OUTS.

use iced_x86::{Mnemonic, Register};

use super::info;
use crate::exec::io::{port, string};
use crate::op::{Exec, FLAT, Lowering, Op};

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    match l.insn.mnemonic() {
        Mnemonic::In => {
            let exec: Exec = match l.bits(0) {
                8 => port::port_in::<u8>,
                16 => port::port_in::<u16>,
                _ => port::port_in::<u32>,
            };
            Some(Op { imm: port_operand(l, 1), ..l.op(exec) })
        }
        Mnemonic::Out => {
            let exec: Exec = match l.bits(1) {
                8 => port::port_out::<u8>,
                16 => port::port_out::<u16>,
                _ => port::port_out::<u32>,
            };
            Some(Op { imm: port_operand(l, 0), ..l.op(exec) })
        }
        Mnemonic::Insb => Some(string(l, string::ins::<u8>, Register::ES)),
        Mnemonic::Insw => Some(string(l, string::ins::<u16>, Register::ES)),
        Mnemonic::Insd => Some(string(l, string::ins::<u32>, Register::ES)),
        Mnemonic::Outsb => Some(string(l, string::outs::<u8>, l.insn.memory_segment())),
        Mnemonic::Outsw => Some(string(l, string::outs::<u16>, l.insn.memory_segment())),
        Mnemonic::Outsd => Some(string(l, string::outs::<u32>, l.insn.memory_segment())),
        _ => None,
    }
}

fn port_operand(l: &Lowering<'_>, operand: u32) -> u64 {
    if l.is_imm(operand) { (l.imm(operand) & 0xff) | 1 << 16 } else { 0 }
}

fn string(l: &Lowering<'_>, exec: Exec, segment: Register) -> Op {
    let mut op = l.op(exec);
    op.scale_drop = ((64 - l.address_bits()) as u8) << 2;
    let flat = l.size == crate::op::CodeSize::Bits64 && !matches!(segment, Register::FS | Register::GS);
    op.seg = segment.number() as u8 | if flat { FLAT } else { 0 };
    let information = info::address_size(&op) << 7 | (segment.number() as u32) << 15;
    let rep = l.insn.has_rep_prefix() || l.insn.has_repne_prefix();
    op.imm = u64::from(information) | u64::from(rep) << 32;
    op
}
