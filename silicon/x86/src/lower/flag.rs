use iced_x86::Mnemonic as M;

use crate::exec::{decimal, flag};
use crate::op::{Exec, Lowering, Op};

/// Flag control and decimal adjustment.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let exec: Exec = match l.insn.mnemonic() {
        M::Clc => flag::clc,
        M::Stc => flag::stc,
        M::Cmc => flag::cmc,
        M::Cld => flag::cld,
        M::Std => flag::std,
        M::Lahf => flag::lahf,
        M::Sahf => flag::sahf,
        M::Salc => flag::salc,
        M::Daa => decimal::daa,
        M::Das => decimal::das,
        M::Aaa => decimal::aaa,
        M::Aas => decimal::aas,
        M::Aam => decimal::aam,
        M::Aad => decimal::aad,
        _ => return None,
    };
    let mut op = l.op(exec);
    if l.insn.op_count() > 0 {
        op.imm = l.imm(0);
    }
    Some(op)
}
