//! The x87 unit: its 80-bit format, arithmetic, conversions and transcendental functions.
//!
//! Each function is one instruction without its stack: it takes operands and the control word, and returns an
//! [`Outcome`] with the masked response, the exceptions and C1. [`Outcome::reaches`] says whether the value is to be
//! stored, which it is not after some exceptions that are not masked.
//!
//! Source: Intel SDM volume 1, "Programming with the x87 FPU".

mod arithmetic;
mod bcd;
mod compare;
mod constants;
mod control;
mod convert;
mod format;
mod integer;
mod outcome;
mod remainder;
mod scale;
mod source;
mod transcendental;

pub use arithmetic::{add, div, mul, sqrt, sub};
pub use bcd::{from_bcd, to_bcd};
pub use compare::{Class, compare, examine};
pub use constants::{Constant, constant};
pub use control::ControlWord;
pub use convert::{from_f32, from_f64, to_f32, to_f64};
pub use format::F80;
pub use integer::{
    from_i16, from_i32, from_i64, round_to_int, to_i16, to_i16_truncated, to_i32, to_i32_truncated, to_i64,
    to_i64_truncated,
};
pub use outcome::{Destination, Outcome};
pub use remainder::{Remainder, fprem, fprem1};
pub use scale::{Parts, extract, scale};
pub use source::Source;
pub use transcendental::{Pair, f2xm1, fcos, fpatan, fptan, fsin, fsincos, fyl2x, fyl2xp1};
