//! The models that have a name.

use super::{CacheGeometry, Feature, FeatureSet, Model, TlbGeometry, Vendor};
use Feature as F;

/// The model that is used unless another is asked for.
pub const DEFAULT: &str = "glassvisor-v2";

/// Every named model.
pub const NAMES: &[&str] = &["glassvisor-v2", "glassvisor-v2-notsc", "glassvisor-v3", "nehalem", "qemu64"];

/// The model called `name`.
pub(super) fn by_name(name: &str) -> Option<Model> {
    Some(match name {
        "glassvisor-v2" => glassvisor_v2(),
        "glassvisor-v2-notsc" => glassvisor_v2_notsc(),
        "glassvisor-v3" => glassvisor_v3(),
        "nehalem" => nehalem(),
        "qemu64" => qemu64(),
        _ => return None,
    })
}

/// x86-64 with SSE2, as the first processors had it, and what every system needs.
const BASE: FeatureSet = FeatureSet::of(&[
    F::Fpu,
    F::Vme,
    F::De,
    F::Pse,
    F::Tsc,
    F::Msr,
    F::Pae,
    F::Mce,
    F::Cx8,
    F::Apic,
    F::Sep,
    F::Mtrr,
    F::Pge,
    F::Mca,
    F::Cmov,
    F::Pat,
    F::Pse36,
    F::Clflush,
    F::Mmx,
    F::Fxsr,
    F::Sse,
    F::Sse2,
    F::Syscall,
    F::Nx,
    F::Lm,
]);

/// The rest of the x86-64-v2 level.
const V2: FeatureSet = FeatureSet::of(&[F::Pni, F::Ssse3, F::Sse41, F::Sse42, F::Popcnt, F::Cx16, F::LahfLm]);

/// What the x86-64-v3 level has beyond x86-64-v2, where [`SERVER`] does not have it: vectors of 256 bits and the
/// instructions that save them; and the cryptographic instructions of the same processors.
const V3: FeatureSet = FeatureSet::of(&[
    F::Pclmulqdq,
    F::Fma,
    F::Aes,
    F::Xsave,
    F::Avx,
    F::F16c,
    F::Avx2,
    F::ShaNi,
    F::Xsaveopt,
    F::Xsavec,
    F::Xgetbv1,
    F::Xsaves,
]);

/// Integer and system features of a recent server processor, without vectors.
const SERVER: FeatureSet = FeatureSet::of(&[
    F::SelfSnoop,
    F::Vmx,
    F::Pcid,
    F::X2apic,
    F::Movbe,
    F::TscDeadlineTimer,
    F::Rdrand,
    F::Arat,
    F::Fsgsbase,
    F::TscAdjust,
    F::Bmi1,
    F::Smep,
    F::Bmi2,
    F::Erms,
    F::Invpcid,
    F::FpuCsDs,
    F::Rdseed,
    F::Adx,
    F::Smap,
    F::Clflushopt,
    F::Clwb,
    F::Umip,
    F::Rdpid,
    F::Fsrm,
    F::MdClear,
    F::Ibrs,
    F::Stibp,
    F::FlushL1d,
    F::ArchCapabilities,
    F::Ssbd,
    F::Abm,
    F::Prefetchw,
    F::Pdpe1gb,
    F::Rdtscp,
]);

/// IA32_ARCH_CAPABILITIES ("Enumeration of Architectural MSRs").
pub mod arch_capabilities {
    pub const RDCL_NO: u64 = 1 << 0;
    pub const IBRS_ALL: u64 = 1 << 1;
    pub const RSBA: u64 = 1 << 2;
    pub const SKIP_L1DFL_VMENTRY: u64 = 1 << 3;
    pub const SSB_NO: u64 = 1 << 4;
    pub const MDS_NO: u64 = 1 << 5;
    pub const PSCHANGE_MC_NO: u64 = 1 << 6;
    pub const TAA_NO: u64 = 1 << 8;
    pub const SBDR_SSDP_NO: u64 = 1 << 13;
    pub const FBSDP_NO: u64 = 1 << 14;
    pub const PSDP_NO: u64 = 1 << 15;
    pub const BHI_NO: u64 = 1 << 20;
    pub const PBRSB_NO: u64 = 1 << 24;
    pub const GDS_NO: u64 = 1 << 26;
    pub const RFDS_NO: u64 = 1 << 27;
    /// Indirect target selection.
    pub const ITS_NO: u64 = 1 << 62;
}

/// The modelled processor does not speculate, so it has none of the defects; the bits say so where there is one.
const NOT_AFFECTED: u64 = {
    use arch_capabilities as a;
    a::RDCL_NO
        | a::IBRS_ALL
        | a::SKIP_L1DFL_VMENTRY
        | a::SSB_NO
        | a::MDS_NO
        | a::PSCHANGE_MC_NO
        | a::TAA_NO
        | a::SBDR_SSDP_NO
        | a::FBSDP_NO
        | a::PSDP_NO
        | a::BHI_NO
        | a::PBRSB_NO
        | a::GDS_NO
        | a::RFDS_NO
        | a::ITS_NO
};

