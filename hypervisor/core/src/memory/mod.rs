//! Guest-physical memory: slots, and the EPT that maps them.

mod ept;
mod guest;
mod pool;
mod slots;

pub use ept::{Ept, Mapped};
pub use guest::GuestMemory;
pub use pool::Pool;
pub use slots::{MemoryFlags, SlotError, Slots};
