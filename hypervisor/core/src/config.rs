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

/// How long vCPUs run at a time in virtual time. Guests must not be able to tell, but by races of their own: tests try
/// extremes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// How far a vCPU may run ahead of the others, in cycles.
    pub quantum_cycles: u64,
    /// The longest slice of a vCPU that has no company, in cycles.
    pub longest_cycles: u64,
}

impl Default for Slices {
    /// 20 us, and 120 us: a kick is seen soon also when the guest does what takes the host long and the guest little, such
    /// as one exception after another.
    fn default() -> Self {
        Self { quantum_cycles: 42_000, longest_cycles: 250_000 }
    }
}
