//! CPUID as the guest sees it: the model's leaves, the vCPU's place in the topology, and KVM's own leaves.

use x86_defs::control::{cr0, cr4};

use crate::pv::feature;
use crate::vcpu::Vcpu;

pub use silicon_x86::model::CpuidResult;

/// First of KVM's leaves.
pub const KVM_SIGNATURE: u32 = 0x4000_0000;
/// KVM's feature leaf.
pub const KVM_FEATURES: u32 = 0x4000_0001;
/// TSC and bus frequency in kHz, a convention of hypervisors.
pub const TIMING: u32 = 0x4000_0010;

/// Frequency of the local APIC timer's bus, in kHz: 1 GHz, as in KVM.
const APIC_BUS_KHZ: u32 = 1_000_000;

impl Vcpu {
    /// Answers CPUID for the vCPU. `vcpus` is the number of vCPUs of the VM.
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32, vcpus: usize) -> CpuidResult {
        match leaf {
            KVM_SIGNATURE => CpuidResult {
                eax: TIMING,
                ebx: u32::from_le_bytes(*b"KVMK"),
                ecx: u32::from_le_bytes(*b"VMKV"),
                edx: u32::from_le_bytes(*b"M\0\0\0"),
            },
            KVM_FEATURES => CpuidResult { eax: feature::ALL, ..CpuidResult::default() },
            TIMING => {
                CpuidResult { eax: self.processor.core.model.tsc_khz, ebx: APIC_BUS_KHZ, ..CpuidResult::default() }
            }
            0x4000_0002..=0x4fff_ffff => CpuidResult::default(),
            _ => self.hardware_leaf(leaf, subleaf, vcpus),
        }
    }

    fn hardware_leaf(&self, leaf: u32, subleaf: u32, vcpus: usize) -> CpuidResult {
        let core = &self.processor.core;
        let mut r = core.model.cpuid_with_state(leaf, subleaf, core.xcr0, core.msrs.xss);
        // Threads are numbered in one package, one thread a core.
        let width = vcpus.next_power_of_two().trailing_zeros();
        match leaf {
            1 => {
                r.ebx = r.ebx & 0xff00 | self.apic_id << 24 | (1 << width) << 16;
                if vcpus > 1 {
                    r.edx |= 1 << 28;
                }
                r.ecx |= 1 << 31;
                // OSXSAVE follows CR4. VMX of the hardware is the hypervisor's: nested virtualisation is not offered yet.
                r.ecx &= !(1 << 27 | 1 << 5);
                if self.processor.core.cr4 & cr4::OSXSAVE != 0 {
                    r.ecx |= 1 << 27;
                }
            }
            // OSPKE follows CR4.
            7 if subleaf == 0 && self.processor.core.cr4 & cr4::PKE != 0 => r.ecx |= 1 << 4,
            4 if r.eax & 0x1f != 0 => {
                r.eax = r.eax & 0x3fff | ((1 << width) - 1) << 26;
                // The last level is shared by the package.
                if (r.eax >> 5) & 7 >= 3 {
                    r.eax |= ((1 << width) - 1) << 14;
                }
            }
            0xb | 0x1f => {
                // Level 0: threads of a core; level 1: cores of the package.
                let (shift, count, kind) = match subleaf {
                    0 => (0, 1, 1),
                    1 => (width, vcpus as u32, 2),
                    _ => (0, 0, 0),
                };
                r = CpuidResult { eax: shift, ebx: count, ecx: subleaf & 0xff | kind << 8, edx: self.apic_id };
            }
            _ => {}
        }
        r
    }

    /// Whether the guest has left real-address mode.
    #[must_use]
    pub fn protected(&self) -> bool {
        self.cr0() & cr0::PE != 0
    }
}
