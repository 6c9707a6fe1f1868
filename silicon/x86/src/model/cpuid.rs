//! CPUID of the modelled hardware ("CPUID - CPU Identification").

use super::xstate::component;
use super::{FEATURES, Feature, Model, Register};

/// The four output registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuidResult {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

impl CpuidResult {
    pub(super) const fn new(eax: u32, ebx: u32, ecx: u32, edx: u32) -> Self {
        Self { eax, ebx, ecx, edx }
    }

    /// An output register by name.
    pub fn register_mut(&mut self, register: Register) -> &mut u32 {
        match register {
            Register::Eax => &mut self.eax,
            Register::Ebx => &mut self.ebx,
            Register::Ecx => &mut self.ecx,
            Register::Edx => &mut self.edx,
        }
    }

    /// Bit `bit` of an output register.
    #[must_use]
    pub fn bit(mut self, register: Register, bit: u8) -> bool {
        *self.register_mut(register) >> bit & 1 != 0
    }
}

/// CLFLUSH line of 64 bytes, in units of 8, at its place in leaf 1 EBX.
const CLFLUSH_LINE: u32 = 8 << 8;
/// Leaf 2: "no information, use leaf 4" for caches, and leaf 0x18 absent, so TLBs are not described; one round.
const LEAF_2: CpuidResult = CpuidResult::new(0x00ff_ff01, 0, 0, 0);

/// Leaf 5: monitored lines of 64 bytes; ECX of MWAIT may make masked interrupts end the wait; C0 and one C1 sub-state.
const MONITOR: CpuidResult = CpuidResult::new(64, 64, 0b11, 0x10);

/// A cache of leaf 4: level, type (1 data, 2 code, 3 unified), ways, sets; lines of 64 bytes.
const CACHES: [(u32, u32, u32, u32); 4] = [(1, 1, 12, 64), (1, 2, 8, 64), (2, 3, 16, 2048), (3, 3, 16, 32_768)];

/// Whether ECX selects a part of the leaf; for all others its value does not matter.
const fn has_subleaves(leaf: u32) -> bool {
    matches!(leaf, 4 | 7 | 0xb | 0xd | 0xf | 0x10 | 0x12 | 0x14 | 0x17 | 0x18 | 0x1f)
}

impl Model {
    /// Highest basic leaf.
    #[must_use]
    pub const fn highest_basic_leaf(&self) -> u32 {
        if self.crystal_hz != 0 {
            0x16
        } else if self.has(Feature::X2apic) || self.has(Feature::Xsave) {
            0xd
        } else {
            0xb
        }
    }

    /// Highest extended leaf.
    #[must_use]
    pub const fn highest_extended_leaf(&self) -> u32 {
        0x8000_0008
    }

    /// What CPUID of this hardware returns. What belongs to one logical processor (APIC ids, topology of leaves 1, 4
    /// and 0xb) is that of a single one with APIC id 0; the hypervisor fills it in.
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        self.cpuid_with_state(leaf, subleaf, component::X87, 0)
    }

    /// [`Model::cpuid`] with the state components of `xcr0` and `xss` enabled, on which the sizes of leaf 0xd depend.
    #[must_use]
    pub fn cpuid_with_state(&self, leaf: u32, subleaf: u32, xcr0: u64, xss: u64) -> CpuidResult {
        if leaf > self.highest_basic_leaf() && !(0x8000_0000..=self.highest_extended_leaf()).contains(&leaf) {
            // Beyond the range of leaves the highest basic one answers on Intel; all zero tells no software a lie.
            return CpuidResult::default();
        }
        let subleaf = if has_subleaves(leaf) { subleaf } else { 0 };
        let mut r = match leaf {
            0xd => self.xsave_leaf(subleaf, xcr0, xss),
            _ => self.described(leaf, subleaf),
        };
        for row in FEATURES {
            if row.leaf == leaf && row.subleaf == subleaf && self.has(row.feature) {
                *r.register_mut(row.register) |= 1 << row.bit;
            }
        }
        r
    }

    /// Leaf contents that are not feature bits.
    fn described(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        let vendor = self.vendor.identification();
        let word = |i: usize| u32::from_le_bytes([vendor[i], vendor[i + 1], vendor[i + 2], vendor[i + 3]]);
        match leaf {
            0 => CpuidResult::new(self.highest_basic_leaf(), word(0), word(8), word(4)),
            1 => CpuidResult::new(self.signature(), CLFLUSH_LINE | 1 << 16, 0, 0),
            2 => LEAF_2,
            4 => cache(subleaf),
            5 if self.has(Feature::Monitor) => MONITOR,
            7 if subleaf == 0 => CpuidResult::new(self.highest_subleaf_of_7(), 0, 0, 0),
            0x15 => {
                let (denominator, numerator) = self.tsc_ratio();
                CpuidResult::new(denominator, numerator, self.crystal_hz, 0)
            }
            // Base, maximum and bus frequency in MHz.
            0x16 => CpuidResult::new(self.tsc_khz / 1000, self.tsc_khz / 1000, 100, 0),
            0x8000_0000 => CpuidResult::new(self.highest_extended_leaf(), 0, 0, 0),
            0x8000_0002..=0x8000_0004 => self.brand_part((leaf - 0x8000_0002) as usize),
            // L2: bytes per line, associativity (6: 8-way or more), KiB.
            0x8000_0006 => CpuidResult::new(0, 0, 64 | 6 << 12 | 2048 << 16, 0),
            0x8000_0008 => CpuidResult::new(u32::from(self.physical_bits) | u32::from(self.linear_bits) << 8, 0, 0, 0),
            _ => CpuidResult::default(),
        }
    }

    /// The last sub-leaf of leaf 7 that has a feature of the model.
    fn highest_subleaf_of_7(&self) -> u32 {
        FEATURES.iter().filter(|row| row.leaf == 7 && self.has(row.feature)).map(|row| row.subleaf).max().unwrap_or(0)
    }

    /// Family, model and stepping as leaf 1 EAX has them.
    #[must_use]
    pub fn signature(&self) -> u32 {
        let family = u32::from(self.family);
        let (base, extended) = if family >= 15 { (15, family - 15) } else { (family, 0) };
        let model = u32::from(self.model);
        u32::from(self.stepping) | (model & 0xf) << 4 | base << 8 | (model >> 4) << 16 | extended << 20
    }

    /// TSC frequency / crystal frequency as (denominator, numerator) in lowest terms; (0, 0) where there is none.
    fn tsc_ratio(&self) -> (u32, u32) {
        if self.crystal_hz == 0 {
            return (0, 0);
        }
        let (tsc, crystal) = (u64::from(self.tsc_khz) * 1000, u64::from(self.crystal_hz));
        let divisor = greatest_common_divisor(tsc, crystal);
        match (u32::try_from(crystal / divisor), u32::try_from(tsc / divisor)) {
            (Ok(denominator), Ok(numerator)) => (denominator, numerator),
            _ => (0, 0),
        }
    }

    fn brand_part(&self, part: usize) -> CpuidResult {
        let mut text = [0; 48];
        let brand = self.brand.as_bytes();
        let length = brand.len().min(47);
        text[..length].copy_from_slice(&brand[..length]);
        let word = |i: usize| {
            let at = part * 16 + i * 4;
            u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]])
        };
        CpuidResult::new(word(0), word(1), word(2), word(3))
    }
}

