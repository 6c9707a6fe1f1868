//! What a guest asked for that is not modelled: said once, and the guest goes on without.

use std::collections::BTreeSet;
use std::fmt;

/// Something that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Notice {
    /// A system-management interrupt was sent to a vCPU.
    SystemManagementInterrupt,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemManagementInterrupt => {
                "the guest sent a system-management interrupt (SMI). There is no system-management mode: it is ignored, \
                 and so are all further ones"
            }
        })
    }
}

/// The notices of a VM, each of which comes up once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices {
    seen: BTreeSet<Notice>,
    new: Vec<Notice>,
}

impl Notices {
    pub(crate) fn add(&mut self, notice: Notice) {
        if self.seen.insert(notice) {
            self.new.push(notice);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_comes_up_once() {
        let mut notices = Notices::default();
        notices.add(Notice::SystemManagementInterrupt);
        notices.add(Notice::SystemManagementInterrupt);
        assert_eq!(notices.take(), [Notice::SystemManagementInterrupt]);
        notices.add(Notice::SystemManagementInterrupt);
        assert_eq!(notices.take(), []);
    }
}
