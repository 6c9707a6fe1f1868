//! CPU models as data: what a processor is, and which features its instructions may use.

mod cpuid;
mod feature;
mod named;
mod parse;
pub mod xstate;

pub use cpuid::CpuidResult;
pub use feature::{FEATURES, Feature, FeatureRow, FeatureSet, Register};
pub use named::{DEFAULT, NAMES, arch_capabilities};
pub use parse::ModelError;

/// Geometry of a TLB or paging-structure cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheGeometry {
    pub entries: u16,
    pub ways: u16,
}

/// Translation caches of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TlbGeometry {
    /// Pages of 4 KiB. The first level is modelled fully associative, whatever the ways: it sees only what its own
    /// look-up in front of it misses.
    pub first_level_data: CacheGeometry,
    /// Pages of 2 MiB and more.
    pub first_level_data_large: CacheGeometry,
    pub first_level_code: CacheGeometry,
    pub first_level_code_large: CacheGeometry,
    /// Shared by data and code, all page sizes.
    pub second_level: CacheGeometry,
    /// Paging-structure cache (PDE level).
    pub paging_structure: CacheGeometry,
}

/// Vendor, as CPUID leaf 0 spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    Intel,
    Amd,
}

impl Vendor {
    /// The twelve characters.
    #[must_use]
    pub const fn identification(self) -> &'static [u8; 12] {
        match self {
            Self::Intel => b"GenuineIntel",
            Self::Amd => b"AuthenticAMD",
        }
    }
}

/// What a modelled CPU is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    pub name: &'static str,
    pub vendor: Vendor,
    pub family: u16,
    pub model: u8,
    pub stepping: u8,
    /// Brand string, at most 47 characters.
    pub brand: &'static str,
    pub features: FeatureSet,
    /// Bits of a physical address.
    pub physical_bits: u8,
    /// Bits of a linear address.
    pub linear_bits: u8,
    /// Frequency of the TSC in kHz.
    pub tsc_khz: u32,
    /// Frequency of the core crystal clock in Hz (CPUID leaf 0x15); zero where it is not enumerated.
    pub crystal_hz: u32,
    /// IA32_ARCH_CAPABILITIES; counts only with [`Feature::ArchCapabilities`].
    pub arch_capabilities: u64,
    pub tlb: TlbGeometry,
}

impl Default for Model {
    fn default() -> Self {
        named::glassvisor_v2()
    }
}

impl Model {
    /// Whether the processor has a feature.
    #[inline]
    #[must_use]
    pub const fn has(&self, feature: Feature) -> bool {
        self.features.contains(feature)
    }

    /// Mask of the bits of a physical address.
    #[inline]
    #[must_use]
    pub const fn physical_mask(&self) -> u64 {
        (1 << self.physical_bits) - 1
    }

    /// Whether a physical address is within the physical address width.
    #[inline]
    #[must_use]
    pub const fn is_physical(&self, address: u64) -> bool {
        address >> self.physical_bits == 0
    }

    /// Bits that must be zero in CR3 in IA-32e mode.
    #[must_use]
    pub const fn cr3_reserved(&self) -> u64 {
        use x86_defs::control::cr3;
        let masking = if self.has(Feature::Lam) { cr3::LAM_U57 | cr3::LAM_U48 } else { 0 };
        !(self.physical_mask() | masking)
    }

    /// Whether a linear address is canonical for the widest linear addresses that the processor has, whatever CR4.LA57
    /// is: so are bases in registers and MSRs checked.
    #[inline(always)]
    #[must_use]
    pub const fn is_canonical(&self, address: u64) -> bool {
        let unused = 64 - self.linear_bits as u32;
        ((address << unused) as i64 >> unused) as u64 == address
    }
}
