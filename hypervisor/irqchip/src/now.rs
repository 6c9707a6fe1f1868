//! The instant at which a call happens.

/// The instant of a call, on the two clocks that the interrupt controllers follow.
///
/// Both must not run backwards from one call to the next for the same vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// Nanoseconds since an origin that stays fixed for the life of the VM.
    pub vm_ns: u64,
    /// The time-stamp counter as the calling vCPU's guest reads it.
    pub guest_tsc: u64,
}

impl Now {
    /// An instant for calls that only follow the nanosecond clock.
    #[must_use]
    pub const fn at_ns(vm_ns: u64) -> Self {
        Self { vm_ns, guest_tsc: 0 }
    }
}
