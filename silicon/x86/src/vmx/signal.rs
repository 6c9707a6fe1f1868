//! What arrives at the pins and from the local APIC of the modelled processor, and is not the guest's ("Other Causes of
//! VM Exits").

use crate::Core;

/// An event from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// An external interrupt that the processor's own local APIC has accepted.
    External(u8),
    Nmi,
    Init,
    /// A start-up IPI: seen in the wait-for-SIPI state only, lost in every other.
    Sipi(u8),
}

/// Signals that have arrived and have not been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    external: [u64; 4],
    pub(crate) nmi: bool,
    pub(crate) init: bool,
    pub(crate) sipi: Option<u8>,
}

impl Signals {
    /// Whether anything has arrived.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// The external interrupt of the highest priority.
    #[inline]
    #[must_use]
    pub fn highest(&self) -> Option<u8> {
        self.external.iter().enumerate().rev().find(|(_, w)| **w != 0).map(|(i, w)| (i * 64) as u8 + w.ilog2() as u8)
    }

    /// Acknowledges an external interrupt.
    pub const fn acknowledge(&mut self, vector: u8) {
        self.external[(vector >> 6) as usize] &= !(1 << (vector & 63));
    }
}

impl Core {
    /// Makes an event of the outside pending.
    pub fn signal(&mut self, signal: Signal) {
        let signals = &mut self.vmx.signals;
        match signal {
            Signal::External(vector) => signals.external[usize::from(vector >> 6)] |= 1 << (vector & 63),
            Signal::Nmi => signals.nmi = true,
            Signal::Init => signals.init = true,
            Signal::Sipi(vector) => signals.sipi = Some(vector),
        }
        self.events.attention = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::testing::core;

    #[test]
    fn the_highest_vector_comes_first_and_is_gone_when_acknowledged() {
        let mut core = core();
        assert_eq!(core.vmx.signals.highest(), None);
        for vector in [0x31, 0xff, 0x80] {
            core.signal(Signal::External(vector));
        }
        for vector in [0xff, 0x80, 0x31] {
            assert_eq!(core.vmx.signals.highest(), Some(vector));
            core.vmx.signals.acknowledge(vector);
        }
        assert_eq!(core.vmx.signals.highest(), None);
    }
}
