//! The table of CPUID features.

/// Output register of CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureRow {
    pub feature: Feature,
    /// As Linux spells it in /proc/cpuinfo.
    pub name: &'static str,
    pub leaf: u32,
    pub subleaf: u32,
    pub register: Register,
    pub bit: u8,
    /// Whether the modelled processor implements it; a model cannot have it otherwise.
    pub implemented: bool,
}

macro_rules! features {
    ($($variant:ident $name:literal $leaf:literal : $subleaf:literal $register:ident [$bit:literal] $state:ident;)*) => {
        /// A CPUID feature bit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Feature { $(#[doc = $name] $variant,)* }

        /// Every feature that a model may name, in the order of [`Feature`].
        pub const FEATURES: &[FeatureRow] = &[$(FeatureRow {
            feature: Feature::$variant,
            name: $name,
            leaf: $leaf,
            subleaf: $subleaf,
            register: Register::$register,
            bit: $bit,
            implemented: state!($state),
        },)*];
    };
}
macro_rules! state {
    (yes) => {
        true
    };
    (no) => {
        false
    };
}

features! {
    Fpu "fpu" 0x1:0 Edx[0] yes;
    Vme "vme" 0x1:0 Edx[1] yes;
    De "de" 0x1:0 Edx[2] yes;
    Pse "pse" 0x1:0 Edx[3] yes;
    Tsc "tsc" 0x1:0 Edx[4] yes;
    Msr "msr" 0x1:0 Edx[5] yes;
    Pae "pae" 0x1:0 Edx[6] yes;
    Mce "mce" 0x1:0 Edx[7] yes;
    Cx8 "cx8" 0x1:0 Edx[8] yes;
    Apic "apic" 0x1:0 Edx[9] yes;
    Sep "sep" 0x1:0 Edx[11] yes;
    Mtrr "mtrr" 0x1:0 Edx[12] yes;
    Pge "pge" 0x1:0 Edx[13] yes;
    Mca "mca" 0x1:0 Edx[14] yes;
    Cmov "cmov" 0x1:0 Edx[15] yes;
    Pat "pat" 0x1:0 Edx[16] yes;
    Pse36 "pse36" 0x1:0 Edx[17] yes;
    Clflush "clflush" 0x1:0 Edx[19] yes;
    Mmx "mmx" 0x1:0 Edx[23] yes;
    Fxsr "fxsr" 0x1:0 Edx[24] yes;
    Sse "sse" 0x1:0 Edx[25] yes;
    Sse2 "sse2" 0x1:0 Edx[26] yes;
    SelfSnoop "ss" 0x1:0 Edx[27] yes;
    Ht "ht" 0x1:0 Edx[28] yes;
    Pni "pni" 0x1:0 Ecx[0] yes;
    Pclmulqdq "pclmulqdq" 0x1:0 Ecx[1] yes;
    Monitor "monitor" 0x1:0 Ecx[3] yes;
    Vmx "vmx" 0x1:0 Ecx[5] yes;
    Ssse3 "ssse3" 0x1:0 Ecx[9] yes;
    Fma "fma" 0x1:0 Ecx[12] yes;
    Cx16 "cx16" 0x1:0 Ecx[13] yes;
    Pcid "pcid" 0x1:0 Ecx[17] yes;
    Sse41 "sse4_1" 0x1:0 Ecx[19] yes;
    Sse42 "sse4_2" 0x1:0 Ecx[20] yes;
    X2apic "x2apic" 0x1:0 Ecx[21] yes;
    Movbe "movbe" 0x1:0 Ecx[22] yes;
    Popcnt "popcnt" 0x1:0 Ecx[23] yes;
    TscDeadlineTimer "tsc_deadline_timer" 0x1:0 Ecx[24] yes;
    Aes "aes" 0x1:0 Ecx[25] yes;
    Xsave "xsave" 0x1:0 Ecx[26] yes;
    Avx "avx" 0x1:0 Ecx[28] yes;
    F16c "f16c" 0x1:0 Ecx[29] yes;
    Rdrand "rdrand" 0x1:0 Ecx[30] yes;
    Hypervisor "hypervisor" 0x1:0 Ecx[31] yes;
    Arat "arat" 0x6:0 Eax[2] yes;
    Fsgsbase "fsgsbase" 0x7:0 Ebx[0] yes;
    TscAdjust "tsc_adjust" 0x7:0 Ebx[1] yes;
    Bmi1 "bmi1" 0x7:0 Ebx[3] yes;
    Avx2 "avx2" 0x7:0 Ebx[5] yes;
    Smep "smep" 0x7:0 Ebx[7] yes;
    Bmi2 "bmi2" 0x7:0 Ebx[8] yes;
    Erms "erms" 0x7:0 Ebx[9] yes;
    Invpcid "invpcid" 0x7:0 Ebx[10] yes;
    FpuCsDs "fpu_csds_deprecated" 0x7:0 Ebx[13] yes;
    Rdseed "rdseed" 0x7:0 Ebx[18] yes;
    Adx "adx" 0x7:0 Ebx[19] yes;
    Smap "smap" 0x7:0 Ebx[20] yes;
    Clflushopt "clflushopt" 0x7:0 Ebx[23] yes;
    Clwb "clwb" 0x7:0 Ebx[24] yes;
    ShaNi "sha_ni" 0x7:0 Ebx[29] yes;
    Umip "umip" 0x7:0 Ecx[2] yes;
    Pku "pku" 0x7:0 Ecx[3] yes;
    La57 "la57" 0x7:0 Ecx[16] yes;
    Rdpid "rdpid" 0x7:0 Ecx[22] yes;
    Pks "pks" 0x7:0 Ecx[31] yes;
    Fsrm "fsrm" 0x7:0 Edx[4] yes;
    MdClear "md_clear" 0x7:0 Edx[10] yes;
    Ibrs "ibrs" 0x7:0 Edx[26] yes;
    Stibp "stibp" 0x7:0 Edx[27] yes;
    FlushL1d "flush_l1d" 0x7:0 Edx[28] yes;
    ArchCapabilities "arch_capabilities" 0x7:0 Edx[29] yes;
    Ssbd "ssbd" 0x7:0 Edx[31] yes;
    Lam "lam" 0x7:1 Eax[26] yes;
    Xsaveopt "xsaveopt" 0xd:1 Eax[0] yes;
    Xsavec "xsavec" 0xd:1 Eax[1] yes;
    Xgetbv1 "xgetbv1" 0xd:1 Eax[2] yes;
    Xsaves "xsaves" 0xd:1 Eax[3] yes;
    LahfLm "lahf_lm" 0x8000_0001:0 Ecx[0] yes;
    Abm "abm" 0x8000_0001:0 Ecx[5] yes;
    Prefetchw "3dnowprefetch" 0x8000_0001:0 Ecx[8] yes;
    Syscall "syscall" 0x8000_0001:0 Edx[11] yes;
    Nx "nx" 0x8000_0001:0 Edx[20] yes;
    Pdpe1gb "pdpe1gb" 0x8000_0001:0 Edx[26] yes;
    Rdtscp "rdtscp" 0x8000_0001:0 Edx[27] yes;
    Lm "lm" 0x8000_0001:0 Edx[29] yes;
    NonstopTsc "nonstop_tsc" 0x8000_0007:0 Edx[8] yes;
}

