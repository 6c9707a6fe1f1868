/// Why a VM could not be made or go on: for the VMM's user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Slot(#[from] crate::memory::SlotError),
    #[error(transparent)]
    Bank(#[from] silicon_memory::BankError),
    /// The CPU model string was not understood.
    #[error("{0}")]
    Model(String),
    /// The guest has no vCPU.
    #[error("the virtual machine has no vCPU: add one before it runs")]
    NoVcpu,
    /// More vCPUs than there may be.
    #[error("{0} vCPUs are the most that a virtual machine can have", MOST_VCPUS)]
    TooManyVcpus,
    /// A fault in this program: VM-entry was refused.
    #[error("VM-entry failed on vCPU {vcpu}: {failure}")]
    Entry { vcpu: usize, failure: String },
}

/// The most vCPUs of a VM.
pub const MOST_VCPUS: usize = 16;
