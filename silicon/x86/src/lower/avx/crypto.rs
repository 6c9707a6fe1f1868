//! VEX forms of AES and PCLMULQDQ: 128 bits, memory operands at any address.

use iced_x86::Mnemonic;

use super::{three, two};
use crate::Core;
use crate::exec::avx::apply;
use crate::exec::avx::operand::{Memory, Register, Source, set_low};
use crate::exec::sse::crypto::{aes, carryless};
use crate::op::{Done, Exec, Lowering, Op};

/// `destination = f(source 1, source 2)`, in words of 32 bits.
macro_rules! words {
    ($l:expr, $f:expr) => {
        if $l.is_mem(2) {
            three($l, |c, o| apply::vector::<false, Memory, [u32; 4], [u32; 4]>(c, o, |a, b, _| $f(a, b)))
        } else {
            three($l, |c, o| apply::vector::<false, Register, [u32; 4], [u32; 4]>(c, o, |a, b, _| $f(a, b)))
        }
    };
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    use Mnemonic as M;
    let unary = |register: Exec, memory: Exec| two(l, if l.is_mem(1) { memory } else { register });
    Some(match l.insn.mnemonic() {
        M::Vaesenc => words!(l, aes::encrypt),
        M::Vaesenclast => words!(l, aes::encrypt_last),
        M::Vaesdec => words!(l, aes::decrypt),
        M::Vaesdeclast => words!(l, aes::decrypt_last),
        M::Vaesimc => unary(
            |c, o| from_source::<Register>(c, o, |b, _| aes::mix_columns_back(b)),
            |c, o| from_source::<Memory>(c, o, |b, _| aes::mix_columns_back(b)),
        ),
        M::Vaeskeygenassist => unary(
            |c, o| from_source::<Register>(c, o, aes::key_assist),
            |c, o| from_source::<Memory>(c, o, aes::key_assist),
        ),
        M::Vpclmulqdq if l.is_mem(2) => {
            three(l, |c, o| apply::vector::<false, Memory, [u64; 2], u128>(c, o, carryless::multiply))
        }
        M::Vpclmulqdq => three(l, |c, o| apply::vector::<false, Register, [u64; 2], u128>(c, o, carryless::multiply)),
        _ => return None,
    })
}

/// `destination = f(source, imm)`.
#[inline(always)]
fn from_source<S: Source>(core: &mut Core, op: &Op, f: impl Fn([u32; 4], u8) -> [u32; 4]) -> Done {
    core.check_avx()?;
    let b = S::half(core, op)?;
    set_low(core, op.a, f(b, op.imm as u8));
    Ok(())
}
