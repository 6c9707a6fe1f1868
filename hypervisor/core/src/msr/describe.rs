//! A row of the table in words.

use std::fmt;

use super::{Home, MsrRow, Reset, Write};

impl fmt::Display for MsrRow {
    /// Who keeps the MSR, its value after RESET, and what can be written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Home::Store { reset, write } = self.home else {
            return f.write_str(match self.home {
                Home::Clock => "Part of the guest's clock.",
                Home::LocalApic => "Kept by the local APIC.",
                Home::Paravirtual => "Kept by the paravirtual interfaces.",
                _ => "Kept by the modelled processor, which uses it.",
            });
        };
        match reset {
            Reset::Value(value) => write!(f, "{value:#x} after RESET")?,
            Reset::OfModel(_) => f.write_str("After RESET what the CPU model says")?,
            Reset::WriteOnly => f.write_str("Cannot be read")?,
        }
        match write {
            Write::Refused => f.write_str("; read-only."),
            Write::Ignored => f.write_str("; writes have no effect."),
            Write::Command(bits) => write!(f, "; a write of bits {bits:#x} is a command."),
            Write::Bits { writable: u64::MAX, .. } => f.write_str("; takes any value."),
            Write::Bits { writable, .. } => write!(f, "; bits {writable:#x} can be written."),
            Write::Checked(_) => f.write_str("; takes valid values, others are a general-protection exception."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row;

    #[test]
    fn rows_say_what_a_guest_finds() {
        let text = |number| row(number).map(ToString::to_string);
        assert_eq!(text(0xfe).as_deref(), Some("0x508 after RESET; read-only."));
        assert_eq!(text(0x49).as_deref(), Some("Cannot be read; a write of bits 0x1 is a command."));
        assert_eq!(text(0x8ff).as_deref(), Some("Kept by the local APIC."));
        assert_eq!(text(0x900), None);
    }
}
