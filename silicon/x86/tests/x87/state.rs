//! What an instruction may read or change.

use silicon_float::x87::F80;

/// Bytes of the memory operand.
pub const OPERAND: usize = 128;

/// The state before or after.
#[derive(Clone)]
pub struct State {
    /// ST(0) to ST(7).
    pub stack: [F80; 8],
    pub fcw: u16,
    pub fsw: u16,
    /// Abridged tags of the physical registers.
    pub ftw: u8,
    pub fop: u16,
    /// Relative to the code.
    pub fip: u64,
    pub rflags: u64,
    pub rax: u64,
    pub memory: [u8; OPERAND],
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fcw={:04x} fsw={:04x} ftw={:08b} top={} st=", self.fcw, self.fsw, self.ftw, self.fsw >> 11 & 7)?;
        for st in self.stack {
            write!(f, "{:04x}:{:016x} ", st.sign_exponent, st.significand)?;
        }
        write!(f, "memory={:02x?}", &self.memory[..16])
    }
}

/// How far processors agree on what an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Bit by bit.
    Exact,
    /// Results within two units in the last place.
    LastPlace,
    /// But for the condition codes of a comparison that an exception stops: the manual says they stay, AMD processors
    /// set them.
    ComparisonCodes,
    /// But for RFLAGS in that case, and for C1, which the manual says is cleared and AMD processors leave alone.
    ComparisonFlags,
}

/// The six status flags.
const STATUS: u64 = 0x8d5;
/// ES in the status word.
const PENDING: u16 = 0x80;
/// IE, DE and ZE.
const BEFORE: u16 = 0x07;
/// IE, DE, ZE, OE and UE.
const ALL_BUT_INEXACT: u16 = 0x1f;

impl State {
    /// The same state with all exceptions masked.
    pub fn with_exceptions_masked(mut self) -> Self {
        self.fcw |= 0x3f;
        self.fsw &= !0x8080;
        self
    }

    /// What differs from `native`.
    pub fn differences(&self, native: &Self, agreement: Agreement) -> Vec<String> {
        let close = agreement == Agreement::LastPlace;
        let stopped = self.fsw & native.fsw & !self.fcw & BEFORE != 0;
        let mut all = Vec::new();
        let mut compare = |what: &str, here: u64, there: u64| {
            if here != there {
                all.push(format!("{what}: {here:#x}, {there:#x}"));
            }
        };
        compare("fcw", u64::from(self.fcw), u64::from(native.fcw));
        let ignored = match agreement {
            // Inexact and C1 follow from the last place, and then whether an exception is pending.
            Agreement::LastPlace if self.fsw & native.fsw & !self.fcw & ALL_BUT_INEXACT == 0 => 0x82a0,
            Agreement::LastPlace => 0x0220,
            Agreement::ComparisonCodes if stopped => 0x4500,
            Agreement::ComparisonFlags => 0x0200,
            _ => 0,
        };
        compare("fsw", u64::from(self.fsw & !ignored), u64::from(native.fsw & !ignored));
        compare("ftw", u64::from(self.ftw), u64::from(native.ftw));
        if agreement != Agreement::ComparisonFlags || !stopped {
            compare("rflags", self.rflags & STATUS, native.rflags & STATUS);
        }
        compare("rax", self.rax, native.rax);
        // Some processors save these pointers with a pending exception only.
        if self.fsw & native.fsw & PENDING != 0 {
            compare("fip", self.fip, native.fip);
            compare("fop", u64::from(self.fop), u64::from(native.fop));
        }
        for (i, (here, there)) in self.stack.iter().zip(&native.stack).enumerate() {
            let near = close && distance(*here, *there) <= 2;
            if here != there && !near {
                compare(&format!("st({i}) significand"), here.significand, there.significand);
                compare(&format!("st({i}) sign, exponent"), here.sign_exponent.into(), there.sign_exponent.into());
            }
        }
        if self.memory != native.memory {
            all.push(format!("memory:\n    {:02x?}\n    {:02x?}", self.memory, native.memory));
        }
        all
    }
}

/// Representable numbers between two of the same sign.
fn distance(a: F80, b: F80) -> u128 {
    let place = |v: F80| u128::from(v.sign_exponent & 0x7fff) << 63 | u128::from(v.significand & !(1 << 63));
    if a.is_negative() == b.is_negative() { place(a).abs_diff(place(b)) } else { u128::MAX }
}
