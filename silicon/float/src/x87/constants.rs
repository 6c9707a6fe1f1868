//! FLD1, FLDZ and the constants that are rounded as the control word says.

use crate::exact::Unrounded;
use crate::flags::Flags;
use crate::x87::control::ControlWord;
use crate::x87::format::F80;
use crate::x87::outcome::deliver;

/// A constant in the unit's read-only memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// FLD1.
    One,
    /// FLDL2T: the binary logarithm of ten.
    Log2Of10,
    /// FLDL2E: the binary logarithm of e.
    Log2OfE,
    /// FLDPI.
    Pi,
    /// FLDLG2: the decimal logarithm of two.
    Log10Of2,
    /// FLDLN2: the natural logarithm of two.
    LnOf2,
    /// FLDZ.
    Zero,
}

/// Pi to 128 bits.
pub(crate) const PI: Unrounded = positive(1, 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1);
/// The binary logarithm of e to 128 bits.
pub(crate) const LOG2_OF_E: Unrounded = positive(0, 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88);
/// The natural logarithm of two to 128 bits.
pub(crate) const LN_OF_2: Unrounded = positive(-1, 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af);
const LOG2_OF_10: Unrounded = positive(1, 0xd49a_784b_cd1b_8afe_492b_f6ff_4daf_db4c);
const LOG10_OF_2: Unrounded = positive(-2, 0x9a20_9a84_fbcf_f798_8f89_59ac_0b7c_9178);

const fn positive(exponent: i32, significand: u128) -> Unrounded {
    Unrounded { negative: false, exponent, significand }
}

/// The instruction that pushes `constant`. It raises nothing and clears C1.
pub fn constant(constant: Constant, control: ControlWord) -> F80 {
    let exact = match constant {
        Constant::One => return F80::ONE,
        Constant::Zero => return F80::ZERO,
        Constant::Log2Of10 => LOG2_OF_10,
        Constant::Log2OfE => LOG2_OF_E,
        Constant::Pi => PI,
        Constant::Log10Of2 => LOG10_OF_2,
        Constant::LnOf2 => LN_OF_2,
    };
    deliver(exact, Flags::NONE, 64, control).value
}
