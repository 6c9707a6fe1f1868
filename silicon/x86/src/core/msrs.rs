/// MSRs that instructions or VM-entry use directly. All others are the hypervisor's: accesses exit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Msrs {
    pub star: u64,
    pub lstar: u64,
    pub cstar: u64,
    pub fmask: u64,
    pub kernel_gs_base: u64,
    pub tsc_aux: u64,
    pub sysenter_cs: u64,
    pub sysenter_esp: u64,
    pub sysenter_eip: u64,
    pub pat: u64,
    pub debugctl: u64,
    pub spec_ctrl: u64,
    /// Which supervisor state components XSAVES and XRSTORS may use.
    pub xss: u64,
    /// Rights of supervisor-mode protection keys. Change it with [`crate::Core::set_pkrs`].
    pub pkrs: u32,
}
