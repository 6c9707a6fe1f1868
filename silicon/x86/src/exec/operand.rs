//! Where integer instructions find their operands, as types: each handler is compiled for its operand kinds and size.
//!
//! LOCK: every locked instruction goes through [`Core::modify`], which is the one place where host atomics belong once
//! logical processors run on several host threads. Until then one thread runs all of them and the plain form is atomic.

use silicon_memory::Word;

use crate::{Core, Leave, Op};

/// A source operand.
pub trait Source {
    fn read<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave>;
}

/// The register in [`Op::a`].
pub struct RegA;
/// The register in [`Op::b`].
pub struct RegB;
/// The immediate.
pub struct Imm;
/// The memory operand.
pub struct Mem;

impl Source for RegA {
    #[inline(always)]
    fn read<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(core.get(op.a))
    }
}

impl Source for RegB {
    #[inline(always)]
    fn read<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(core.get(op.b))
    }
}

impl Source for Imm {
    #[inline(always)]
    fn read<T: Word>(_: &mut Core, op: &Op) -> Result<T, Leave> {
        Ok(T::from_u64(op.imm))
    }
}

impl Source for Mem {
    #[inline(always)]
    fn read<T: Word>(core: &mut Core, op: &Op) -> Result<T, Leave> {
        core.load(op)
    }
}

/// A destination operand, replaced by a function of itself.
pub trait Place {
    /// `f` must not fail, and must not change general registers: where the store fails nothing may have changed.
    fn update<T: Word>(core: &mut Core, op: &Op, f: impl FnOnce(&mut Core, T) -> T) -> Result<(), Leave>;
}

impl Place for RegA {
    #[inline(always)]
    fn update<T: Word>(core: &mut Core, op: &Op, f: impl FnOnce(&mut Core, T) -> T) -> Result<(), Leave> {
        let old = core.get(op.a);
        let new = f(core, old);
        core.set(op.a, new);
        Ok(())
    }
}

impl Place for Mem {
    #[inline(always)]
    fn update<T: Word>(core: &mut Core, op: &Op, f: impl FnOnce(&mut Core, T) -> T) -> Result<(), Leave> {
        core.modify(op, f)
    }
}

/// Bits of `T`.
#[must_use]
pub const fn bits<T: Word>() -> u32 {
    T::BYTES as u32 * 8
}

/// The value sign-extended from its own size.
#[inline(always)]
#[must_use]
pub fn signed<T: Word>(value: T) -> i64 {
    let drop = 64 - bits::<T>();
    ((value.to_u64() << drop) as i64) >> drop
}

/// The handler `$f` for an operand size in bits: `sized!(bits, f)` or `sized!(bits, f, A, B)` for `f::<A, B, T>`.
#[macro_export]
macro_rules! sized {
    ($bits:expr, $($f:ident)::+ $(, $g:ty)*) => {{
        match $bits {
            8 => $($f)::+::<$($g,)* u8> as $crate::op::Exec,
            16 => $($f)::+::<$($g,)* u16>,
            32 => $($f)::+::<$($g,)* u32>,
            _ => $($f)::+::<$($g,)* u64>,
        }
    }};
}

/// Like [`sized!`](crate::sized) for instructions without an 8-bit form.
#[macro_export]
macro_rules! sized_wide {
    ($bits:expr, $($f:ident)::+ $(, $g:ty)*) => {{
        match $bits {
            16 => $($f)::+::<$($g,)* u16> as $crate::op::Exec,
            32 => $($f)::+::<$($g,)* u32>,
            _ => $($f)::+::<$($g,)* u64>,
        }
    }};
}

/// The handler `$f` for a condition code (0-15), `$f::<CODE, ...>`.
#[macro_export]
macro_rules! conditional {
    ($code:expr, $f:ident $(, $g:ty)*) => {{
        let handler: $crate::op::Exec = match $code {
            0 => $f::<0 $(, $g)*>,
            1 => $f::<1 $(, $g)*>,
            2 => $f::<2 $(, $g)*>,
            3 => $f::<3 $(, $g)*>,
            4 => $f::<4 $(, $g)*>,
            5 => $f::<5 $(, $g)*>,
            6 => $f::<6 $(, $g)*>,
            7 => $f::<7 $(, $g)*>,
            8 => $f::<8 $(, $g)*>,
            9 => $f::<9 $(, $g)*>,
            10 => $f::<10 $(, $g)*>,
            11 => $f::<11 $(, $g)*>,
            12 => $f::<12 $(, $g)*>,
            13 => $f::<13 $(, $g)*>,
            14 => $f::<14 $(, $g)*>,
            _ => $f::<15 $(, $g)*>,
        };
        handler
    }};
}
