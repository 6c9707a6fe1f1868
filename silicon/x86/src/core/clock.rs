//! The processor's time stamp counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Core;

/// A counter outside of the model, for real time: the host tier implements it.
pub trait Oscillator: Send + Sync + std::fmt::Debug {
    /// Ticks since some start, at the frequency of the modelled TSC.
    fn ticks(&self) -> u64;
}

/// What drives the TSC.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Modelled cycles. Processors that run one after the other are apart by up to a time slice; `latest` makes what
    /// they read monotonic across the machine, as synchronised hardware counters are.
    Virtual { latest: Arc<AtomicU64> },
    /// An oscillator.
    Real(Arc<dyn Oscillator>),
}

impl Default for Clock {
    fn default() -> Self {
        Self::Virtual { latest: Arc::default() }
    }
}

impl Core {
    /// The TSC of this processor as the hypervisor would read it, in ticks.
    #[must_use]
    pub fn host_tsc(&self) -> u64 {
        match &self.clock {
            Clock::Virtual { latest } => {
                let own = self.now_quarter_cycles() / 4;
                latest.fetch_max(own, Ordering::Relaxed).max(own)
            }
            Clock::Real(oscillator) => oscillator.ticks(),
        }
    }
}
