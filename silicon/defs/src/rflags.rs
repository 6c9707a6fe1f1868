//! RFLAGS ("EFLAGS Register").

pub const CF: u64 = 1 << 0;
/// Always one.
pub const FIXED: u64 = 1 << 1;
pub const PF: u64 = 1 << 2;
pub const AF: u64 = 1 << 4;
pub const ZF: u64 = 1 << 6;
pub const SF: u64 = 1 << 7;
pub const TF: u64 = 1 << 8;
pub const IF: u64 = 1 << 9;
pub const DF: u64 = 1 << 10;
pub const OF: u64 = 1 << 11;
pub const IOPL: u64 = 3 << 12;
pub const NT: u64 = 1 << 14;
pub const RF: u64 = 1 << 16;
pub const VM: u64 = 1 << 17;
pub const AC: u64 = 1 << 18;
pub const VIF: u64 = 1 << 19;
pub const VIP: u64 = 1 << 20;
pub const ID: u64 = 1 << 21;
/// The six arithmetic flags.
pub const STATUS: u64 = CF | PF | AF | ZF | SF | OF;
/// Every bit that exists.
pub const DEFINED: u64 = STATUS | FIXED | TF | IF | DF | IOPL | NT | RF | VM | AC | VIF | VIP | ID;
