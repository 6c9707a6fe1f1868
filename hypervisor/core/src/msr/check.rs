//! Values that an MSR takes.

use silicon_x86::model::{Feature, Model};

/// A memory type of the MTRRs: UC, WC, WT, WP or WB ("Memory Types That Can Be Encoded in MTRRs").
const fn is_memory_type(value: u64) -> bool {
    matches!(value & 0xff, 0 | 1 | 4 | 5 | 6)
}

/// IA32_MTRR_DEF_TYPE: type, FE (bit 10) and E (bit 11).
pub(super) fn mtrr_default(_: &Model, _: u32, value: u64) -> bool {
    value & !0xcff == 0 && is_memory_type(value)
}

/// A fixed-range MTRR: eight types.
pub(super) fn mtrr_fixed(_: &Model, _: u32, value: u64) -> bool {
    value.to_le_bytes().iter().all(|&byte| is_memory_type(byte.into()))
}

/// IA32_MTRR_PHYSBASEn and, with odd numbers, IA32_MTRR_PHYSMASKn (V is bit 11).
pub(super) fn mtrr_variable(model: &Model, number: u32, value: u64) -> bool {
    let address = model.physical_mask() & !0xfff;
    if number & 1 == 0 {
        value & !(address | 0xff) == 0 && is_memory_type(value)
    } else {
        value & !(address | 0x800) == 0
    }
}

/// IA32_SPEC_CTRL: the bits that the model has features for.
pub(super) fn spec_ctrl(model: &Model, _: u32, value: u64) -> bool {
    let bits = [(Feature::Ibrs, 1), (Feature::Stibp, 2), (Feature::Ssbd, 4)];
    let allowed: u64 = bits.into_iter().filter(|(feature, _)| model.has(*feature)).map(|(_, bit)| bit).sum();
    value & !allowed == 0
}

/// IA32_MCG_CTL: all or nothing.
pub(super) fn all_or_nothing(_: &Model, _: u32, value: u64) -> bool {
    value == 0 || value == u64::MAX
}

/// IA32_MCi_CTL: all or nothing; kernels leave bits 0 and 10 out on some processors, and need not fail for it.
pub(super) fn bank_control(_: &Model, _: u32, value: u64) -> bool {
    value == 0 || value | 1 << 10 | 1 == u64::MAX
}

/// IA32_MCi_STATUS: software can only clear it.
pub(super) fn zero(_: &Model, _: u32, value: u64) -> bool {
    value == 0
}
