//! Fused multiply-add.

use iced_x86::Mnemonic;
use silicon_float::{F32, F64};

use super::{is_wide, three};
use crate::exec::avx::fma::{Form, Kind, Order, packed, scalar};
use crate::exec::avx::operand::{Memory, Register};
use crate::exec::sse::operand as scalars;
use crate::op::{Exec, Lowering, Op};

/// The handlers of a format, by where source 2 is.
macro_rules! packed {
    ($l:expr, $f:ty, $n:literal) => {
        match (is_wide($l), $l.is_mem(2)) {
            (false, false) => packed::<false, Register, $f, $n> as Exec,
            (false, true) => packed::<false, Memory, $f, $n>,
            (true, false) => packed::<true, Register, $f, $n>,
            (true, true) => packed::<true, Memory, $f, $n>,
        }
    };
}

macro_rules! scalar {
    ($l:expr, $f:ty, $t:ty) => {
        if $l.is_mem(2) { scalar::<scalars::Memory, $f, $t> as Exec } else { scalar::<scalars::Register, $f, $t> }
    };
}

macro_rules! table {
    ($($order:ident $kind:ident: $ps:ident $pd:ident $($ss:ident $sd:ident)?;)*) => {
        /// The op of an instruction of this family.
        #[must_use]
        pub fn lower(l: &Lowering<'_>) -> Option<Op> {
            let (exec, form) = match l.insn.mnemonic() {
                $(
                    Mnemonic::$ps => (packed!(l, F32, 4), Form::encode(Order::$order, Kind::$kind)),
                    Mnemonic::$pd => (packed!(l, F64, 2), Form::encode(Order::$order, Kind::$kind)),
                    $(
                        Mnemonic::$ss => (scalar!(l, F32, u32), Form::encode(Order::$order, Kind::$kind)),
                        Mnemonic::$sd => (scalar!(l, F64, u64), Form::encode(Order::$order, Kind::$kind)),
                    )?
                )*
                _ => return None,
            };
            let mut op = three(l, exec);
            op.imm |= form;
            Some(op)
        }
    };
}

table! {
    F132 Add: Vfmadd132ps Vfmadd132pd Vfmadd132ss Vfmadd132sd;
    F213 Add: Vfmadd213ps Vfmadd213pd Vfmadd213ss Vfmadd213sd;
    F231 Add: Vfmadd231ps Vfmadd231pd Vfmadd231ss Vfmadd231sd;
    F132 Sub: Vfmsub132ps Vfmsub132pd Vfmsub132ss Vfmsub132sd;
    F213 Sub: Vfmsub213ps Vfmsub213pd Vfmsub213ss Vfmsub213sd;
    F231 Sub: Vfmsub231ps Vfmsub231pd Vfmsub231ss Vfmsub231sd;
    F132 NegatedAdd: Vfnmadd132ps Vfnmadd132pd Vfnmadd132ss Vfnmadd132sd;
    F213 NegatedAdd: Vfnmadd213ps Vfnmadd213pd Vfnmadd213ss Vfnmadd213sd;
    F231 NegatedAdd: Vfnmadd231ps Vfnmadd231pd Vfnmadd231ss Vfnmadd231sd;
    F132 NegatedSub: Vfnmsub132ps Vfnmsub132pd Vfnmsub132ss Vfnmsub132sd;
    F213 NegatedSub: Vfnmsub213ps Vfnmsub213pd Vfnmsub213ss Vfnmsub213sd;
    F231 NegatedSub: Vfnmsub231ps Vfnmsub231pd Vfnmsub231ss Vfnmsub231sd;
    F132 AddSub: Vfmaddsub132ps Vfmaddsub132pd;
    F213 AddSub: Vfmaddsub213ps Vfmaddsub213pd;
    F231 AddSub: Vfmaddsub231ps Vfmaddsub231pd;
    F132 SubAdd: Vfmsubadd132ps Vfmsubadd132pd;
    F213 SubAdd: Vfmsubadd213ps Vfmsubadd213pd;
    F231 SubAdd: Vfmsubadd231ps Vfmsubadd231pd;
}
