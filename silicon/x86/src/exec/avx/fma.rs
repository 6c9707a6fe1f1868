//! Fused multiply-add. One handler for a format, width and source; [`Form`], in bits 7:0 of the op's immediate, says which
//! of the instructions it is.

use bytemuck::Pod;
use silicon_float::{Float, Mxcsr, sse};
use silicon_memory::Word;

use super::operand::{Source, get, set, set_low, vvvv};
use crate::exec::sse::operand as scalars;
use crate::op::Done;
use crate::{Core, Op};

/// Which operands are multiplied, counted from the destination: the other one is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// Destination and source 2.
    F132 = 0,
    /// Source 1 and the destination.
    F213 = 1,
    /// Source 1 and source 2.
    F231 = 2,
}

/// What happens to the product and the addend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `a * b + c`.
    Add,
    /// `a * b - c`.
    Sub,
    /// `-(a * b) + c`.
    NegatedAdd,
    /// `-(a * b) - c`.
    NegatedSub,
    /// Even lanes subtract, odd lanes add.
    AddSub,
    /// Even lanes add, odd lanes subtract.
    SubAdd,
}

/// An instruction of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(u8);

const NEGATES_PRODUCT: u8 = 4;
const SUBTRACTS_EVEN: u8 = 8;
const SUBTRACTS_ODD: u8 = 16;

impl Form {
    /// The form as it stands in the immediate.
    #[must_use]
    pub fn encode(order: Order, kind: Kind) -> u64 {
        let signs = match kind {
            Kind::Add => 0,
            Kind::Sub => SUBTRACTS_EVEN | SUBTRACTS_ODD,
            Kind::NegatedAdd => NEGATES_PRODUCT,
            Kind::NegatedSub => NEGATES_PRODUCT | SUBTRACTS_EVEN | SUBTRACTS_ODD,
            Kind::AddSub => SUBTRACTS_EVEN,
            Kind::SubAdd => SUBTRACTS_ODD,
        };
        u64::from(order as u8 | signs)
    }

    /// Lane `lane` of the destination.
    #[inline(always)]
    fn lane<F: Float>(self, lane: usize, [x, y, z]: [F::Bits; 3], mxcsr: &mut Mxcsr) -> F::Bits {
        let (mut a, b, mut c) = match self.0 & 3 {
            0 => (x, z, y),
            1 => (y, x, z),
            _ => (y, z, x),
        };
        if self.0 & NEGATES_PRODUCT != 0 {
            a = sse::negate::<F>(a);
        }
        if self.0 & (SUBTRACTS_EVEN << (lane & 1)) != 0 {
            c = sse::negate::<F>(c);
        }
        sse::fma::<F>(a, b, c, mxcsr)
    }

    #[inline(always)]
    fn lanes<F: Float, const N: usize>(
        self,
        x: [F::Bits; N],
        y: [F::Bits; N],
        z: [F::Bits; N],
        mxcsr: &mut Mxcsr,
    ) -> [F::Bits; N] {
        let mut out = x;
        for i in 0..N {
            out[i] = self.lane::<F>(i, [x[i], y[i], z[i]], mxcsr);
        }
        out
    }
}

/// All lanes.
#[inline(always)]
pub fn packed<const WIDE: bool, S: Source, F: Float, const N: usize>(core: &mut Core, op: &Op) -> Done
where
    [F::Bits; N]: Pod,
{
    core.check_avx()?;
    let form = Form(op.imm as u8);
    if WIDE {
        let [z0, z1] = S::both::<[F::Bits; N]>(core, op)?;
        let [x0, x1] = get(core, op.a);
        let [y0, y1] = get(core, vvvv(op));
        let result = core.simd(|m| [form.lanes::<F, N>(x0, y0, z0, m), form.lanes::<F, N>(x1, y1, z1, m)])?;
        set(core, op.a, result);
    } else {
        let z = S::half::<[F::Bits; N]>(core, op)?;
        let ([x, _], [y, _]) = (get(core, op.a), get(core, vvvv(op)));
        let result = core.simd(|m| form.lanes::<F, N>(x, y, z, m))?;
        set_low(core, op.a, result);
    }
    Ok(())
}

/// The lowest lane; the rest of the XMM register stays, and what is above becomes zero.
#[inline(always)]
pub fn scalar<S: scalars::Source, F, T>(core: &mut Core, op: &Op) -> Done
where
    T: Word + Pod,
    F: Float<Bits = T>,
{
    core.check_avx()?;
    let z = S::scalar::<T>(core, op)?;
    let (x, y) = (scalars::low(core, op.a), scalars::low(core, vvvv(op)));
    let result = core.simd(|m| Form(op.imm as u8).lane::<F>(0, [x, y, z], m))?;
    scalars::set_low(core, op.a, result);
    core.fpu.ymm_high[usize::from(op.a & 15)] = 0;
    Ok(())
}
