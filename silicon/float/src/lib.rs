#![forbid(unsafe_code)]
pub mod x87 {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct F80 { pub significand: u64, pub sign_exponent: u16 }
    impl F80 { pub const ZERO: Self = Self { significand: 0, sign_exponent: 0 }; }
}
