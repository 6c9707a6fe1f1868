//! Descriptors of the IDT ("IDT Descriptors", "64-Bit Mode IDT").

use crate::exec::segment::descriptor::Descriptor;

/// What a gate of the IDT does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    Task,
    /// Clears RFLAGS.IF.
    Interrupt,
    Trap,
}

/// A gate of the IDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    pub kind: GateKind,
    /// Bytes of each word on the handler's stack: 2, 4 or 8.
    pub bytes: u8,
    pub selector: u16,
    pub offset: u64,
    pub dpl: u8,
    pub present: bool,
    /// Interrupt stack table index, 0 for none (IA-32e mode).
    pub ist: u8,
}

impl Gate {
    /// A gate of a legacy IDT; `None` where the type is not one of an interrupt, trap or task gate.
    #[must_use]
    pub fn legacy(d: Descriptor) -> Option<Self> {
        let (kind, bytes) = match d.system_type()? {
            5 => (GateKind::Task, 4),
            6 => (GateKind::Interrupt, 2),
            7 => (GateKind::Trap, 2),
            14 => (GateKind::Interrupt, 4),
            15 => (GateKind::Trap, 4),
            _ => return None,
        };
        let offset = if bytes == 2 { d.gate_offset() & 0xffff } else { d.gate_offset() };
        Some(Self { kind, bytes, selector: d.gate_selector(), offset, dpl: d.dpl(), present: d.present(), ist: 0 })
    }

    /// A gate of an IA-32e IDT with its upper eight bytes.
    #[must_use]
    pub fn ia32e(d: Descriptor, high: u64) -> Option<Self> {
        let kind = match d.system_type()? {
            14 => GateKind::Interrupt,
            15 => GateKind::Trap,
            _ => return None,
        };
        Some(Self {
            kind,
            bytes: 8,
            selector: d.gate_selector(),
            offset: d.gate_offset() | high << 32,
            dpl: d.dpl(),
            present: d.present(),
            ist: d.gate_low_bits() & 7,
        })
    }
}
