//! MSRs that the hypervisor keeps for the guest.

use std::collections::BTreeMap;

use silicon_x86::model::{Feature, Model};
use x86_defs::msr;

/// Values of MSRs that have no other home: what firmware and kernels set and read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MsrStore {
    values: BTreeMap<u32, u64>,
    /// What the guest may read but not write.
    constants: BTreeMap<u32, u64>,
    pub tsc_adjust: u64,
}

/// MTRRs that exist: 8 variable ranges.
const MTRR_VARIABLE: u32 = 8;
/// IA32_MTRRCAP: 8 variable ranges, fixed ranges, write combining.
const MTRR_CAP: u64 = MTRR_VARIABLE as u64 | 1 << 8 | 1 << 10;

impl MsrStore {
    /// Values at power-up.
    #[must_use]
    pub fn new(model: &Model) -> Self {
        let mut store = Self::default();
        for n in 0..2 * MTRR_VARIABLE {
            store.values.insert(msr::IA32_MTRR_PHYSBASE0 + n, 0);
        }
        let fixed = [msr::IA32_MTRR_FIX64K_00000, msr::IA32_MTRR_FIX16K_80000, msr::IA32_MTRR_FIX16K_80000 + 1];
        for n in fixed.into_iter().chain(msr::IA32_MTRR_FIX4K_C0000..msr::IA32_MTRR_FIX4K_C0000 + 8) {
            store.values.insert(n, 0);
        }
        store.values.insert(msr::IA32_MTRR_DEF_TYPE, 0);
        store.constants.insert(msr::IA32_MTRRCAP, MTRR_CAP);
        // Fast strings on, performance monitoring unavailable, BTS and PEBS unavailable.
        store.values.insert(msr::IA32_MISC_ENABLE, 1 | 1 << 11 | 1 << 12);
        // Ten banks of machine checks would need their registers: none, but the global ones exist.
        store.constants.insert(msr::IA32_MCG_CAP, 0);
        store.values.insert(msr::IA32_MCG_STATUS, 0);
        store.values.insert(msr::IA32_BIOS_SIGN_ID, 0x1_0000_0000);
        store.constants.insert(msr::MSR_PLATFORM_INFO, u64::from(model.tsc_khz / 100_000) << 8);
        store.values.insert(msr::IA32_SPEC_CTRL, 0);
        // Locked, VMX outside of SMX off: nested virtualisation is not offered yet.
        store.constants.insert(msr::IA32_FEATURE_CONTROL, 1);
        // MSR_MISC_FEATURES_ENABLES: CPUID faulting off.
        store.values.insert(0x140, 0);
        if model.has(Feature::ArchCapabilities) {
            store.constants.insert(msr::IA32_ARCH_CAPABILITIES, model.arch_capabilities);
        }
        store
    }

    /// A stored value; `None` where the MSR does not exist.
    #[must_use]
    pub fn read(&self, number: u32) -> Option<u64> {
        self.values.get(&number).or_else(|| self.constants.get(&number)).copied()
    }

    /// Stores a value; `false` where the MSR does not exist or cannot be written.
    #[must_use]
    pub fn write(&mut self, number: u32, value: u64) -> bool {
        match number {
            // Commands: nothing to remember.
            msr::IA32_PRED_CMD => value & !1 == 0,
            msr::IA32_FLUSH_CMD => value & !1 == 0,
            msr::IA32_BIOS_UPDT_TRIG => true,
            _ => self.values.get_mut(&number).map(|v| *v = value).is_some(),
        }
    }
}
