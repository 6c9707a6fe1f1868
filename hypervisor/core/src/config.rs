/// Which clock a VM lives by; fixed before its first vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// TSC and all timers derive from modelled cycles; an idle VM jumps to its next event.
    Virtual,
    /// Guest TSC = scale(host TSC) + offset; timers are host timers.
    Real,
}

/// What a VM is made of; everything that cannot change afterwards.
#[derive(Clone, Debug)]
pub struct VmConfig {
    pub time: TimeMode,
    /// Seed of everything random that the machine offers (virtual time only).
    pub seed: u64,
    /// Wall clock at power-on in nanoseconds since 1970 (virtual time only; real time reads the host).
    pub wall_clock_ns: u64,
    /// CPU model string as given by the user: `MODEL[,+feature,-feature]`.
    pub cpu: String,
}
