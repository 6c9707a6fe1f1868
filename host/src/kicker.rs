use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct Shared {
    flag: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// Ends a running or blocked virtual machine from another thread, within a bounded time.
#[derive(Clone, Debug, Default)]
pub struct Kicker(Arc<Shared>);

/// Why [`Kicker::wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Kicked,
    TimedOut,
}

impl Kicker {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the virtual machine to come back to its VMM.
    pub fn kick(&self) {
        let _guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.flag.store(true, Ordering::Release);
        self.0.changed.notify_all();
    }

    /// Whether a kick has come since the last call.
    pub fn take(&self) -> bool {
        self.0.flag.load(Ordering::Relaxed) && self.0.flag.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until a kick (which stays for [`Kicker::take`]) or for `limit`; without a limit, until a kick.
    #[must_use]
    pub fn wait(&self, limit: Option<Duration>) -> Wait {
        let guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let not_kicked = |(): &mut ()| !self.0.flag.load(Ordering::Acquire);
        match limit {
            None => {
                drop(self.0.changed.wait_while(guard, not_kicked).unwrap_or_else(PoisonError::into_inner));
                Wait::Kicked
            }
            Some(limit) => {
                let (_guard, result) =
                    self.0.changed.wait_timeout_while(guard, limit, not_kicked).unwrap_or_else(PoisonError::into_inner);
                if result.timed_out() { Wait::TimedOut } else { Wait::Kicked }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_before_the_wait_ends_it_at_once_and_is_seen_once() {
        let kicker = Kicker::new();
        kicker.kick();
        assert_eq!(kicker.wait(None), Wait::Kicked);
        assert!(kicker.take());
        assert!(!kicker.take());
        assert_eq!(kicker.wait(Some(Duration::from_millis(1))), Wait::TimedOut);
    }
}
