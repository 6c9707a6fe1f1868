//! What a guest used and the machine does not model: each thing is told once.

use std::collections::BTreeSet;

/// Something that is not modelled, as the guest touched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unmodelled {
    /// RDMSR of an MSR that does not exist: a general protection fault.
    MsrRead(u32),
    /// WRMSR to an MSR that does not exist: a general protection fault.
    MsrWrite(u32),
    /// A system-management interrupt, which is ignored: there is no system-management mode.
    SystemManagementInterrupt,
}

/// A guest could walk through all numbers: so many are told apart.
const MOST: usize = 256;

/// What has been touched, and what of it was not told yet.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    seen: BTreeSet<Unmodelled>,
    untold: Vec<Unmodelled>,
}

impl Touched {
    pub(crate) fn add(&mut self, what: Unmodelled) {
        if self.seen.len() < MOST && self.seen.insert(what) {
            self.untold.push(what);
        }
    }

    /// Takes what was touched for the first time since the last call.
    pub(crate) fn take(&mut self) -> Vec<Unmodelled> {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_told_once_and_a_flood_is_bounded() {
        let mut touched = Touched::default();
        touched.add(Unmodelled::MsrRead(5));
        touched.add(Unmodelled::MsrRead(5));
        touched.add(Unmodelled::MsrWrite(5));
        assert_eq!(touched.take(), [Unmodelled::MsrRead(5), Unmodelled::MsrWrite(5)]);
        touched.add(Unmodelled::MsrRead(5));
        assert!(touched.take().is_empty());
        (0..10_000).for_each(|number| touched.add(Unmodelled::MsrRead(number)));
        assert!(touched.take().len() < MOST);
    }
}
