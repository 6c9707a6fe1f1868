//! VMX controls that the processor does not allow.
//!
//! Source: Intel SDM, "VM-Execution Control Fields", "VM-Exit Control Fields", "VM-Entry Control Fields" and "VPID and EPT
//! Capabilities", for the names.

use silicon_x86::model::Model;
use silicon_x86::vmx::capability;

/// Bit and name.
type Named = (u8, &'static str);

const PIN: &[Named] = &[
    (0, "external-interrupt exiting"),
    (3, "NMI exiting"),
    (5, "virtual NMIs"),
    (6, "activate VMX-preemption timer"),
    (7, "process posted interrupts"),
];

const PRIMARY: &[Named] = &[
    (2, "interrupt-window exiting"),
    (3, "use TSC offsetting"),
    (7, "HLT exiting"),
    (9, "INVLPG exiting"),
    (10, "MWAIT exiting"),
    (11, "RDPMC exiting"),
    (12, "RDTSC exiting"),
    (15, "CR3-load exiting"),
    (16, "CR3-store exiting"),
    (17, "activate tertiary controls"),
    (19, "CR8-load exiting"),
    (20, "CR8-store exiting"),
    (21, "use TPR shadow"),
    (22, "NMI-window exiting"),
    (23, "MOV-DR exiting"),
    (24, "unconditional I/O exiting"),
    (25, "use I/O bitmaps"),
    (27, "monitor trap flag"),
    (28, "use MSR bitmaps"),
    (29, "MONITOR exiting"),
    (30, "PAUSE exiting"),
    (31, "activate secondary controls"),
];

const SECONDARY: &[Named] = &[
    (0, "virtualize APIC accesses"),
    (1, "enable EPT"),
    (2, "descriptor-table exiting"),
    (3, "enable RDTSCP"),
    (4, "virtualize x2APIC mode"),
    (5, "enable VPID"),
    (6, "WBINVD exiting"),
    (7, "unrestricted guest"),
    (8, "APIC-register virtualization"),
    (9, "virtual-interrupt delivery"),
    (10, "PAUSE-loop exiting"),
    (11, "RDRAND exiting"),
    (12, "enable INVPCID"),
    (13, "enable VM functions"),
    (14, "VMCS shadowing"),
    (15, "enable ENCLS exiting"),
    (16, "RDSEED exiting"),
    (17, "enable PML"),
    (18, "EPT-violation #VE"),
    (19, "conceal VMX from PT"),
    (20, "enable XSAVES/XRSTORS"),
    (21, "PASID translation"),
    (22, "mode-based execute control for EPT"),
    (23, "sub-page write permissions for EPT"),
    (24, "Intel PT uses guest physical addresses"),
    (25, "use TSC scaling"),
    (26, "enable user wait and pause"),
    (27, "enable PCONFIG"),
    (28, "enable ENCLV exiting"),
    (30, "VMM bus-lock detection"),
    (31, "instruction timeout"),
];

const EXIT: &[Named] = &[
    (2, "save debug controls"),
    (9, "host address-space size"),
    (12, "load IA32_PERF_GLOBAL_CTRL"),
    (15, "acknowledge interrupt on exit"),
    (18, "save IA32_PAT"),
    (19, "load IA32_PAT"),
    (20, "save IA32_EFER"),
    (21, "load IA32_EFER"),
    (22, "save VMX-preemption timer value"),
    (23, "clear IA32_BNDCFGS"),
    (24, "conceal VMX from PT"),
    (25, "clear IA32_RTIT_CTL"),
    (26, "clear IA32_LBR_CTL"),
    (27, "clear UINV"),
    (28, "load CET state"),
    (29, "load PKRS"),
    (30, "save IA32_PERF_GLOBAL_CTRL"),
    (31, "activate secondary controls"),
];

const ENTRY: &[Named] = &[
    (2, "load debug controls"),
    (9, "IA-32e mode guest"),
    (10, "entry to SMM"),
    (11, "deactivate dual-monitor treatment"),
    (13, "load IA32_PERF_GLOBAL_CTRL"),
    (14, "load IA32_PAT"),
    (15, "load IA32_EFER"),
    (16, "load IA32_BNDCFGS"),
    (17, "conceal VMX from PT"),
    (18, "load IA32_RTIT_CTL"),
    (19, "load UINV"),
    (20, "load CET state"),
    (21, "load guest IA32_LBR_CTL"),
    (22, "load PKRS"),
];

const EPT_VPID: &[Named] = &[
    (0, "execute-only translations"),
    (6, "page walks of 4 levels"),
    (7, "page walks of 5 levels"),
    (8, "uncacheable paging structures"),
    (14, "write-back paging structures"),
    (16, "2-MByte pages"),
    (17, "1-GByte pages"),
    (20, "INVEPT"),
    (21, "accessed and dirty flags"),
    (22, "advanced VM-exit information for EPT violations"),
    (23, "supervisor shadow-stack control"),
    (25, "single-context INVEPT"),
    (26, "all-context INVEPT"),
    (32, "INVVPID"),
    (40, "individual-address INVVPID"),
    (41, "single-context INVVPID"),
    (42, "all-context INVVPID"),
    (43, "single-context INVVPID that retains globals"),
];

fn absent(names: &[Named], allowed: u64) -> String {
    let absent: Vec<&str> = names.iter().filter(|(bit, _)| allowed >> bit & 1 == 0).map(|&(_, name)| name).collect();
    if absent.is_empty() { "none".into() } else { absent.join(", ") }
}

/// Kind of control, and the names of what is missing.
pub fn missing() -> Vec<(String, String)> {
    let model = Model::with_every_feature();
    let secondary = capability::secondary(&model).one;
    [
        ("pin-based", PIN, u64::from(capability::PIN.one)),
        ("primary processor-based", PRIMARY, u64::from(capability::PRIMARY.one)),
        ("secondary processor-based", SECONDARY, u64::from(secondary)),
        ("VM-exit", EXIT, u64::from(capability::exit(&model).one)),
        ("VM-entry", ENTRY, u64::from(capability::entry(&model).one)),
        ("EPT and VPID", EPT_VPID, capability::EPT_VPID),
    ]
    .map(|(kind, names, allowed)| (kind.to_owned(), absent(names, allowed)))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every control that the processor allows has its name here: nothing that is there is called missing by a wrong bit.
    #[test]
    fn every_allowed_control_has_a_name() {
        let model = Model::with_every_feature();
        let secondary = capability::secondary(&model).one;
        for (names, allowed, required) in [
            (PIN, capability::PIN.one, capability::PIN.zero),
            (PRIMARY, capability::PRIMARY.one, capability::PRIMARY.zero),
            (SECONDARY, secondary, 0),
            (EXIT, capability::exit(&model).one, capability::EXIT.zero),
            (ENTRY, capability::entry(&model).one, capability::ENTRY.zero),
        ] {
            for bit in (0..32).filter(|bit| allowed & !required & 1 << bit != 0) {
                assert!(names.iter().any(|&(named, _)| u32::from(named) == bit), "bit {bit} of {names:?}");
            }
        }
        let named = EPT_VPID.iter().fold(0, |bits, (bit, _)| bits | 1 << bit);
        assert_eq!(capability::EPT_VPID & !named, 0);
    }
}
