//! AES, PCLMULQDQ and SHA. Memory operands are aligned.

use iced_x86::Mnemonic;

use super::{op, source};
use crate::Core;
use crate::exec::sse::apply;
use crate::exec::sse::crypto::{aes, carryless, sha1, sha256};
use crate::exec::sse::operand::{Memory, Register, Source, get};
use crate::op::{Done, Exec, Lowering, Op};

/// Words of 32 bits by `$f` of destination, source and immediate.
macro_rules! words {
    ($l:expr, $f:expr) => {
        source(
            $l,
            |c, o| apply::vector::<Register, [u32; 4], [u32; 4]>(c, o, $f),
            |c, o| apply::vector::<Memory, [u32; 4], [u32; 4]>(c, o, $f),
        )
    };
}

pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    use Mnemonic as M;
    Some(match l.insn.mnemonic() {
        M::Aesenc => words!(l, |a, b, _| aes::encrypt(a, b)),
        M::Aesenclast => words!(l, |a, b, _| aes::encrypt_last(a, b)),
        M::Aesdec => words!(l, |a, b, _| aes::decrypt(a, b)),
        M::Aesdeclast => words!(l, |a, b, _| aes::decrypt_last(a, b)),
        M::Aesimc => words!(l, |_, b, _| aes::mix_columns_back(b)),
        M::Aeskeygenassist => words!(l, |_, b, imm| aes::key_assist(b, imm)),
        M::Pclmulqdq => source(
            l,
            |c, o| apply::vector::<Register, [u64; 2], u128>(c, o, carryless::multiply),
            |c, o| apply::vector::<Memory, [u64; 2], u128>(c, o, carryless::multiply),
        ),
        M::Sha1rnds4 => words!(l, sha1::rounds),
        M::Sha1nexte => words!(l, |a, b, _| sha1::next_e(a, b)),
        M::Sha1msg1 => words!(l, |a, b, _| sha1::schedule_1(a, b)),
        M::Sha1msg2 => words!(l, |a, b, _| sha1::schedule_2(a, b)),
        M::Sha256rnds2 => {
            // XMM0 is an operand that the encoding does not name.
            let exec: Exec = if l.is_mem(1) { sha256_rounds::<Memory> } else { sha256_rounds::<Register> };
            op(l, exec)
        }
        M::Sha256msg1 => words!(l, |a, b, _| sha256::schedule_1(a, b)),
        M::Sha256msg2 => words!(l, |a, b, _| sha256::schedule_2(a, b)),
        _ => return None,
    })
}

/// SHA256RNDS2: the message words are in XMM0.
fn sha256_rounds<S: Source>(core: &mut Core, op: &Op) -> Done {
    let words = get(core, 0);
    apply::vector::<S, [u32; 4], [u32; 4]>(core, op, |a, b, _| sha256::rounds(a, b, words))
}