const fn geometry(entries: u16, ways: u16) -> CacheGeometry {
    CacheGeometry { entries, ways }
}

/// Golden Cove: 96 entries of data, 256 of code, 2048 shared.
const GOLDEN_COVE: TlbGeometry = TlbGeometry {
    first_level_data: geometry(96, 6),
    first_level_data_large: geometry(32, 4),
    first_level_code: geometry(256, 8),
    first_level_code_large: geometry(32, 8),
    second_level: geometry(2048, 16),
    paging_structure: geometry(64, 1),
};

const NEHALEM: TlbGeometry = TlbGeometry {
    first_level_data: geometry(64, 4),
    first_level_data_large: geometry(32, 4),
    first_level_code: geometry(128, 4),
    first_level_code_large: geometry(7, 7),
    second_level: geometry(512, 4),
    paging_structure: geometry(32, 1),
};

/// Identified as a Sapphire Rapids server, invariant TSC.
pub(super) fn glassvisor_v2() -> Model {
    let mut model = glassvisor_v2_notsc();
    model.name = "glassvisor-v2";
    model.features.insert(F::NonstopTsc);
    model
}

/// The same without the invariant TSC: a guest has reason to prefer another clock.
fn glassvisor_v2_notsc() -> Model {
    Model {
        name: "glassvisor-v2-notsc",
        vendor: Vendor::Intel,
        family: 6,
        model: 0x8f,
        stepping: 8,
        brand: "Glassvisor modelled x86-64-v2 CPU @ 2.10GHz",
        features: BASE.with(V2).with(SERVER),
        physical_bits: 46,
        linear_bits: 48,
        tsc_khz: 2_100_000,
        crystal_hz: 25_000_000,
        arch_capabilities: NOT_AFFECTED,
        tlb: GOLDEN_COVE,
    }
}

/// The default model with all of x86-64-v3, and AES, PCLMULQDQ, SHA and the whole XSAVE family.
fn glassvisor_v3() -> Model {
    let mut model = glassvisor_v2();
    model.name = "glassvisor-v3";
    model.brand = "Glassvisor modelled x86-64-v3 CPU @ 2.10GHz";
    model.features = model.features.with(V3);
    model
}

fn nehalem() -> Model {
    Model {
        name: "nehalem",
        vendor: Vendor::Intel,
        family: 6,
        model: 0x1a,
        stepping: 5,
        brand: "Glassvisor modelled Nehalem CPU @ 2.10GHz",
        features: BASE.with(V2).with(FeatureSet::of(&[F::SelfSnoop, F::Vmx, F::Rdtscp, F::NonstopTsc])),
        physical_bits: 40,
        linear_bits: 48,
        tsc_khz: 2_100_000,
        crystal_hz: 0,
        arch_capabilities: 0,
        tlb: NEHALEM,
    }
}

fn qemu64() -> Model {
    Model {
        name: "qemu64",
        vendor: Vendor::Amd,
        family: 15,
        model: 107,
        stepping: 1,
        brand: "Glassvisor modelled minimal CPU @ 2.10GHz",
        features: BASE.with(FeatureSet::of(&[F::Pni, F::Cx16, F::LahfLm])),
        physical_bits: 40,
        linear_bits: 48,
        tsc_khz: 2_100_000,
        crystal_hz: 0,
        arch_capabilities: 0,
        tlb: NEHALEM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_models_exist_have_their_name_and_only_features_that_are_implemented() {
        for &name in NAMES {
            let model = by_name(name).unwrap();
            assert_eq!(model.name, name);
            assert!(model.brand.len() < 48, "{name}");
            for feature in model.features.iter() {
                assert!(feature.row().implemented, "{name} has {feature:?}");
            }
            for g in [model.tlb.first_level_data, model.tlb.second_level] {
                assert_eq!(g.entries % g.ways, 0, "{name}");
            }
        }
    }

    #[test]
    fn the_v3_model_has_the_whole_level() {
        let model = glassvisor_v3();
        for feature in [F::Avx, F::Avx2, F::Bmi1, F::Bmi2, F::F16c, F::Fma, F::Abm, F::Movbe, F::Xsave] {
            assert!(model.has(feature), "{feature:?}");
        }
    }

    #[test]
    fn no_named_model_offers_monitor() {
        assert!(NAMES.iter().all(|name| !by_name(name).unwrap().has(F::Monitor)));
    }

    #[test]
    fn the_invariant_tsc_is_what_tells_the_two_default_models_apart() {
        let (with, without) = (glassvisor_v2(), glassvisor_v2_notsc());
        assert!(with.has(F::NonstopTsc) && !without.has(F::NonstopTsc));
        let mut features = without.features;
        features.insert(F::NonstopTsc);
        assert_eq!(features, with.features);
    }
}
