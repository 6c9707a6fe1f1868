use std::sync::atomic::{AtomicU32, Ordering};

/// What the machine knows of one page of memory: whether a processor holds decoded code from it, and how often such
/// code was overwritten.
///
/// Bit 0: decoded code exists. Bits 31..1: generation, raised by every write that finds bit 0 set.
#[derive(Debug, Default)]
pub struct PageState(AtomicU32);

impl PageState {
    /// Marks the page as a source of decoded code; returns the generation that the code belongs to, and whether the
    /// mark is new (then stores to the page must be made to come through [`PageState::written`] again).
    pub fn mark_code(&self) -> (u32, bool) {
        let before = self.0.fetch_or(1, Ordering::AcqRel);
        (before >> 1, before & 1 == 0)
    }

    /// Whether decoded code from this page exists.
    #[inline]
    pub fn has_code(&self) -> bool {
        self.0.load(Ordering::Acquire) & 1 != 0
    }

    /// The generation of the page's contents as code.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.0.load(Ordering::Acquire) >> 1
    }

    /// The page's bytes change: code decoded from them is void.
    #[inline]
    pub fn written(&self) {
        let old = self.0.load(Ordering::Acquire);
        if old & 1 != 0 {
            self.0.store((old & !1).wrapping_add(2), Ordering::Release);
        }
    }
}
