//! Model-specific registers: which the guest has, and what it may write to them.
//!
//! | file | what |
//! |---|---|
//! | `table` | every register by number: name, value after reset, what may be written, who keeps it |
//! | `check` | values that are valid |
//! | `describe` | a row in words |
//!
//! A register that is not in the table does not exist: an access is #GP(0).

mod check;
mod describe;
mod table;

use std::collections::BTreeMap;

use silicon_x86::model::Model;

pub use table::{Home, MACHINE_CHECK_BANKS, MsrRow, Reset, TABLE, Write, row};

/// Values of the MSRs that have no other home: what firmware and kernels set and read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MsrStore {
    values: BTreeMap<u32, u64>,
    pub tsc_adjust: u64,
}

impl MsrStore {
    /// Values at power-up.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        let mut store = Self::default();
        for row in TABLE {
            let Home::Store { reset, .. } = row.home else { continue };
            let value = match reset {
                Reset::Value(value) => Some(value),
                Reset::OfModel(value) => value(model),
                Reset::WriteOnly => None,
            };
            if let Some(value) = value {
                store.values.extend(row.numbers().map(|number| (number, value)));
            }
        }
        store
    }

    /// A stored value; `None` where the MSR does not exist or cannot be read.
    #[must_use]
    pub fn read(&self, number: u32) -> Option<u64> {
        self.values.get(&number).copied()
    }

    /// Stores a value that the guest writes; `false` where the MSR does not exist or does not take it.
    #[must_use]
    pub fn write(&mut self, model: &Model, number: u32, value: u64) -> bool {
        let Some(MsrRow { home: Home::Store { write, .. }, .. }) = row(number) else { return false };
        let kept = self.values.get_mut(&number);
        match (write, kept) {
            (Write::Ignored, _) => true,
            (Write::Command(bits), _) => value & !bits == 0,
            (Write::Bits { writable, ignored }, Some(kept)) => {
                let valid = (value ^ *kept) & !(writable | ignored) == 0;
                if valid {
                    *kept = value & writable | *kept & !writable;
                }
                valid
            }
            (Write::Checked(check), Some(kept)) => {
                let valid = check(model, number, value);
                if valid {
                    *kept = value;
                }
                valid
            }
            _ => false,
        }
    }

    /// Whether CPUID faults outside of level 0 ("MSR_MISC_FEATURES_ENABLES").
    #[must_use]
    pub fn cpuid_faults(&self) -> bool {
        self.read(x86_defs::msr::MSR_MISC_FEATURES_ENABLES).is_some_and(|value| value & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x86_defs::msr;

    fn model() -> Model {
        Model::parse("glassvisor-v2").expect("the default model exists")
    }

    /// Whether a store takes the value.
    fn takes(number: u32, value: u64) -> bool {
        let model = model();
        let mut store = MsrStore::new(&model);
        let before = store.read(number);
        let taken = store.write(&model, number, value);
        assert!(taken || store.read(number) == before, "{number:#x}: a refused value changes nothing");
        taken
    }

    #[test]
    fn rows_do_not_overlap_and_are_found_by_every_number() {
        assert!(TABLE.is_sorted_by_key(|row| row.first));
        let mut seen = BTreeMap::new();
        for row in TABLE {
            for number in row.numbers() {
                assert_eq!(seen.insert(number, row.name), None, "{number:#x}");
                assert_eq!(super::row(number).map(|r| r.name), Some(row.name));
            }
        }
        assert!(super::row(0x5).is_none() && super::row(0x428).is_none());
    }

    #[test]
    fn memory_types_are_checked_and_so_are_reserved_bits_of_ranges() {
        assert!(takes(msr::IA32_MTRR_DEF_TYPE, 0xc06) && !takes(msr::IA32_MTRR_DEF_TYPE, 0xc02));
        assert!(!takes(msr::IA32_MTRR_DEF_TYPE, 0x1006));
        assert!(takes(msr::IA32_MTRR_FIX4K_C0000, 0x0606_0504_0100_0606));
        assert!(!takes(msr::IA32_MTRR_FIX4K_C0000, 0x0606_0706_0606_0606));
        assert!(takes(msr::IA32_MTRR_PHYSBASE0, 0xc000_0000) && !takes(msr::IA32_MTRR_PHYSBASE0, 0x100));
        assert!(takes(msr::IA32_MTRR_PHYSBASE0 + 1, 0xf_c000_0800) && !takes(msr::IA32_MTRR_PHYSBASE0 + 1, 1));
        assert!(!takes(msr::IA32_MTRR_PHYSBASE0, 1 << 62));
        assert!(!takes(msr::IA32_MTRRCAP, 0x508));
    }

    #[test]
    fn machine_check_banks_take_what_clears_them() {
        let model = model();
        let mut store = MsrStore::new(&model);
        assert_eq!(store.read(msr::IA32_MCG_CAP).map(|cap| cap & 0xff), Some(u64::from(MACHINE_CHECK_BANKS)));
        for bank in 0..MACHINE_CHECK_BANKS {
            let control = msr::IA32_MC0_CTL + 4 * bank;
            assert_eq!(store.read(control), Some(u64::MAX));
            assert!(store.write(&model, control, 0) && store.write(&model, control, u64::MAX));
            assert!(!store.write(&model, control, 2));
            assert!(store.write(&model, control + 1, 0) && !store.write(&model, control + 1, 1));
            assert!(store.write(&model, control + 2, 5) && store.read(control + 2) == Some(5));
        }
        assert_eq!(store.read(msr::IA32_MC0_CTL + 4 * MACHINE_CHECK_BANKS), None);
        assert!(takes(msr::IA32_MCG_CTL, 0) && !takes(msr::IA32_MCG_CTL, 1));
    }

    #[test]
    fn commands_are_write_only_and_constants_read_only() {
        for (number, value, bad) in [(msr::IA32_PRED_CMD, 1, 2), (msr::IA32_FLUSH_CMD, 1, 2)] {
            assert_eq!(MsrStore::new(&model()).read(number), None);
            assert!(takes(number, value) && !takes(number, bad));
        }
        for number in [msr::IA32_ARCH_CAPABILITIES, msr::MSR_PLATFORM_INFO, msr::IA32_MCG_CAP, msr::MSR_SMI_COUNT] {
            let store = MsrStore::new(&model());
            let value = store.read(number).expect("it can be read");
            assert!(!takes(number, value), "{number:#x}");
        }
    }

    #[test]
    fn bits_that_hardware_fixes_cannot_change_in_misc_enable() {
        let value = MsrStore::new(&model()).read(msr::IA32_MISC_ENABLE).expect("it exists");
        assert!(takes(msr::IA32_MISC_ENABLE, value ^ 1));
        assert!(!takes(msr::IA32_MISC_ENABLE, value ^ 1 << 11));
        let model = model();
        let mut store = MsrStore::new(&model);
        assert!(store.write(&model, msr::IA32_MISC_ENABLE, value ^ 1 << 7));
        assert_eq!(store.read(msr::IA32_MISC_ENABLE), Some(value), "performance monitoring cannot be switched on");
    }

    #[test]
    fn spec_ctrl_has_the_bits_of_the_models_features() {
        assert!(takes(msr::IA32_SPEC_CTRL, 7) && !takes(msr::IA32_SPEC_CTRL, 8));
        let model = Model::parse("glassvisor-v2,-ssbd").expect("a feature can be taken away");
        let mut store = MsrStore::new(&model);
        assert!(store.write(&model, msr::IA32_SPEC_CTRL, 3) && !store.write(&model, msr::IA32_SPEC_CTRL, 4));
    }

    #[test]
    fn cpuid_faulting_is_off_until_it_is_switched_on() {
        let model = model();
        let mut store = MsrStore::new(&model);
        assert!(!store.cpuid_faults());
        assert!(!store.write(&model, msr::MSR_MISC_FEATURES_ENABLES, 2));
        assert!(store.write(&model, msr::MSR_MISC_FEATURES_ENABLES, 1) && store.cpuid_faults());
        assert_eq!(store.read(msr::MSR_PLATFORM_INFO).map(|v| v >> 31 & 1), Some(1), "which says that it can be");
    }
}
