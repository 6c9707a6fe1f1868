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
    pub first_level_data: CacheGeometry,
    pub first_level_code: CacheGeometry,
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

    /// Whether a linear address is canonical.
    #[inline(always)]
    #[must_use]
    pub const fn is_canonical(&self, address: u64) -> bool {
        let unused = 64 - self.linear_bits as u32;
        ((address << unused) as i64 >> unused) as u64 == address
    }
}
