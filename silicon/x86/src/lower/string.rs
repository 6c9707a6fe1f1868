use iced_x86::{Mnemonic as M, Register};
use x86_defs::segment::index;

use crate::exec::string::{self as x, Cmps, Lods, Movs, Once, Rep, Repe, Repne, Scas, Stos};
use crate::op::{CodeSize, Exec, FLAT, Lowering, Op};

/// String instructions.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let (exec, bits): (fn(&Lowering<'_>, u32) -> Exec, u32) = match l.insn.mnemonic() {
        M::Movsb => (moving::<Movs>, 8),
        M::Movsw => (moving::<Movs>, 16),
        // MOVSD and CMPSD are also the names of SSE2 instructions.
        M::Movsd if l.insn.is_string_instruction() => (moving::<Movs>, 32),
        M::Movsq => (moving::<Movs>, 64),
        M::Stosb => (moving::<Stos>, 8),
        M::Stosw => (moving::<Stos>, 16),
        M::Stosd => (moving::<Stos>, 32),
        M::Stosq => (moving::<Stos>, 64),
        M::Lodsb => (moving::<Lods>, 8),
        M::Lodsw => (moving::<Lods>, 16),
        M::Lodsd => (moving::<Lods>, 32),
        M::Lodsq => (moving::<Lods>, 64),
        M::Cmpsb => (comparing::<Cmps>, 8),
        M::Cmpsw => (comparing::<Cmps>, 16),
        M::Cmpsd if l.insn.is_string_instruction() => (comparing::<Cmps>, 32),
        M::Cmpsq => (comparing::<Cmps>, 64),
        M::Scasb => (comparing::<Scas>, 8),
        M::Scasw => (comparing::<Scas>, 16),
        M::Scasd => (comparing::<Scas>, 32),
        M::Scasq => (comparing::<Scas>, 64),
        _ => return None,
    };
    let mut op = l.op_without_operands(exec(l, bits));
    let flat = if l.size == CodeSize::Bits64 { FLAT } else { 0 };
    op.seg = match l.insn.segment_prefix() {
        Register::FS => index::FS as u8,
        Register::GS => index::GS as u8,
        Register::None => index::DS as u8 | flat,
        // 64-bit mode ignores the other prefixes: a fault is #GP, whatever they say.
        _ if l.size == CodeSize::Bits64 => index::DS as u8 | flat,
        other => other.number() as u8 | flat,
    };
    op.b = index::ES as u8 | flat;
    Some(op)
}

fn is_repeated(l: &Lowering<'_>) -> bool {
    l.insn.has_rep_prefix() || l.insn.has_repne_prefix()
}

/// Both prefixes repeat these.
fn moving<S: Once>(l: &Lowering<'_>, bits: u32) -> Exec {
    match (is_repeated(l), l.address_bits()) {
        (true, address) => repeated::<S, Rep>(address, bits),
        (false, address) => single::<S>(address, bits),
    }
}

fn comparing<S: Once>(l: &Lowering<'_>, bits: u32) -> Exec {
    if l.insn.has_repne_prefix() {
        repeated::<S, Repne>(l.address_bits(), bits)
    } else if l.insn.has_rep_prefix() {
        repeated::<S, Repe>(l.address_bits(), bits)
    } else {
        single::<S>(l.address_bits(), bits)
    }
}

macro_rules! by_address {
    ($address:expr, $bits:expr, $f:ident $(, $g:ty)*) => {
        match ($address, $bits) {
            (16, 8) => x::$f::<$($g,)* u8, u16> as Exec,
            (16, 16) => x::$f::<$($g,)* u16, u16>,
            (16, 32) => x::$f::<$($g,)* u32, u16>,
            (16, _) => x::$f::<$($g,)* u64, u16>,
            (32, 8) => x::$f::<$($g,)* u8, u32>,
            (32, 16) => x::$f::<$($g,)* u16, u32>,
            (32, 32) => x::$f::<$($g,)* u32, u32>,
            (32, _) => x::$f::<$($g,)* u64, u32>,
            (_, 8) => x::$f::<$($g,)* u8, u64>,
            (_, 16) => x::$f::<$($g,)* u16, u64>,
            (_, 32) => x::$f::<$($g,)* u32, u64>,
            (..) => x::$f::<$($g,)* u64, u64>,
        }
    };
}

fn single<S: Once>(address: u32, bits: u32) -> Exec {
    by_address!(address, bits, once, S)
}

fn repeated<S: Once, R: x::Repetition>(address: u32, bits: u32) -> Exec {
    by_address!(address, bits, repeat, S, R)
}