impl Feature {
    /// The feature's row of the table.
    #[must_use]
    pub const fn row(self) -> &'static FeatureRow {
        &FEATURES[self as usize]
    }

    /// The feature with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        FEATURES.iter().find(|row| row.name == name).map(|row| row.feature)
    }
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u128);

const _: () = assert!(FEATURES.len() <= 128, "the set is one word of 128 bits");

impl FeatureSet {
    /// The set of `features`.
    #[must_use]
    pub const fn of(features: &[Feature]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < features.len() {
            set |= 1 << features[i] as u8;
            i += 1;
        }
        Self(set)
    }

    #[inline]
    #[must_use]
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 >> feature as u8 & 1 != 0
    }

    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn insert(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u8;
    }

    pub const fn remove(&mut self, feature: Feature) {
        self.0 &= !(1 << feature as u8);
    }

    /// The features of the set, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        FEATURES.iter().map(|row| row.feature).filter(move |f| self.contains(*f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_features_and_no_two_share_a_name_or_a_bit() {
        let mut names = std::collections::HashSet::new();
        let mut bits = std::collections::HashSet::new();
        for (i, row) in FEATURES.iter().enumerate() {
            assert_eq!(row.feature as usize, i);
            assert!(row.bit < 32 && names.insert(row.name), "{}", row.name);
            assert!(bits.insert((row.leaf, row.subleaf, row.register, row.bit)), "{}", row.name);
        }
    }

    #[test]
    fn well_known_bits_are_where_the_manual_has_them() {
        for (feature, leaf, register, bit) in [
            (Feature::Sse42, 1, Register::Ecx, 20),
            (Feature::Smap, 7, Register::Ebx, 20),
            (Feature::ArchCapabilities, 7, Register::Edx, 29),
            (Feature::Nx, 0x8000_0001, Register::Edx, 20),
            (Feature::NonstopTsc, 0x8000_0007, Register::Edx, 8),
        ] {
            let row = feature.row();
            assert_eq!((row.leaf, row.register, row.bit), (leaf, register, bit), "{}", row.name);
        }
    }
}
