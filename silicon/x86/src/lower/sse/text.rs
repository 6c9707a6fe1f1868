//! String and text processing, and what saves and restores state.

use iced_x86::Code;

use super::{op, source};
use crate::exec::mmx::emms;
use crate::exec::sse::operand::{Register, Unaligned};
use crate::exec::sse::text::{Explicit32, Explicit64, Implicit, index, mask};
use crate::exec::sse::{fxsave, state, xsave};
use crate::lower::info;
use crate::op::{Exec, Lowering, Op};

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    Some(match l.insn.code() {
        Code::Pcmpistri_xmm_xmmm128_imm8 => source(l, index::<Register, Implicit>, index::<Unaligned, Implicit>),
        Code::Pcmpistrm_xmm_xmmm128_imm8 => source(l, mask::<Register, Implicit>, mask::<Unaligned, Implicit>),
        Code::Pcmpestri_xmm_xmmm128_imm8 => source(l, index::<Register, Explicit32>, index::<Unaligned, Explicit32>),
        Code::Pcmpestrm_xmm_xmmm128_imm8 => source(l, mask::<Register, Explicit32>, mask::<Unaligned, Explicit32>),
        Code::Pcmpestri64_xmm_xmmm128_imm8 => source(l, index::<Register, Explicit64>, index::<Unaligned, Explicit64>),
        Code::Pcmpestrm64_xmm_xmmm128_imm8 => source(l, mask::<Register, Explicit64>, mask::<Unaligned, Explicit64>),

        Code::Ldmxcsr_m32 => op(l, state::ldmxcsr),
        Code::Stmxcsr_m32 => op(l, state::stmxcsr),
        Code::Fxsave_m512byte => op(l, fxsave::fxsave::<false>),
        Code::Fxsave64_m512byte => op(l, fxsave::fxsave::<true>),
        Code::Fxrstor_m512byte => op(l, fxsave::fxrstor::<false>),
        Code::Fxrstor64_m512byte => op(l, fxsave::fxrstor::<true>),
        Code::Xsave_mem => op(l, xsave::xsave::<false>),
        Code::Xsave64_mem => op(l, xsave::xsave::<true>),
        Code::Xsaveopt_mem => op(l, xsave::xsaveopt::<false>),
        Code::Xsaveopt64_mem => op(l, xsave::xsaveopt::<true>),
        Code::Xsavec_mem => op(l, xsave::xsavec::<false>),
        Code::Xsavec64_mem => op(l, xsave::xsavec::<true>),
        Code::Xsaves_mem => with_information(l, xsave::xsaves::<false>),
        Code::Xsaves64_mem => with_information(l, xsave::xsaves::<true>),
        Code::Xrstor_mem => op(l, xsave::xrstor::<false>),
        Code::Xrstor64_mem => op(l, xsave::xrstor::<true>),
        Code::Xrstors_mem => with_information(l, xsave::xrstors::<false>),
        Code::Xrstors64_mem => with_information(l, xsave::xrstors::<true>),
        Code::Emms => op(l, emms),
        _ => return None,
    })
}

/// An op that may exit with instruction information.
fn with_information(l: &Lowering<'_>, exec: Exec) -> Op {
    let mut op = op(l, exec);
    op.imm = u64::from(info::operand(l, &op));
    op
}
