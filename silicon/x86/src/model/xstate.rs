//! State components that XSAVE manages ("XSAVE-Supported Features and State-Component Bitmaps").

use super::{CpuidResult, Feature, Model};

/// State-component bits of XCR0, IA32_XSS, XSTATE_BV and XCOMP_BV.
pub mod component {
    pub const X87: u64 = 1 << 0;
    pub const SSE: u64 = 1 << 1;
    /// Bits 255:128 of the YMM registers.
    pub const AVX: u64 = 1 << 2;
    /// PKRU.
    pub const PKRU: u64 = 1 << 9;
}

/// A state component of the extended region: x87 and SSE state are in the legacy region and in no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Bit in the bitmaps.
    pub number: u8,
    /// Bytes.
    pub size: u16,
    /// Offset in the standard format; zero for a supervisor component, which has none.
    pub offset: u16,
    /// In the compacted format it starts at a multiple of 64 bytes.
    pub aligned: bool,
    /// Enabled by IA32_XSS, not by XCR0.
    pub supervisor: bool,
    /// The processor has it with this feature.
    pub feature: Feature,
}

impl Component {
    /// Its bit.
    #[must_use]
    pub const fn bit(&self) -> u64 {
        1 << self.number
    }
}

/// The state components of the extended region, by number. Where each is in the standard format is the processor's choice:
/// PKRU's place is that of Intel's processors with AVX-512, which leave room for its components.
pub const COMPONENTS: &[Component] = &[
    Component { number: 2, size: 256, offset: 576, aligned: false, supervisor: false, feature: Feature::Avx },
    Component { number: 9, size: 8, offset: 0xa80, aligned: false, supervisor: false, feature: Feature::Pku },
];

/// End of the legacy region and the header: where the extended region starts.
pub const EXTENDED: u16 = 576;
/// Bytes of the largest area in either format.
pub const LARGEST: usize = 0xa88;

impl Model {
    /// The components that the processor has in the extended region.
    fn components(&self) -> impl Iterator<Item = &'static Component> {
        COMPONENTS.iter().filter(|c| self.has(c.feature))
    }

    /// Bits that XCR0 may have; zero without XSAVE.
    #[must_use]
    pub fn xcr0_supported(&self) -> u64 {
        if !self.has(Feature::Xsave) {
            return 0;
        }
        let legacy = component::X87 | if self.has(Feature::Sse) { component::SSE } else { 0 };
        legacy | self.components().filter(|c| !c.supervisor).map(Component::bit).sum::<u64>()
    }

    /// Bits that IA32_XSS may have.
    #[must_use]
    pub fn xss_supported(&self) -> u64 {
        if !self.has(Feature::Xsaves) {
            return 0;
        }
        self.components().filter(|c| c.supervisor).map(Component::bit).sum()
    }

    /// Whether XSETBV may set XCR0 to `value` ("Extended Control Registers"): x87 state is always enabled, AVX state only
    /// with SSE state.
    #[must_use]
    pub fn xcr0_is_valid(&self, value: u64) -> bool {
        value & !self.xcr0_supported() == 0
            && value & component::X87 != 0
            && (value & component::AVX == 0 || value & component::SSE != 0)
    }

    /// Leaf 0xd with the state components of `xcr0` and `xss` enabled.
    pub(super) fn xsave_leaf(&self, subleaf: u32, xcr0: u64, xss: u64) -> CpuidResult {
        if !self.has(Feature::Xsave) {
            return CpuidResult::default();
        }
        let supported = self.xcr0_supported();
        let low = |value: u64| value as u32;
        let high = |value: u64| (value >> 32) as u32;
        match subleaf {
            0 => CpuidResult::new(low(supported), standard_bytes(xcr0), standard_bytes(supported), high(supported)),
            1 => {
                let compacted = self.has(Feature::Xsavec) || self.has(Feature::Xsaves);
                let bytes = if compacted { compacted_bytes(xcr0 | xss) } else { 0 };
                CpuidResult::new(0, bytes, low(self.xss_supported()), high(self.xss_supported()))
            }
            _ => match self.components().find(|c| u32::from(c.number) == subleaf) {
                Some(c) => {
                    let flags = u32::from(c.supervisor) | u32::from(c.aligned) << 1;
                    CpuidResult::new(c.size.into(), c.offset.into(), flags, 0)
                }
                None => CpuidResult::default(),
            },
        }
    }
}

