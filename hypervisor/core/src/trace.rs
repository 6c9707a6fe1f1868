use x86_defs::vmx::ExitReason;

/// One VM-exit, for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitRecord {
    pub vcpu: usize,
    /// VM time of the exit.
    pub guest_time_ns: u64,
    pub reason: ExitReason,
    pub qualification: u64,
    pub rip: u64,
    /// Instructions that the vCPU had retired.
    pub instructions: u64,
}

/// Takes exits as they happen.
pub type Trace = Box<dyn FnMut(&ExitRecord) + Send>;