/// Leaf 4 of cache number `subleaf`, for one logical processor and one core.
fn cache(subleaf: u32) -> CpuidResult {
    let Some(&(level, kind, ways, sets)) = CACHES.get(subleaf as usize) else { return CpuidResult::default() };
    const SELF_INITIALIZING: u32 = 1 << 8;
    CpuidResult::new(kind | level << 5 | SELF_INITIALIZING, (ways - 1) << 22 | 63, sets - 1, 0)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecx_does_not_matter_to_leaves_without_subleaves() {
        let model = Model::default();
        for leaf in [0, 1, 0x15, 0x8000_0001, 0x8000_0007] {
            assert_eq!(model.cpuid(leaf, 0xc000_0101), model.cpuid(leaf, 0), "leaf {leaf:#x}");
        }
    }

    #[test]
    fn the_vendor_reads_as_its_name_in_ebx_edx_ecx() {
        let r = Model::default().cpuid(0, 0);
        let bytes: Vec<u8> = [r.ebx, r.edx, r.ecx].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, b"GenuineIntel");
    }

    #[test]
    fn signatures_decode_to_family_and_model() {
        assert_eq!(Model::default().signature(), 0x806f8);
        assert_eq!(Model::parse("nehalem").unwrap().signature(), 0x106a5);
        assert_eq!(Model::parse("qemu64").unwrap().signature(), 0x60fb1);
    }

    #[test]
    fn features_show_in_their_bit_and_absent_ones_do_not() {
        let model = Model::default();
        for row in FEATURES {
            let shown = model.cpuid(row.leaf, row.subleaf).bit(row.register, row.bit);
            assert_eq!(shown, model.has(row.feature), "{}", row.name);
        }
    }

    #[test]
    fn leaf_0x15_gives_the_tsc_frequency_exactly() {
        let r = Model::default().cpuid(0x15, 0);
        assert_eq!((r.eax, r.ebx, r.ecx), (1, 84, 25_000_000));
        assert_eq!(u64::from(r.ecx) * u64::from(r.ebx) / u64::from(r.eax), 2_100_000_000);
        assert_eq!(Model::parse("nehalem").unwrap().cpuid(0x15, 0), CpuidResult::default());
    }

    #[test]
    fn the_brand_string_comes_in_three_parts() {
        let model = Model::default();
        let text: Vec<u8> = (0x8000_0002..=0x8000_0004)
            .map(|leaf| model.cpuid(leaf, 0))
            .flat_map(|r| [r.eax, r.ebx, r.ecx, r.edx])
            .flat_map(u32::to_le_bytes)
            .take_while(|&b| b != 0)
            .collect();
        assert_eq!(text, model.brand.as_bytes());
    }

    #[test]
    fn leaves_out_of_range_and_xsave_without_xsave_are_zero() {
        let model = Model::default();
        for leaf in [0xd, 0x17, 0x4000_0000, 0x8000_0009, u32::MAX] {
            assert_eq!(model.cpuid(leaf, 0), CpuidResult::default(), "{leaf:#x}");
        }
    }

    #[test]
    fn leaf_5_is_there_with_monitor_only() {
        assert_eq!(Model::default().cpuid(5, 0), CpuidResult::default());
        assert_eq!(Model::parse("+monitor").unwrap().cpuid(5, 0).ebx, 64);
    }

    #[test]
    fn caches_end_with_a_null_entry() {
        let model = Model::default();
        let l2 = model.cpuid(4, 2);
        let bytes = ((l2.ebx >> 22) + 1) * 64 * (l2.ecx + 1);
        assert_eq!((l2.eax >> 5 & 7, bytes), (2, 2 << 20));
        assert_eq!(model.cpuid(4, 4).eax & 0x1f, 0);
    }
}