/// Bytes of an area in the standard format with these components ("Standard Format").
#[must_use]
pub fn standard_bytes(components: u64) -> u32 {
    let ends = COMPONENTS.iter().filter(|c| components & c.bit() != 0).map(|c| u32::from(c.offset + c.size));
    ends.max().unwrap_or(0).max(EXTENDED.into())
}

/// Bytes of an area in the compacted format with these components.
#[must_use]
pub fn compacted_bytes(components: u64) -> u32 {
    compacted(components).last().map_or(EXTENDED.into(), |(c, at)| u32::from(c.size) + at as u32)
}

/// The components of the extended region among `components`, each with its offset in the compacted format ("Compacted
/// Format").
pub fn compacted(components: u64) -> impl Iterator<Item = (&'static Component, usize)> {
    let mut at = usize::from(EXTENDED);
    COMPONENTS.iter().filter(move |c| components & c.bit() != 0).map(move |c| {
        if c.aligned {
            at = at.next_multiple_of(64);
        }
        let offset = at;
        at += usize::from(c.size);
        (c, offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_area_holds_every_component_in_both_formats() {
        assert!(standard_bytes(u64::MAX).max(compacted_bytes(u64::MAX)) as usize <= LARGEST);
    }

    #[test]
    fn sizes_follow_what_is_enabled() {
        let model = Model::parse("glassvisor-v3").unwrap();
        assert_eq!(model.xsave_leaf(0, 1, 0), CpuidResult { eax: 7, ebx: 576, ecx: 832, edx: 0 });
        assert_eq!(model.xsave_leaf(0, 7, 0).ebx, 832);
        assert_eq!(model.xsave_leaf(1, 3, 0).ebx, 576);
        assert_eq!(model.xsave_leaf(1, 7, 0).ebx, 832);
        assert_eq!(model.xsave_leaf(2, 7, 0), CpuidResult { eax: 256, ebx: 576, ecx: 0, edx: 0 });
        for subleaf in [3, 8, 9, 63, u32::MAX] {
            assert_eq!(model.xsave_leaf(subleaf, 7, 0), CpuidResult::default());
        }
    }

    #[test]
    fn pkru_is_a_component_of_a_processor_with_user_keys() {
        let model = Model::parse("glassvisor-v3,+pku").unwrap();
        assert_eq!(model.xsave_leaf(0, 7, 0), CpuidResult { eax: 0x207, ebx: 832, ecx: 0xa88, edx: 0 });
        assert_eq!(model.xsave_leaf(0, 0x201, 0).ebx, 0xa88);
        assert_eq!(model.xsave_leaf(1, 0x207, 0).ebx, 840);
        assert_eq!(model.xsave_leaf(1, 0x201, 0).ebx, 584);
        assert_eq!(model.xsave_leaf(9, 1, 0), CpuidResult { eax: 8, ebx: 0xa80, ecx: 0, edx: 0 });
        assert!(model.xcr0_is_valid(0x201) && model.xcr0_is_valid(0x207) && !model.xcr0_is_valid(0x200));
        assert!(!Model::parse("glassvisor-v3").unwrap().xcr0_is_valid(0x207));
    }

    #[test]
    fn xcr0_has_x87_always_and_avx_only_with_sse() {
        let model = Model::parse("glassvisor-v3").unwrap();
        for (value, valid) in [(1, true), (3, true), (7, true), (0, false), (2, false), (5, false), (9, false)] {
            assert_eq!(model.xcr0_is_valid(value), valid, "{value}");
        }
        assert!(!model.xcr0_is_valid(1 << 63 | 7));
        let without_avx = Model::parse("glassvisor-v3,-avx,-avx2,-fma,-f16c").unwrap();
        assert!(without_avx.xcr0_is_valid(3) && !without_avx.xcr0_is_valid(7));
        assert_eq!(without_avx.xsave_leaf(2, 3, 0), CpuidResult::default());
        assert_eq!((Model::default().xcr0_supported(), Model::default().xss_supported()), (0, 0));
    }
}
